//! The commands: parse, load, decide, apply, reply.

mod denied;
pub mod parse;
mod peek;
mod refund;
mod reply;
mod settings;
mod slide;
mod stats;
mod swc;
pub mod table;

use crate::limiter::{Charge, MAX_STAMP_MS, Verdict};
use crate::redis::{Args, CommandInfo, Context, EventClass, Handler, Module, Text};
use crate::store::WriteFailed;
use reply::CommandError;
use stats::Calls;

/// The latest clock that is believed, in Unix milliseconds: with the longest window and `AT` on
/// top of it, a stamp still fits a score.
const MAX_CLOCK_MS: i64 = (MAX_STAMP_MS / 2) as i64;

/// A command with its key first.
trait Command {
    const INFO: CommandInfo;
    const CALLS: &'static Calls;

    /// Answers one call with a key; `clock_ms` is the server's clock, read once.
    fn run(context: &Context, args: Args, clock_ms: u64) -> Result<Answer, CommandError>;
}

/// What a command answers if nothing is wrong.
enum Answer {
    /// Whether a request may pass, and how it was to be charged.
    Verdict(Verdict, Charge),
    /// Units taken back.
    Units(u64),
}

impl<C: Command> Handler for C {
    const INFO: CommandInfo = <C as Command>::INFO;

    fn call(context: &Context, args: Args) {
        let clock_ms = context.clock_ms().clamp(0, MAX_CLOCK_MS) as u64;
        match C::run(context, args, clock_ms) {
            Ok(Answer::Verdict(verdict, charge)) => {
                C::CALLS.count(verdict.allowed, charge == Charge::Always);
                reply::verdict(context, &verdict);
            }
            Ok(Answer::Units(units)) => {
                C::CALLS.count(units > 0, false);
                reply::units(context, units);
            }
            Err(error) => {
                C::CALLS.errors.add(1);
                reply::error(context, &error);
            }
        }
    }

    fn panicked(context: &Context, message: &str) {
        C::CALLS.errors.add(1);
        answer_panic(context, &<C as Command>::INFO, message);
    }
}

fn answer_panic(context: &Context, command: &CommandInfo, message: &str) {
    stats::PANICS.add(1);
    let name = command.name.to_string_lossy();
    context.log_warning(&format!("a bug: {name} panicked: {message}"));
    reply::error(context, &CommandError::Internal);
}

/// Writes what was decided, unless memory is short, and tells of a denial. `apply` owns the open key:
/// whoever listens may change it, so it is closed before anybody is told.
fn settle<Change>(
    context: &Context,
    key: Text,
    verdict: &Verdict,
    out_of_memory: bool,
    change: Option<&Change>,
    apply: impl FnOnce(&Change) -> Result<(), WriteFailed>,
) -> Result<(), CommandError> {
    match change {
        None => drop(apply),
        Some(_) if out_of_memory => return Err(CommandError::OutOfMemory),
        Some(change) => apply(change)?,
    }
    if !verdict.allowed {
        denied::record(key.bytes());
        context.notify(EventClass::Module, c"rl.denied", key);
    }
    Ok(())
}

/// Registers every command, the settings and the `INFO` section.
///
/// # Errors
/// If a command's name is taken, or an argument of the load or a setting is wrong.
pub fn register(module: &Module) -> Result<(), String> {
    module.add_command::<slide::Slide>()?;
    module.add_command::<swc::Swc>()?;
    module.add_command::<peek::Peek>()?;
    module.add_command::<refund::Refund>()?;
    module.add_command::<denied::Denied>()?;
    module.add_info::<stats::Stats>();
    module.add_settings(&[&settings::MAX_LOG_ENTRIES])?;
    denied::start();
    Ok(())
}

/// Gives back what [`register`] took.
pub fn unregister() {
    denied::stop();
}
