//! The stored form of a counter: three fields of a hash.
//!
//! Their names are the window's length in milliseconds, a `:` and what they hold:
//! `60000:start` in Unix milliseconds, `60000:current` and `60000:previous` in units. The form is
//! frozen.

use crate::decimal::{self, Digits};
use crate::limiter::{Counter, MAX_STAMP_MS, MAX_STORED_UNITS, MAX_WINDOW_MS};

/// Fields that a counter has.
pub const FIELDS: usize = 3;

/// 12 digits, and the longest name of a part with its `:`.
const MAX_LEN: usize = 12 + 9;

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// When the current window began.
    Start,
    /// Units charged in it.
    Current,
    /// Units charged in the one before.
    Previous,
}

impl Part {
    /// All of them, in the order in which they are written.
    pub const ALL: [Part; FIELDS] = [Part::Start, Part::Current, Part::Previous];

    fn suffix(self) -> &'static [u8] {
        match self {
            Part::Start => b":start",
            Part::Current => b":current",
            Part::Previous => b":previous",
        }
    }

    /// What this part of `counter` is.
    pub fn of(self, counter: &Counter) -> u64 {
        match self {
            Part::Start => counter.start_ms,
            Part::Current => counter.current,
            Part::Previous => counter.previous,
        }
    }

    /// Puts a value into this part of `counter`; says whether it is one that this module writes.
    #[must_use]
    pub fn put(self, counter: &mut Counter, value: &[u8]) -> bool {
        let Some(value) = decimal::parse(value) else { return false };
        match self {
            Part::Start => {
                counter.start_ms = value;
                value <= MAX_STAMP_MS && value % counter.window_ms == 0
            }
            Part::Current => {
                counter.current = value;
                value <= MAX_STORED_UNITS
            }
            Part::Previous => {
                counter.previous = value;
                value <= MAX_STORED_UNITS
            }
        }
    }
}

/// The name of a field.
pub struct Name {
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl Name {
    /// The name of a part of the counter of `window_ms`, without allocating.
    pub fn of(window_ms: u64, part: Part) -> Self {
        let digits = Digits::of(window_ms);
        let (digits, suffix) = (digits.as_bytes(), part.suffix());
        let mut name = Self { bytes: [0; MAX_LEN], len: digits.len() + suffix.len() };
        name.bytes[..digits.len()].copy_from_slice(digits);
        name.bytes[digits.len()..name.len].copy_from_slice(suffix);
        name
    }

    /// The bytes, as they are stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Reads a name: the window's length in milliseconds, and the part; `None` if it is none of ours.
pub fn parse_name(name: &[u8]) -> Option<(u64, Part)> {
    let colon = name.iter().position(|byte| *byte == b':')?;
    let (digits, suffix) = name.split_at(colon);
    let part = Part::ALL.into_iter().find(|part| suffix == part.suffix())?;
    let window_ms = decimal::parse(digits)?;
    (1..=MAX_WINDOW_MS).contains(&window_ms).then_some((window_ms, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_names() {
        let documented = [
            (60_000, Part::Start, "60000:start"),
            (1, Part::Current, "1:current"),
            (MAX_WINDOW_MS, Part::Previous, "315360000000:previous"),
        ];
        for (window_ms, part, name) in documented {
            assert_eq!(Name::of(window_ms, part).as_bytes(), name.as_bytes());
            assert_eq!(parse_name(name.as_bytes()), Some((window_ms, part)));
        }
    }

    #[test]
    fn foreign_names() {
        let foreign: [&[u8]; 10] = [
            b"",
            b":start",
            b"60000",
            b"60000:",
            b"60000:begin",
            b"060000:start",
            b"0:start",
            b"315360000001:start",
            b"60000:start ",
            b"60000\0:start",
        ];
        for name in foreign {
            assert_eq!(parse_name(name), None, "{}", name.escape_ascii());
        }
    }

    #[test]
    fn foreign_values() {
        let mut counter = Counter { window_ms: 1_000, ..Counter::default() };
        assert!(Part::Start.put(&mut counter, b"1796037190000"));
        assert!(Part::Current.put(&mut counter, b"9223372036854775807"));
        assert!(Part::Previous.put(&mut counter, b"0"));
        let written = Counter {
            window_ms: 1_000,
            start_ms: 1_796_037_190_000,
            current: i64::MAX as u64,
            previous: 0,
        };
        assert_eq!(counter, written);
        let foreign: [(Part, &[u8]); 7] = [
            (Part::Start, b"1796037190001"),
            (Part::Start, b"9007199254741000"),
            (Part::Start, b"-1000"),
            (Part::Current, b"9223372036854775808"),
            (Part::Current, b"07"),
            (Part::Previous, b"1.5"),
            (Part::Previous, b""),
        ];
        for (part, value) in foreign {
            assert!(!part.put(&mut counter, value), "{part:?} {}", value.escape_ascii());
        }
    }
}
