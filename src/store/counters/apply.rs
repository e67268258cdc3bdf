//! Applying: a planned change as native writes, and the same writes for replicas and the AOF.

use super::StoredCounters;
use super::field::{Name, Part};
use crate::decimal::Digits;
use crate::limiter::{Counter, CounterChange, CounterCharge, CounterRefund, CounterRefunds};
use crate::redis::{EventClass, OwnedText};
use crate::store::writer::Writer;
use crate::store::{WriteFailed, written};

impl StoredCounters<'_> {
    /// Writes `change`. The counters were opened to be changed.
    ///
    /// Each write is replicated before the next is tried. What is added comes before what is removed,
    /// so that the hash never empties. Keyspace events are those of the native commands, and come when
    /// the key is closed.
    ///
    /// # Errors
    /// If the server refuses a write; what was written up to then is replicated.
    pub fn apply(self, change: &CounterChange) -> Result<(), WriteFailed> {
        Writer::write(self.0, |hash| charge(hash, change))
    }

    /// Takes back what `refunds` says.
    ///
    /// Replicated and told as [`apply`](Self::apply) does.
    ///
    /// # Errors
    /// If the server refuses a write; what was written up to then is replicated.
    pub fn take_back(self, refunds: &CounterRefunds) -> Result<(), WriteFailed> {
        Writer::write(self.0, |hash| take_back(hash, refunds))
    }
}

fn charge(hash: &mut Writer, change: &CounterChange) -> Result<(), WriteFailed> {
    let is_new = hash.is_empty();
    for CounterCharge { counter, starts, .. } in change.charges() {
        if *starts || is_new {
            start(hash, counter)?;
        } else {
            set(hash, counter, Part::Current)?;
        }
    }
    for counter in change.removed() {
        remove(hash, counter)?;
    }
    if is_new || change.expiry_due {
        hash.set_expiry(change.expires_at_ms)?;
    }
    Ok(())
}

fn take_back(hash: &mut Writer, refunds: &CounterRefunds) -> Result<(), WriteFailed> {
    for CounterRefund { counter, current, previous } in refunds.as_slice() {
        for (part, taken) in [(Part::Current, *current), (Part::Previous, *previous)] {
            if taken > 0 {
                set(hash, counter, part)?;
            }
        }
    }
    Ok(())
}

/// Writes all of a counter, in one write: what replicas get is one command, too.
fn start(hash: &mut Writer, counter: &Counter) -> Result<(), WriteFailed> {
    let names = Part::ALL.map(|part| name_of(counter, part));
    let names = names.each_ref().map(OwnedText::text);
    let values = Part::ALL.map(|part| text_of(part.of(counter)));
    let values = values.each_ref().map(OwnedText::text);
    written(hash.key.set_fields(names, values))?;
    hash.context.replicate_hset_three(hash.name, names, values);
    hash.note(EventClass::Hash, c"hset");
    Ok(())
}

/// Writes one part of a counter.
///
/// Replicas get the value and no increment, which would leave an expiry of the field (7.4 on) in place
/// there, while it is gone here.
fn set(hash: &mut Writer, counter: &Counter, part: Part) -> Result<(), WriteFailed> {
    let (name, value) = (name_of(counter, part), text_of(part.of(counter)));
    written(hash.key.set_field(name.text(), value.text()))?;
    hash.context.replicate_hset(hash.name, name.text(), value.text());
    hash.note(EventClass::Hash, c"hset");
    Ok(())
}

/// Removes all of a counter.
fn remove(hash: &mut Writer, counter: &Counter) -> Result<(), WriteFailed> {
    let names = Part::ALL.map(|part| name_of(counter, part));
    let names = names.each_ref().map(OwnedText::text);
    written(hash.key.remove_fields(names))?;
    hash.context.replicate_hdel(hash.name, names);
    hash.note(EventClass::Hash, c"hdel");
    Ok(())
}

fn name_of(counter: &Counter, part: Part) -> OwnedText {
    OwnedText::new(Name::of(counter.window_ms, part).as_bytes())
}

fn text_of(value: u64) -> OwnedText {
    OwnedText::new(Digits::of(value).as_bytes())
}
