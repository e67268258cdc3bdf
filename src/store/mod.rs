//! Loading and applying: a limiter's state in the types that the server has.
//!
//! A log is a sorted set, counters are a hash. A call opens its key once, reads, and changes it through
//! the same handle once it is known that something changes; every write goes to replicas and the AOF
//! as the native command of the same effect.

mod counters;
mod log;
mod writer;

pub use counters::{ForeignHash, StoredCounters};
pub use log::StoredLog;

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

/// The key holds another type than the limiter's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType;

/// Opens the key at `name`, which holds nothing or that kind, to look at it and perhaps to change it.
fn open_as<'a>(context: &'a Context, name: Text<'a>, kind: Kind) -> Result<Key<'a>, WrongType> {
    let key = Key::open_to_write(context, name);
    let is_right = [Kind::Empty, kind].contains(&key.kind());
    if is_right { Ok(key) } else { Err(WrongType) }
}

impl<'a> Stored<'a> {
    /// Opens the limiter at `name` to look at it.
    pub fn look(context: &'a Context, name: Text<'a>) -> Self {
        Key::open_to_read(context, name).map_or(Self::Nothing, Self::at)
    }

    /// Opens the limiter at `name` to change it.
    pub fn open(context: &'a Context, name: Text<'a>) -> Self {
        Self::at(Key::open_to_write(context, name))
    }

    fn at(key: Key<'a>) -> Self {
        match key.kind() {
            Kind::Empty => Self::Nothing,
            Kind::SortedSet => Self::Log(StoredLog::new(key)),
            Kind::Hash => Self::Counters(StoredCounters::new(key)),
            Kind::Other => Self::Other,
        }
    }
}
