//! Applying: a planned change as native writes, and the same writes for replicas and the AOF.

use super::member::{self, Member};
use crate::decimal::Digits;
use crate::limiter::{Change, Entry, MAX_TRIMMED, Refund};
use crate::redis::{Context, EventClass, Key, Kind, OwnedText, Text};
use crate::store::{Events, WriteFailed};

/// Writes `change` to the log at `name`, and tells how many entries were trimmed.
///
/// Each write is replicated before the next is tried, as the native command that has the same
/// effect, so a fault between two leaves replicas and the AOF as the key is. The new entry comes
/// before any removal: so the set never empties, which would lose its expiry. Keyspace events are
/// those of the native commands, and come when the key is closed.
///
/// # Errors
/// If the server refuses a write; what was written up to then is replicated.
pub fn apply(context: &Context, name: Text, change: &Change) -> Result<u64, WriteFailed> {
    let mut log = Log::open(context, name);
    let outcome = log.charge(change);
    log.close();
    outcome
}

/// Takes back what `refund` says from the log at `name`.
///
/// Replicated and told as [`apply`] does. Taking everything back deletes the key.
///
/// # Errors
/// If the server refuses a write; what was written up to then is replicated.
pub fn refund(context: &Context, name: Text, refund: &Refund) -> Result<(), WriteFailed> {
    let mut log = Log::open(context, name);
    let outcome = log.refund(refund);
    log.close();
    outcome
}

/// A log open for writing, here and for replicas and the AOF.
struct Log<'a> {
    context: &'a Context,
    name: Text<'a>,
    key: Key<'a>,
    events: Events<6>,
}

impl<'a> Log<'a> {
    fn open(context: &'a Context, name: Text<'a>) -> Self {
        let key = Key::open_to_write(context, name);
        Self { context, name, key, events: Events::new() }
    }

    /// Closes the key and tells what happened to it.
    fn close(self) {
        drop(self.key);
        self.events.tell(self.context, self.name);
    }

    fn charge(&mut self, change: &Change) -> Result<u64, WriteFailed> {
        if change.drop_log {
            self.unlink()?;
        }
        let is_new = self.key.kind() == Kind::Empty;
        self.add(&change.entry)?;
        if let Some(replaced) = &change.replaced {
            self.remove(replaced);
        }
        let trimmed = change.trim_until_ms.map_or(0, |until_ms| self.trim(until_ms));
        if is_new || change.expiry_due {
            self.set_expiry(change.expires_at_ms)?;
        }
        Ok(trimmed)
    }

    fn refund(&mut self, refund: &Refund) -> Result<(), WriteFailed> {
        if self.key.kind() == Kind::Empty {
            return Ok(());
        }
        self.remove_newest(refund.removed);
        if let Some((former, shrunk)) = &refund.shrunk {
            self.add(shrunk)?;
            self.remove(former);
        }
        Ok(())
    }

    fn unlink(&mut self) -> Result<(), WriteFailed> {
        self.key.unlink().then_some(()).ok_or(WriteFailed)?;
        self.context.replicate_unlink(self.name);
        self.events.push(EventClass::Generic, c"del");
        Ok(())
    }

    fn add(&mut self, entry: &Entry) -> Result<(), WriteFailed> {
        let member = OwnedText::new(Member::of(entry).as_bytes());
        self.key.add(member::score_of(entry), member.text()).then_some(()).ok_or(WriteFailed)?;
        let score = Digits::of(entry.stamp_ms);
        self.context.replicate_zadd(self.name, score.as_bytes(), member.text());
        self.events.push(EventClass::SortedSet, c"zadd");
        Ok(())
    }

    fn remove(&mut self, entry: &Entry) {
        let member = OwnedText::new(Member::of(entry).as_bytes());
        if self.key.remove(member.text()) {
            self.context.replicate_zrem(self.name, member.text());
            self.events.push(EventClass::SortedSet, c"zrem");
        }
    }

    /// Removes entries from the old end, up to those stamped `until_ms`, and tells how many. Stops
    /// at one that is not of our form, for the next call to find.
    ///
    /// One seek and one removal each: a removal ends the seek, and calling the server's own command
    /// pays from about five entries on, which only a backlog has.
    fn trim(&mut self, until_ms: u64) -> u64 {
        let mut range = Range { log: self, removed: 0, end: End::Oldest };
        for _ in 0..MAX_TRIMMED {
            let oldest = range.log.key.first_in(f64::NEG_INFINITY, until_ms as f64);
            let is_gone = oldest.is_some_and(|(score, text)| {
                member::parse(score, text.text().bytes()).is_some() && range.remove(text.text())
            });
            if !is_gone {
                break;
            }
        }
        range.removed as u64
    }

    fn remove_newest(&mut self, count: u64) {
        let mut range = Range { log: self, removed: 0, end: End::Newest };
        for _ in 0..count {
            let newest = range.log.key.last_in(f64::NEG_INFINITY, f64::INFINITY);
            if !newest.is_some_and(|(_, text)| range.remove(text.text())) {
                break;
            }
        }
    }

    fn set_expiry(&mut self, at_ms: u64) -> Result<(), WriteFailed> {
        let at_ms = at_ms as i64;
        self.key.set_expires_at_ms(at_ms).then_some(()).ok_or(WriteFailed)?;
        self.context.replicate_pexpireat(self.name, at_ms);
        self.events.push(EventClass::Generic, c"expire");
        Ok(())
    }
}

/// Entries being removed from one end: replicated as one command when done, or when a fault ends it.
struct Range<'a, 'b> {
    log: &'a mut Log<'b>,
    removed: i64,
    end: End,
}

enum End {
    Oldest,
    Newest,
}

impl Range<'_, '_> {
    fn remove(&mut self, member: Text) -> bool {
        let is_gone = self.log.key.remove(member);
        self.removed += i64::from(is_gone);
        is_gone
    }
}

impl Drop for Range<'_, '_> {
    fn drop(&mut self) {
        if self.removed == 0 {
            return;
        }
        let (first, last) = match self.end {
            End::Oldest => (0, self.removed - 1),
            End::Newest => (-self.removed, -1),
        };
        self.log.context.replicate_zremrangebyrank(self.log.name, first, last);
        self.log.events.push(EventClass::SortedSet, c"zremrangebyrank");
        if self.log.key.kind() == Kind::Empty {
            self.log.events.push(EventClass::Generic, c"del");
        }
    }
}
