//! Loading: a key's hash, read as counters.

use super::field::{self, FIELDS};
use crate::limiter::{Counter, Counters, MAX_WINDOWS};
use crate::redis::{Context, Key, Kind, Text};
use crate::store::{WrongType, open_as};

/// Steps of a scan that a hash of ours may take. It never has more than 48 fields, while a call adds
/// eight windows before it removes eight others, and so a table of at most 64 places, a step each. One
/// into which somebody put thousands of others, and took them out again, has a larger table until the
/// server shrinks it: that is walked, and one of a million places is not.
const MAX_SCAN_STEPS: usize = 16_384;

/// Fields of as many windows as a limiter has.
const MAX_FIELDS: u64 = (MAX_WINDOWS * FIELDS) as u64;

/// The counters at an open key. One that holds nothing has none.
pub struct StoredCounters<'a>(pub(super) Key<'a>);

/// The hash is none of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignHash;

impl<'a> StoredCounters<'a> {
    /// Opens the counters at `name`, which need not exist, to judge them and perhaps to change them.
    ///
    /// # Errors
    /// [`WrongType`] if the key holds anything else.
    pub fn open(context: &'a Context, name: Text<'a>) -> Result<Self, WrongType> {
        open_as(context, name, Kind::Hash).map(Self)
    }

    /// The counters in a hash.
    pub(in crate::store) fn new(key: Key<'a>) -> Self {
        Self(key)
    }

    /// When the key expires, in Unix milliseconds of the server's clock; `None` if never.
    pub fn expires_at_ms(&self) -> Option<u64> {
        self.0.expires_at_ms()
    }

    /// The counters, in no order.
    ///
    /// One scan reads all fields. To ask for three by their names costs the server as much, and those
    /// that are not named must be known, too.
    ///
    /// # Errors
    /// [`ForeignHash`] if it has more fields than this module writes, which its length alone tells, or
    /// one of another form, or a counter is incomplete.
    pub fn read(&self) -> Result<Counters, ForeignHash> {
        match self.0.len() {
            0 => return Ok(Counters::default()),
            1..=MAX_FIELDS => {}
            _ => return Err(ForeignHash),
        }
        let mut partial = Partial::default();
        match self.0.visit_fields(MAX_SCAN_STEPS, |name, value| partial.take(name, value)) {
            true => partial.complete(),
            false => Err(ForeignHash),
        }
    }
}

/// Counters of which not every field may have been seen.
#[derive(Default)]
struct Partial {
    counters: [(Counter, [bool; FIELDS]); MAX_WINDOWS],
    len: usize,
}

impl Partial {
    /// Takes a field in; says whether it is one of ours.
    fn take(&mut self, name: &[u8], value: &[u8]) -> bool {
        let Some((window_ms, part)) = field::parse_name(name) else { return false };
        let Some((counter, seen)) = self.slot(window_ms) else { return false };
        seen[part as usize] = true;
        part.put(counter, value)
    }

    /// Where the counter of that window is or goes; `None` if there are too many.
    fn slot(&mut self, window_ms: u64) -> Option<&mut (Counter, [bool; FIELDS])> {
        let used = &self.counters[..self.len];
        let known = used.iter().position(|(counter, _)| counter.window_ms == window_ms);
        let slot = self.counters.get_mut(known.unwrap_or(self.len))?;
        if known.is_none() {
            slot.0.window_ms = window_ms;
            self.len += 1;
        }
        Some(slot)
    }

    fn complete(self) -> Result<Counters, ForeignHash> {
        let mut counters = Counters::default();
        for (counter, seen) in &self.counters[..self.len] {
            if seen != &[true; FIELDS] || !counters.push(*counter) {
                return Err(ForeignHash);
            }
        }
        Ok(counters)
    }
}
