//! `RL.SLIDE`: the sliding window log.

use super::parse;
use super::reply::{self, CommandError};
use super::stats;
use crate::limiter::{MAX_STAMP_MS, Verdict, decide};
use crate::redis::{Args, Context, EventClass, Handler};
use crate::store;
use std::ffi::CStr;

/// The latest clock that is believed, in Unix milliseconds: with the longest window and `AT` on
/// top of it, a stamp still fits a score.
const MAX_CLOCK_MS: i64 = (MAX_STAMP_MS / 2) as i64;

/// `RL.SLIDE key window limit [window limit ...] [COST n] [FORCE] [PRECISION p] [AT t]`
pub struct Slide;

impl Handler for Slide {
    const NAME: &CStr = c"rl.slide";
    // Not `deny-oom`: a denial must be answered when memory is short.
    const FLAGS: &CStr = c"write fast";

    fn call(context: &Context, args: Args) {
        match slide(context, args) {
            Ok(verdict) => reply::verdict(context, &verdict),
            Err(error) => reply::error(context, &error),
        }
    }

    fn panicked(context: &Context, message: &str) {
        stats::count_panic();
        context.log_warning(&format!("a bug: rl.slide panicked: {message}"));
        reply::error(context, &CommandError::Internal);
    }
}

fn slide(context: &Context, args: Args) -> Result<Verdict, CommandError> {
    let clock_ms = context.clock_ms().clamp(0, MAX_CLOCK_MS) as u64;
    let [key, words @ ..] = args.as_slice() else {
        return Err(CommandError::WrongArity(Slide::NAME));
    };
    let request = parse::request(words.iter().map(|word| word.bytes()), clock_ms)?;

    let mut log = store::load(context, *key)?;
    let decision = decide(&mut log, &request)?;
    drop(log);

    if decision.clock_ahead {
        stats::count_clock_ahead(context, clock_ms);
    }
    if let Some(change) = &decision.change {
        if context.is_out_of_memory() {
            return Err(CommandError::OutOfMemory);
        }
        store::apply(context, *key, change)?;
    }
    if !decision.verdict.allowed {
        context.notify(EventClass::Module, c"rl.denied", *key);
    }
    Ok(decision.verdict)
}
