//! `RL.SLIDE`: the sliding window log.

use super::reply::CommandError;
use super::stats::{self, Calls};
use super::{Answer, Command, parse, settings, settle, table};
use crate::limiter::decide;
use crate::redis::{Args, CommandInfo, Context};
use crate::store::StoredLog;

/// `RL.SLIDE key window limit [window limit ...] [COST n] [FORCE] [PRECISION p] [AT t]`
pub struct Slide;

impl Command for Slide {
    const INFO: CommandInfo = table::SLIDE;
    const CALLS: &'static Calls = &stats::SLIDE;

    fn run(context: &Context, args: Args, clock_ms: u64) -> Result<Answer, CommandError> {
        let key = args.key();
        let mut request = parse::request(args.behind_key(), clock_ms, parse::Syntax::Slide)?;
        request.max_entries = settings::MAX_LOG_ENTRIES.get() as u64;
        // Asked before the key is opened, which takes some itself.
        let out_of_memory = context.is_out_of_memory();
        let mut log = StoredLog::open(context, key)?;
        let decision = decide(&mut log, &request)?;
        if decision.clock_ahead {
            stats::count_clock_ahead(context, clock_ms);
        }
        let (verdict, change) = (decision.verdict, decision.change.as_ref());
        settle(context, key, &verdict, out_of_memory, change, |change| {
            stats::ENTRIES_TRIMMED.add(log.apply(change)?);
            stats::LOGS_DROPPED.add(change.drop_log.into());
            stats::LOGS_CAPPED.add(change.capped.into());
            Ok(())
        })?;
        Ok(Answer::Verdict(verdict, request.charge))
    }
}
