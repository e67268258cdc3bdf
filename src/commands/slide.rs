//! `RL.SLIDE`: the sliding window log.

use super::reply::CommandError;
use super::{Answer, Command, parse, settle, stats, table};
use crate::limiter::decide;
use crate::redis::{Args, CommandInfo, Context};
use crate::store::{self, Stored, StoredLog};

/// `RL.SLIDE key window limit [window limit ...] [COST n] [FORCE] [PRECISION p] [AT t]`
pub struct Slide;

impl Command for Slide {
    const INFO: CommandInfo = table::SLIDE;

    fn run(context: &Context, args: Args, clock_ms: u64) -> Result<Answer, CommandError> {
        let key = args.key();
        let request = parse::request(args.words(), clock_ms, parse::Syntax::Slide)?;
        let mut log = match store::load(context, key) {
            Stored::Nothing => StoredLog::empty(),
            Stored::Log(log) => log,
            Stored::Counters(_) | Stored::Other => return Err(CommandError::WrongType),
        };
        let decision = decide(&mut log, &request)?;
        drop(log);
        if decision.clock_ahead {
            stats::count_clock_ahead(context, clock_ms);
        }
        let change = decision.change.as_ref();
        settle(context, key, decision.verdict, change, store::apply_log)
    }
}
