//! Loading: a key's hash, read as counters.

use super::field::{self, FIELDS, Name, Part};
use crate::limiter::{Counter, Counters, MAX_WINDOWS, Window};
use crate::redis::Key;

/// Steps of a scan that a hash of ours may take: it never has more than 48 fields, while a call adds
/// eight windows before it removes eight others, and so a table of at most 64 places, and a second one
/// while it grows or shrinks.
const MAX_SCAN_STEPS: usize = 256;

/// The hash at a key, open for reading.
pub struct StoredCounters<'a>(Key<'a>);

/// The hash is none of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignHash;

impl<'a> StoredCounters<'a> {
    pub(in crate::store) fn new(key: Key<'a>) -> Self {
        Self(key)
    }

    /// When the key expires, in Unix milliseconds of the server's clock; `None` if never.
    pub fn expires_at_ms(&self) -> Option<u64> {
        self.0.expires_at_ms()
    }

    /// The counters that a call with these windows must know: those named if there are no others,
    /// and so nothing but three fields for each is read; all of them otherwise.
    ///
    /// # Errors
    /// [`ForeignHash`] if the hash is none of ours. One that is too long is told by its length alone.
    pub fn read(&self, windows: &[Window]) -> Result<Counters, ForeignHash> {
        let fields = self.0.len();
        if fields == (windows.len() * FIELDS) as u64
            && let Some(counters) = self.read_named(windows)?
        {
            return Ok(counters);
        }
        self.read_all()
    }

    /// The counters of these windows; `None` if a field of them is missing.
    fn read_named(&self, windows: &[Window]) -> Result<Option<Counters>, ForeignHash> {
        let mut counters = Counters::default();
        for window in windows {
            let mut counter = Counter { window_ms: window.window_ms, ..Counter::default() };
            let names = Part::ALL.map(|part| Name::of(window.window_ms, part));
            let values = self.0.fields(names.each_ref().map(Name::as_c_str));
            for (part, value) in Part::ALL.into_iter().zip(values) {
                let Some(value) = value else { return Ok(None) };
                if !part.put(&mut counter, value.text().bytes()) {
                    return Err(ForeignHash);
                }
            }
            if !counters.push(counter) {
                return Err(ForeignHash);
            }
        }
        Ok(Some(counters))
    }

    /// All counters of the hash, in no order.
    ///
    /// # Errors
    /// [`ForeignHash`] if it has more fields than this module writes, or one of another form, or a
    /// counter is incomplete.
    pub fn read_all(&self) -> Result<Counters, ForeignHash> {
        if self.0.len() > (MAX_WINDOWS * FIELDS) as u64 {
            return Err(ForeignHash);
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
