//! Loading: a key's sorted set, read as a log.

use super::member;
use crate::limiter::{Entry, Log, LogError};
use crate::redis::{Context, Key, Kind, OwnedText, Text};
use crate::store::{WrongType, open_as};
use std::iter;

/// The log at an open key. One that holds nothing is an empty log.
pub struct StoredLog<'a>(pub(super) Key<'a>);

impl<'a> StoredLog<'a> {
    /// Opens the log at `name`, which need not exist, to judge it and perhaps to change it.
    ///
    /// # Errors
    /// [`WrongType`] if the key holds anything else.
    pub fn open(context: &'a Context, name: Text<'a>) -> Result<Self, WrongType> {
        open_as(context, name, Kind::SortedSet).map(Self)
    }

    /// The log in a sorted set.
    pub(in crate::store) fn new(key: Key<'a>) -> Self {
        Self(key)
    }

    /// The entries from the newest to the oldest.
    pub fn newest_first(&self) -> impl Iterator<Item = Result<Entry, LogError>> {
        let first = self.0.last_in(f64::NEG_INFINITY, f64::INFINITY);
        let older = |_: &(f64, OwnedText)| self.0.previous();
        iter::successors(first, older).map(|(score, text)| read(score, &text))
    }

    fn seek(
        &self,
        seek: impl FnOnce(&Key) -> Option<(f64, OwnedText)>,
    ) -> Result<Option<Entry>, LogError> {
        let Some((score, text)) = seek(&self.0) else { return Ok(None) };
        read(score, &text).map(Some)
    }
}

fn read(score: f64, text: &OwnedText) -> Result<Entry, LogError> {
    member::parse(score, text.text().bytes()).ok_or(LogError::Foreign)
}

impl Log for StoredLog<'_> {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn expires_at_ms(&self) -> Option<u64> {
        self.0.expires_at_ms()
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
