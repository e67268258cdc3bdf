//! Applying: a planned change as native writes, and the same writes for replicas and the AOF.

use super::field::{Name, Part};
use crate::decimal::Digits;
use crate::limiter::{Counter, CounterChange, CounterCharge, CounterRefund, CounterRefunds};
use crate::redis::{Context, EventClass, OwnedText, Text};
use crate::store::writer::Writer;
use crate::store::{WriteFailed, written};

/// Writes `change` to the counters at `name`.
///
/// Each write is replicated before the next is tried. What is added comes before what is removed, so
/// that the hash never empties. Keyspace events are those of the native commands, and come when the
/// key is closed.
///
/// # Errors
/// If the server refuses a write; what was written up to then is replicated.
pub fn apply(context: &Context, name: Text, change: &CounterChange) -> Result<(), WriteFailed> {
    Writer::write(context, name, |hash| charge(hash, change))
}

/// Takes back what `refunds` says from the counters at `name`.
///
/// Replicated and told as [`apply`] does.
///
/// # Errors
/// If the server refuses a write; what was written up to then is replicated.
pub fn refund(context: &Context, name: Text, refunds: &CounterRefunds) -> Result<(), WriteFailed> {
    Writer::write(
        context,
        name,
        |hash| {
            if hash.is_empty() { Ok(()) } else { take_back(hash, refunds) }
        },
    )
}

fn charge(hash: &mut Writer, change: &CounterChange) -> Result<(), WriteFailed> {
    let is_new = hash.is_empty();
    for CounterCharge { counter, added, starts } in change.charges() {
        if *starts || is_new {
            start(hash, counter)?;
        } else {
            add(hash, counter, Part::Current, *added as i64)?;
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
                add(hash, counter, part, -(taken as i64))?;
            }
        }
    }
    Ok(())
}

/// Writes all of a counter, in one write: what replicas get is one command, too.
fn start(hash: &mut Writer, counter: &Counter) -> Result<(), WriteFailed> {
    let names = Part::ALL.map(|part| Name::of(counter.window_ms, part));
    let names = names.each_ref().map(Name::as_c_str);
    let values = Part::ALL.map(|part| part.of(counter));
    let texts = values.map(text_of);
    written(hash.key.set_fields(names, texts.each_ref().map(OwnedText::text)))?;
    let [start, current, previous] = names;
    let [start_ms, current_units, previous_units] = values.map(|value| value as i64);
    let fields = [(start, start_ms), (current, current_units), (previous, previous_units)];
    hash.context.replicate_hset(hash.name, fields);
    hash.note(EventClass::Hash, c"hset");
    Ok(())
}

/// Writes one part of `counter`, which differs by `increment` from what is stored.
fn add(
    hash: &mut Writer,
    counter: &Counter,
    part: Part,
    increment: i64,
) -> Result<(), WriteFailed> {
    let name = Name::of(counter.window_ms, part);
    written(hash.key.set_field(name.as_c_str(), text_of(part.of(counter)).text()))?;
    hash.context.replicate_hincrby(hash.name, name.as_c_str(), increment);
    hash.note(EventClass::Hash, c"hincrby");
    Ok(())
}

/// Removes all of a counter.
fn remove(hash: &mut Writer, counter: &Counter) -> Result<(), WriteFailed> {
    let names = Part::ALL.map(|part| Name::of(counter.window_ms, part));
    let names = names.each_ref().map(Name::as_c_str);
    written(hash.key.remove_fields(names))?;
    hash.context.replicate_hdel(hash.name, names);
    hash.note(EventClass::Hash, c"hdel");
    Ok(())
}

fn text_of(value: u64) -> OwnedText {
    OwnedText::new(Digits::of(value).as_bytes())
}
