//! The commands: parse, load, decide, apply, reply.

pub mod parse;
mod reply;
mod slide;
mod stats;

use crate::redis::Module;

/// Registers every command and the `INFO` section.
///
/// # Errors
/// If a command's name is taken.
pub fn register(module: &Module) -> Result<(), String> {
    module.add_command::<slide::Slide>()?;
    module.add_info::<stats::Stats>();
    Ok(())
}
