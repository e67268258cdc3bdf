//! Loading and applying: a limiter's state in the types that the server has.
//!
//! A log is a sorted set, counters are a hash. Both are read through a key opened for reading, and
//! changed through one opened for writing once it is known that something changes; every write goes
//! to replicas and the AOF as the native command of the same effect.

mod counters;
mod log;
mod writer;

pub use counters::{ForeignHash, StoredCounters, apply_counter_refunds, apply_counters};
pub use log::{StoredLog, apply_log, apply_log_refund};

use crate::redis::{Context, Key, Kind, Text};

/// What a key holds.
pub enum Stored<'a> {
    /// Nothing: a limiter that has not been used, or was forgotten.
    Nothing,
    /// A sorted set, which may be a log.
    Log(StoredLog<'a>),
    /// A hash, which may be counters.
    Counters(StoredCounters<'a>),
    /// Another type.
    Other,
}

/// The server refused a write that it has no reason to refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteFailed;

/// What the server says of a write, as a result.
fn written(done: bool) -> Result<(), WriteFailed> {
    if done { Ok(()) } else { Err(WriteFailed) }
}

/// Opens the limiter at `name`, changing nothing.
pub fn load<'a>(context: &'a Context, name: Text) -> Stored<'a> {
    let Some(key) = Key::open_to_read(context, name) else { return Stored::Nothing };
    match key.kind() {
        Kind::Empty => Stored::Nothing,
        Kind::SortedSet => Stored::Log(StoredLog::new(key)),
        Kind::Hash => Stored::Counters(StoredCounters::new(key)),
        Kind::Other => Stored::Other,
    }
}
