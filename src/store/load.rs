//! Loading: a key's sorted set, read as a log.

use super::member;
use crate::limiter::{Entry, Log, LogError};
use crate::redis::{Context, Key, Kind, OwnedText, Text};

/// The log at a key, open for reading. A key that does not exist is an empty log.
pub struct StoredLog<'a>(Option<Key<'a>>);

/// The key holds something else than a sorted set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType;

/// Opens the log at `name`, changing nothing.
///
/// # Errors
/// If the key holds another type.
pub fn load<'a>(context: &'a Context, name: Text) -> Result<StoredLog<'a>, WrongType> {
    let key = Key::open_to_read(context, name);
    match key.as_ref().map(Key::kind) {
        None | Some(Kind::SortedSet) => Ok(StoredLog(key)),
        Some(Kind::Empty) => Ok(StoredLog(None)),
        Some(Kind::Other) => Err(WrongType),
    }
}

impl StoredLog<'_> {
    fn seek(
        &self,
        seek: impl FnOnce(&Key) -> Option<(f64, OwnedText)>,
    ) -> Result<Option<Entry>, LogError> {
        let Some((score, text)) = self.0.as_ref().and_then(seek) else { return Ok(None) };
        member::parse(score, text.text().bytes()).map(Some).ok_or(LogError::Foreign)
    }
}

impl Log for StoredLog<'_> {
    fn len(&self) -> u64 {
        self.0.as_ref().map_or(0, Key::len)
    }

    fn expires_at_ms(&self) -> Option<u64> {
        let at_ms = self.0.as_ref().and_then(Key::expires_at_ms)?;
        Some(u64::try_from(at_ms).unwrap_or(0))
    }

    fn oldest(&mut self) -> Result<Option<Entry>, LogError> {
        self.seek(|key| key.first_in(f64::NEG_INFINITY, f64::INFINITY))
    }

    fn newest(&mut self) -> Result<Option<Entry>, LogError> {
        self.seek(|key| key.last_in(f64::NEG_INFINITY, f64::INFINITY))
    }

    fn first_from(&mut self, from_ms: u64) -> Result<Option<Entry>, LogError> {
        self.seek(|key| key.first_in(from_ms as f64, f64::INFINITY))
    }

    fn last_until(&mut self, until_ms: u64) -> Result<Option<Entry>, LogError> {
        self.seek(|key| key.last_in(f64::NEG_INFINITY, until_ms as f64))
    }
}
