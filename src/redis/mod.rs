//! The thin layer over the module API: the only place with `unsafe`.
//!
//! It turns pointers into values that cannot outlive the call they belong to, closes what it opens,
//! and knows nothing of rate limits. It calls the functions of `redis_module::raw` directly: that
//! crate's own wrappers lack sorted sets, and allocate for every argument.

mod command;
mod context;
mod key;
mod module;
mod setting;
mod string;

pub use command::{Access, Arg, ArgKind, CommandInfo};
pub use context::{Context, EventClass};
pub use key::{Key, Kind};
pub use module::{Args, Handler, Info, Module, load};
pub use setting::NumberSetting;
pub use string::{OwnedText, Text};

/// The server's function behind one of its pointers.
///
/// Every function that is called without looking first is in the list that [`load`] checks, so the
/// message is never seen; if it is, the panic ends at the command's edge.
#[inline(always)]
fn required<F>(function: Option<F>) -> F {
    function.expect("the server lacks a function that was there at load")
}
