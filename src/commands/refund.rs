//! `RL.REFUND`: taking back the newest units.

use super::reply::CommandError;
use super::stats::{self, Calls};
use super::{Answer, Command, parse, table};
use crate::limiter::{Log, plan_counter_refunds, plan_log_refund};
use crate::redis::{Args, CommandInfo, Context};
use crate::store::{self, Stored};

/// `RL.REFUND key n [AT t]`
pub struct Refund;

impl Command for Refund {
    const INFO: CommandInfo = table::REFUND;
    const CALLS: &'static Calls = &stats::REFUND;

    fn run(context: &Context, args: Args, clock_ms: u64) -> Result<Answer, CommandError> {
        let key = args.key();
        let (units, now_ms) = parse::refund(args.behind_key(), clock_ms)?;
        let taken = match store::load(context, key) {
            Stored::Nothing => 0,
            Stored::Log(mut log) => {
                // As every call does: a set that begins with something foreign is none of ours.
                log.oldest()?;
                let refund = plan_log_refund(log.newest_first(), units)?;
                drop(log);
                if refund.units > 0 {
                    store::apply_log_refund(context, key, &refund)?;
                }
                refund.units
            }
            Stored::Counters(stored) => {
                let refunds = plan_counter_refunds(&stored.read_all()?, units, now_ms, clock_ms);
                drop(stored);
                let units = refunds.units();
                if units > 0 {
                    store::apply_counter_refunds(context, key, &refunds)?;
                }
                units
            }
            Stored::Other => return Err(CommandError::WrongType),
        };
        stats::UNITS_REFUNDED.add(taken);
        Ok(Answer::Units(taken))
    }
}
