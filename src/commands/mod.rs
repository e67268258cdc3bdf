//! The commands: parse, load, decide, apply, reply.

pub mod parse;
mod peek;
mod refund;
mod reply;
mod slide;
mod stats;
mod swc;
pub mod table;

use crate::limiter::{MAX_STAMP_MS, Verdict};
use crate::redis::{Args, CommandInfo, Context, EventClass, Handler, Module, Text};
use crate::store::WriteFailed;
use reply::CommandError;

/// The latest clock that is believed, in Unix milliseconds: with the longest window and `AT` on
/// top of it, a stamp still fits a score.
const MAX_CLOCK_MS: i64 = (MAX_STAMP_MS / 2) as i64;

/// A command with its key first.
trait Command {
    const INFO: CommandInfo;

    /// Answers one call with a key; `clock_ms` is the server's clock, read once.
    fn run(context: &Context, args: Args, clock_ms: u64) -> Result<Answer, CommandError>;
}

/// What a command answers if nothing is wrong.
enum Answer {
    Verdict(Verdict),
    Units(u64),
}

impl<C: Command> Handler for C {
    const INFO: CommandInfo = <C as Command>::INFO;

    fn call(context: &Context, args: Args) {
        let clock_ms = context.clock_ms().clamp(0, MAX_CLOCK_MS) as u64;
        let answer = C::run(context, args, clock_ms);
        match answer {
            Ok(Answer::Verdict(verdict)) => reply::verdict(context, &verdict),
            Ok(Answer::Units(units)) => reply::units(context, units),
            Err(error) => reply::error(context, &error),
        }
    }

    fn panicked(context: &Context, message: &str) {
        let name = <C as Command>::INFO.name.to_string_lossy();
        stats::count_panic();
        context.log_warning(&format!("a bug: {name} panicked: {message}"));
        reply::error(context, &CommandError::Internal);
    }
}

/// Ends a call that charges: writes the change, unless memory is short, and tells of a denial.
fn settle<Change>(
    context: &Context,
    key: Text,
    verdict: Verdict,
    change: Option<&Change>,
    apply: fn(&Context, Text, &Change) -> Result<(), WriteFailed>,
) -> Result<Answer, CommandError> {
    if let Some(change) = change {
        if context.is_out_of_memory() {
            return Err(CommandError::OutOfMemory);
        }
        apply(context, key, change)?;
    }
    if !verdict.allowed {
        context.notify(EventClass::Module, c"rl.denied", key);
    }
    Ok(Answer::Verdict(verdict))
}

/// Registers every command and the `INFO` section.
///
/// # Errors
/// If a command's name is taken.
pub fn register(module: &Module) -> Result<(), String> {
    module.add_command::<slide::Slide>()?;
    module.add_command::<swc::Swc>()?;
    module.add_command::<peek::Peek>()?;
    module.add_command::<refund::Refund>()?;
    module.add_info::<stats::Stats>();
    Ok(())
}
