//! Applying: a planned change as native writes, and the same writes for replicas and the AOF.

use super::member::{self, Member};
use crate::limiter::{Change, Entry, MAX_TRIMMED, Refund};
use crate::redis::{Context, EventClass, Key, Kind, OwnedText, Text};
use crate::store::WriteFailed;

/// Which writes happened, for the events that tell of them.
#[derive(Default)]
struct Written {
    unlinked: bool,
    added: bool,
    removed: bool,
    trimmed: bool,
    expiry_set: bool,
    emptied: bool,
}

/// Writes `change` to the log at `name`.
///
/// Each write is replicated before the next is tried, as the native command that has the same
/// effect, so a fault between two leaves replicas and the AOF as the key is. The new entry comes
/// before any removal: so the set never empties, which would lose its expiry. Keyspace events are
/// those of the native commands, and come when the key is closed.
///
/// # Errors
/// If the server refuses a write; what was written up to then is replicated.
pub fn apply(context: &Context, name: Text, change: &Change) -> Result<(), WriteFailed> {
    let mut written = Written::default();
    let outcome = write(context, name, change, &mut written);
    notify(context, name, &written);
    outcome
}

fn write(
    context: &Context,
    name: Text,
    change: &Change,
    written: &mut Written,
) -> Result<(), WriteFailed> {
    let key = Key::open_to_write(context, name);
    if change.drop_log {
        key.unlink().then_some(()).ok_or(WriteFailed)?;
        context.replicate_unlink(name);
        written.unlinked = true;
    }

    let is_new = key.len() == 0;
    written.added = add(context, name, &key, &change.entry)?;
    if let Some(replaced) = &change.replaced {
        written.removed = remove(context, name, &key, replaced);
    }
    if let Some(until_ms) = change.trim_until_ms {
        let trimmed = trim(&key, until_ms) as i64;
        written.trimmed = trimmed > 0;
        if written.trimmed {
            context.replicate_zremrangebyrank(name, 0, trimmed - 1);
        }
    }
    if is_new || change.expiry_due {
        let at_ms = change.expires_at_ms as i64;
        key.set_expires_at_ms(at_ms).then_some(()).ok_or(WriteFailed)?;
        context.replicate_pexpireat(name, at_ms);
        written.expiry_set = true;
    }
    Ok(())
}

/// Removes entries from the old end, up to those stamped `until_ms`, and tells how many. Stops at
/// one that is not of our form, for the next call to find.
///
/// One seek and one removal each: a removal ends the seek, and calling the server's own command
/// pays from about five entries on, which only a backlog has.
fn trim(key: &Key, until_ms: u64) -> u64 {
    for trimmed in 0..MAX_TRIMMED {
        let oldest = key.first_in(f64::NEG_INFINITY, until_ms as f64);
        let is_gone = oldest.is_some_and(|(score, text)| {
            let is_ours = member::parse(score, text.text().bytes()).is_some();
            is_ours && key.remove(text.text())
        });
        if !is_gone {
            return trimmed;
        }
    }
    MAX_TRIMMED
}

/// Takes back what `refund` says from the log at `name`.
///
/// Replicated and told as [`apply`] does. Taking everything back deletes the key.
///
/// # Errors
/// If the server refuses a write; what was written up to then is replicated.
pub fn refund(context: &Context, name: Text, refund: &Refund) -> Result<(), WriteFailed> {
    let mut written = Written::default();
    let outcome = write_refund(context, name, refund, &mut written);
    notify(context, name, &written);
    outcome
}

fn write_refund(
    context: &Context,
    name: Text,
    refund: &Refund,
    written: &mut Written,
) -> Result<(), WriteFailed> {
    let key = Key::open_to_write(context, name);
    let removed = remove_newest(&key, refund.removed) as i64;
    written.trimmed = removed > 0;
    written.emptied = key.kind() == Kind::Empty;
    if written.trimmed {
        context.replicate_zremrangebyrank(name, -removed, -1);
    }
    if let Some((former, shrunk)) = &refund.shrunk {
        written.added = add(context, name, &key, shrunk)?;
        written.removed = remove(context, name, &key, former);
    }
    Ok(())
}

/// Removes the newest `count` entries and tells how many it removed.
fn remove_newest(key: &Key, count: u64) -> u64 {
    for removed in 0..count {
        let newest = key.last_in(f64::NEG_INFINITY, f64::INFINITY);
        if !newest.is_some_and(|(_, text)| key.remove(text.text())) {
            return removed;
        }
    }
    count
}

/// Adds an entry, here and for replicas.
fn add(context: &Context, name: Text, key: &Key, entry: &Entry) -> Result<bool, WriteFailed> {
    let member = OwnedText::new(Member::of(entry).as_bytes());
    key.add(member::score_of(entry), member.text()).then_some(()).ok_or(WriteFailed)?;
    context.replicate_zadd(name, entry.stamp_ms as i64, member.text());
    Ok(true)
}

/// Removes an entry, here and for replicas; says whether it was there.
fn remove(context: &Context, name: Text, key: &Key, entry: &Entry) -> bool {
    let member = OwnedText::new(Member::of(entry).as_bytes());
    let removed = key.remove(member.text());
    if removed {
        context.replicate_zrem(name, member.text());
    }
    removed
}

fn notify(context: &Context, name: Text, written: &Written) {
    let events = [
        (written.unlinked, EventClass::Generic, c"del"),
        (written.added, EventClass::SortedSet, c"zadd"),
        (written.removed, EventClass::SortedSet, c"zrem"),
        (written.trimmed, EventClass::SortedSet, c"zremrangebyrank"),
        (written.expiry_set, EventClass::Generic, c"expire"),
        (written.emptied, EventClass::Generic, c"del"),
    ];
    for (_, class, event) in events.iter().filter(|(happened, ..)| *happened) {
        context.notify(*class, event, name);
    }
}
