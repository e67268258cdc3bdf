//! Loading: a key's sorted set, read as a log.

use super::member;
use crate::limiter::{Entry, Log, LogError};
use crate::redis::{Key, OwnedText};
use std::iter;

/// The log at a key, open for reading. A key that does not exist is an empty log.
pub struct StoredLog<'a>(Option<Key<'a>>);

impl<'a> StoredLog<'a> {
    /// The log in a sorted set.
    pub(in crate::store) fn new(key: Key<'a>) -> Self {
        Self(Some(key))
    }

    /// The log of a key that does not exist.
    pub fn empty() -> Self {
        Self(None)
    }

    /// The entries from the newest to the oldest.
    pub fn newest_first(&self) -> impl Iterator<Item = Result<Entry, LogError>> {
        let first = self.0.as_ref().and_then(|key| key.last_in(f64::NEG_INFINITY, f64::INFINITY));
        let older = |_: &(f64, OwnedText)| self.0.as_ref().and_then(Key::previous);
        iter::successors(first, older).map(|(score, text)| read(score, &text))
    }
}

impl StoredLog<'_> {
    fn seek(
        &self,
        seek: impl FnOnce(&Key) -> Option<(f64, OwnedText)>,
    ) -> Result<Option<Entry>, LogError> {
        let Some((score, text)) = self.0.as_ref().and_then(seek) else { return Ok(None) };
        read(score, &text).map(Some)
    }
}

fn read(score: f64, text: &OwnedText) -> Result<Entry, LogError> {
    member::parse(score, text.text().bytes()).ok_or(LogError::Foreign)
}

impl Log for StoredLog<'_> {
    fn len(&self) -> u64 {
        self.0.as_ref().map_or(0, Key::len)
    }

    fn expires_at_ms(&self) -> Option<u64> {
        self.0.as_ref().and_then(Key::expires_at_ms)
    }

    fn oldest(&mut self) -> Result<Option<Entry>, LogError> {
        self.seek(|key| key.first_in(f64::NEG_INFINITY, f64::INFINITY))
    }

    fn newest(&mut self) -> Result<Option<Entry>, LogError> {
        self.seek(|key| key.last_in(f64::NEG_INFINITY, f64::INFINITY))
    }

    fn first_from(&mut self, from_ms: u64) -> Result<Option<Entry>, LogError> {
        // Scores of ours are whole; one that lies between two of them is foreign, and found too.
        let above_ms = (from_ms as f64 - 1.0).next_up();
        self.seek(|key| key.first_in(above_ms, f64::INFINITY))
    }

    fn last_until(&mut self, until_ms: u64) -> Result<Option<Entry>, LogError> {
        self.seek(|key| key.last_in(f64::NEG_INFINITY, until_ms as f64))
    }
}
