//! `RL.REFUND`: taking back the newest units.

use super::reply::CommandError;
use super::stats::{self, Calls};
use super::{Answer, Command, parse, table};
use crate::limiter::{Log, plan_counter_refunds, plan_log_refund};
use crate::redis::{Args, CommandInfo, Context};
use crate::store::Stored;

/// `RL.REFUND key n [AT t]`
pub struct Refund;

impl Command for Refund {
    const INFO: CommandInfo = table::REFUND;
    const CALLS: &'static Calls = &stats::REFUND;

    fn run(context: &Context, args: Args, clock_ms: u64) -> Result<Answer, CommandError> {
        let (units, now_ms) = parse::refund(args.behind_key(), clock_ms)?;
        let taken = match Stored::open(context, args.key()) {
            Stored::Nothing => 0,
            Stored::Log(mut log) => {
                // As every call does: a set that begins with something foreign is none of ours.
                log.oldest()?;
                let refund = plan_log_refund(log.newest_first(), units)?;
                if refund.units > 0 {
                    log.take_back(&refund)?;
                }
                refund.units
            }
            Stored::Counters(stored) => {
                let refunds = plan_counter_refunds(&stored.read()?, units, now_ms, clock_ms);
                let units = refunds.units();
                if units > 0 {
                    stored.take_back(&refunds)?;
                }
                units
            }
            Stored::Other => return Err(CommandError::WrongType),
        };
        stats::UNITS_REFUNDED.add(taken);
        Ok(Answer::Units(taken))
    }
}
