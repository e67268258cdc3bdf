//! `RL.SWC`: the sliding window counter.

use super::reply::CommandError;
use super::stats::{self, Calls};
use super::{Answer, Command, parse, settle, table};
use crate::limiter::decide_counters;
use crate::redis::{Args, CommandInfo, Context};
use crate::store::StoredCounters;

/// `RL.SWC key window limit [window limit ...] [COST n] [FORCE] [AT t]`
pub struct Swc;

impl Command for Swc {
    const INFO: CommandInfo = table::SWC;
    const CALLS: &'static Calls = &stats::SWC;

    fn run(context: &Context, args: Args, clock_ms: u64) -> Result<Answer, CommandError> {
        let key = args.key();
        let request = parse::request(args.behind_key(), clock_ms, parse::Syntax::Swc)?;
        // Asked before the key is opened, which takes some itself.
        let out_of_memory = context.is_out_of_memory();
        let stored = StoredCounters::open(context, key)?;
        let counters = stored.read()?;
        let decision = decide_counters(&counters, stored.expires_at_ms(), &request);
        if decision.clock_ahead {
            stats::count_clock_ahead(context, clock_ms);
        }
        let (verdict, change) = (decision.verdict, decision.change.as_ref());
        settle(context, key, &verdict, out_of_memory, change, |change| stored.apply(change))?;
        Ok(Answer::Verdict(verdict, request.charge))
    }
}
