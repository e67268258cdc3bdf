//! Applying: a planned change as native writes, and the same writes for replicas and the AOF.

use super::StoredLog;
use super::member::{self, Member};
use crate::decimal::Digits;
use crate::limiter::{Change, Entry, MAX_TRIMMED, Refund};
use crate::redis::{EventClass, OwnedText, Text};
use crate::store::writer::Writer;
use crate::store::{WriteFailed, written};

impl StoredLog<'_> {
    /// Writes `change`, and tells how many entries were trimmed. The log was opened to be changed.
    ///
    /// Each write is replicated before the next is tried, as the native command that has the same
    /// effect. The new entry comes before any removal: so the set never empties, which would lose its
    /// expiry. Keyspace events are those of the native commands, and come when the key is closed.
    ///
    /// # Errors
    /// If the server refuses a write; what was written up to then is replicated.
    pub fn apply(self, change: &Change) -> Result<u64, WriteFailed> {
        Writer::write(self.0, |log| charge(log, change))
    }

    /// Takes back what `refund` says. Taking everything back deletes the key.
    ///
    /// Replicated and told as [`apply`](Self::apply) does.
    ///
    /// # Errors
    /// If the server refuses a write; what was written up to then is replicated.
    pub fn take_back(self, refund: &Refund) -> Result<(), WriteFailed> {
        Writer::write(self.0, |log| take_back(log, refund))
    }
}

fn charge(log: &mut Writer, change: &Change) -> Result<u64, WriteFailed> {
    if change.drop_log {
        unlink(log)?;
    }
    let is_new = log.is_empty();
    add(log, &change.entry)?;
    if let Some(replaced) = &change.replaced {
        remove(log, replaced)?;
    }
    let trimmed = match change.trim_until_ms {
        Some(until_ms) => trim(log, until_ms)?,
        None => 0,
    };
    if is_new || change.expiry_due {
        log.set_expiry(change.expires_at_ms)?;
    }
    Ok(trimmed)
}

fn take_back(log: &mut Writer, refund: &Refund) -> Result<(), WriteFailed> {
    remove_newest(log, refund.removed)?;
    if let Some((former, shrunk)) = &refund.shrunk {
        add(log, shrunk)?;
        remove(log, former)?;
    }
    Ok(())
}

fn unlink(log: &mut Writer) -> Result<(), WriteFailed> {
    written(log.key.unlink())?;
    log.context.replicate_unlink(log.name);
    log.note(EventClass::Generic, c"del");
    Ok(())
}

fn add(log: &mut Writer, entry: &Entry) -> Result<(), WriteFailed> {
    let member = OwnedText::new(Member::of(entry).as_bytes());
    written(log.key.add(member::score_of(entry), member.text()))?;
    let score = Digits::of(entry.stamp_ms);
    log.context.replicate_zadd(log.name, score.as_bytes(), member.text());
    log.note(EventClass::SortedSet, c"zadd");
    Ok(())
}

fn remove(log: &mut Writer, entry: &Entry) -> Result<(), WriteFailed> {
    let member = OwnedText::new(Member::of(entry).as_bytes());
    written(log.key.remove(member.text()))?;
    log.context.replicate_zrem(log.name, member.text());
    log.note(EventClass::SortedSet, c"zrem");
    Ok(())
}

/// Removes entries from the old end, up to those stamped `until_ms`, and tells how many. Stops at
/// one that is not of our form, for the next call to find.
///
/// One seek and one removal each: a removal ends the seek, and calling the server's own command pays
/// from about five entries on, which only a backlog has.
fn trim(log: &mut Writer, until_ms: u64) -> Result<u64, WriteFailed> {
    let mut range = Range { log, removed: 0, end: End::Oldest };
    for _ in 0..MAX_TRIMMED {
        let oldest = range.log.key.first_in(f64::NEG_INFINITY, until_ms as f64);
        let ours =
            oldest.filter(|(score, text)| member::parse(*score, text.text().bytes()).is_some());
        let Some((_, member)) = ours else { break };
        range.remove(member.text())?;
    }
    Ok(range.removed as u64)
}

fn remove_newest(log: &mut Writer, count: u64) -> Result<(), WriteFailed> {
    let mut range = Range { log, removed: 0, end: End::Newest };
    for _ in 0..count {
        let newest = range.log.key.last_in(f64::NEG_INFINITY, f64::INFINITY);
        let Some((_, member)) = newest else { break };
        range.remove(member.text())?;
    }
    Ok(())
}

/// Entries being removed from one end: replicated as one command when done, or when a fault ends it.
struct Range<'a, 'b> {
    log: &'a mut Writer<'b>,
    removed: i64,
    end: End,
}

enum End {
    Oldest,
    Newest,
}

impl Range<'_, '_> {
    fn remove(&mut self, member: Text) -> Result<(), WriteFailed> {
        written(self.log.key.remove(member))?;
        self.removed += 1;
        Ok(())
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
        self.log.note(EventClass::SortedSet, c"zremrangebyrank");
        if self.log.is_empty() {
            self.log.note(EventClass::Generic, c"del");
        }
    }
}
