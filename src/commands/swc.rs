//! `RL.SWC`: the sliding window counter.

use super::reply::CommandError;
use super::stats::{self, Calls};
use super::{Answer, Command, parse, settle, table};
use crate::limiter::{Counters, decide_counters};
use crate::redis::{Args, CommandInfo, Context};
use crate::store::{self, Stored};

/// `RL.SWC key window limit [window limit ...] [COST n] [FORCE] [AT t]`
pub struct Swc;

impl Command for Swc {
    const INFO: CommandInfo = table::SWC;
    const CALLS: &'static Calls = &stats::SWC;

    fn run(context: &Context, args: Args, clock_ms: u64) -> Result<Answer, CommandError> {
        let key = args.key();
        let request = parse::request(args.behind_key(), clock_ms, parse::Syntax::Swc)?;
        let (counters, expires_at_ms) = match store::load(context, key) {
            Stored::Nothing => (Counters::default(), None),
            Stored::Counters(stored) => (stored.read(&request.windows)?, stored.expires_at_ms()),
            Stored::Log(_) | Stored::Other => return Err(CommandError::WrongType),
        };
        let decision = decide_counters(&counters, expires_at_ms, &request);
        if decision.clock_ahead {
            stats::count_clock_ahead(context, clock_ms);
        }
        let (verdict, change) = (decision.verdict, decision.change.as_ref());
        settle(context, key, &verdict, change, |change| {
            store::apply_counters(context, key, change)
        })?;
        Ok(Answer::Verdict(verdict, request.charge))
    }
}
