//! Applying: a planned change as native writes, and the same writes for replicas and the AOF.

use super::member::{self, Member};
use crate::limiter::{Change, Entry, MAX_TRIMMED};
use crate::redis::{Context, EventClass, Key, OwnedText, Text};

/// The server refused a write that it has no reason to refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteFailed;

/// Which of the writes happened.
#[derive(Default)]
struct Written {
    unlinked: bool,
    added: bool,
    removed: bool,
    trimmed: u64,
    expiry_set: bool,
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
    let member = text_of(&change.entry);
    let score = member::score_of(&change.entry);
    key.add(score, member.text()).then_some(()).ok_or(WriteFailed)?;
    context.replicate_zadd(name, change.entry.stamp_ms as i64, member.text());
    written.added = true;

    if let Some(replaced) = &change.replaced {
        let member = text_of(replaced);
        written.removed = key.remove(member.text());
        if written.removed {
            context.replicate_zrem(name, member.text());
        }
    }
    if let Some(until_ms) = change.trim_until_ms {
        written.trimmed = trim(&key, until_ms);
        if written.trimmed > 0 {
            context.replicate_zremrangebyrank(name, written.trimmed as i64 - 1);
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

fn notify(context: &Context, name: Text, written: &Written) {
    let events = [
        (written.unlinked, EventClass::Generic, c"del"),
        (written.added, EventClass::SortedSet, c"zadd"),
        (written.removed, EventClass::SortedSet, c"zrem"),
        (written.trimmed > 0, EventClass::SortedSet, c"zremrangebyrank"),
        (written.expiry_set, EventClass::Generic, c"expire"),
    ];
    for (_, class, event) in events.iter().filter(|(happened, ..)| *happened) {
        context.notify(*class, event, name);
    }
}

fn text_of(entry: &Entry) -> OwnedText {
    OwnedText::new(Member::of(entry).as_bytes())
}
