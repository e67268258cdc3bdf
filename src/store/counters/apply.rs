//! Applying: a planned change as native writes, and the same writes for replicas and the AOF.

use super::field::{Name, Part};
use crate::decimal::Digits;
use crate::limiter::{Counter, CounterChange, CounterCharge, CounterRefund, CounterRefunds};
use crate::redis::{Context, EventClass, Key, Kind, OwnedText, Text};
use crate::store::WriteFailed;
use std::ffi::CStr;

/// Writes `change` to the counters at `name`.
///
/// Each write is replicated before the next is tried. Keyspace events are those of the native
/// commands, and come when the key is closed.
///
/// # Errors
/// If the server refuses the expiry; what was written up to then is replicated.
pub fn apply(context: &Context, name: Text, change: &CounterChange) -> Result<(), WriteFailed> {
    let mut key = Key::open_to_write(context, name);
    let is_new = key.kind() == Kind::Empty;
    for charge in change.charges() {
        if charge.starts || is_new {
            start(context, name, &mut key, &charge.counter);
        } else {
            let CounterCharge { counter, added, .. } = charge;
            add(context, name, &mut key, counter, Part::Current, *added as i64);
        }
    }
    for counter in change.removed() {
        remove(context, name, &mut key, counter);
    }
    let sets_expiry = is_new || change.expiry_due;
    if sets_expiry {
        let at_ms = change.expires_at_ms as i64;
        key.set_expires_at_ms(at_ms).then_some(()).ok_or(WriteFailed)?;
        context.replicate_pexpireat(name, at_ms);
    }
    drop(key);

    for charge in change.charges() {
        let event = if charge.starts || is_new { c"hset" } else { c"hincrby" };
        context.notify(EventClass::Hash, event, name);
    }
    for _ in change.removed() {
        context.notify(EventClass::Hash, c"hdel", name);
    }
    if sets_expiry {
        context.notify(EventClass::Generic, c"expire", name);
    }
    Ok(())
}

/// Takes back what `refunds` says from the counters at `name`.
///
/// Replicated and told as [`apply`] does.
pub fn refund(context: &Context, name: Text, refunds: &CounterRefunds) {
    let mut key = Key::open_to_write(context, name);
    let mut writes = 0;
    for CounterRefund { counter, current, previous } in refunds.as_slice() {
        for (part, taken) in [(Part::Current, *current), (Part::Previous, *previous)] {
            if taken > 0 {
                add(context, name, &mut key, counter, part, -(taken as i64));
                writes += 1;
            }
        }
    }
    drop(key);
    for _ in 0..writes {
        context.notify(EventClass::Hash, c"hincrby", name);
    }
}

/// Writes all of a counter.
fn start(context: &Context, name: Text, key: &mut Key, counter: &Counter) {
    let names = Part::ALL.map(|part| Name::of(counter.window_ms, part));
    let values = Part::ALL.map(|part| part.of(counter));
    for (field, value) in names.iter().zip(values) {
        key.set_field(field.as_c_str(), text_of(value).text());
    }
    let [first, second, third] = &names;
    let fields = [first, second, third].map(Name::as_c_str);
    let [start, current, previous] = values.map(|value| value as i64);
    let pairs = [(fields[0], start), (fields[1], current), (fields[2], previous)];
    context.replicate_hset(name, pairs);
}

/// Writes one part of `counter`, which differs by `increment` from what is stored.
fn add(
    context: &Context,
    name: Text,
    key: &mut Key,
    counter: &Counter,
    part: Part,
    increment: i64,
) {
    let field = Name::of(counter.window_ms, part);
    key.set_field(field.as_c_str(), text_of(part.of(counter)).text());
    context.replicate_hincrby(name, field.as_c_str(), increment);
}

/// Removes all of a counter.
fn remove(context: &Context, name: Text, key: &mut Key, counter: &Counter) {
    let names = Part::ALL.map(|part| Name::of(counter.window_ms, part));
    let fields: [&CStr; 3] = names.each_ref().map(Name::as_c_str);
    for field in fields {
        key.remove_field(field);
    }
    context.replicate_hdel(name, fields);
}

fn text_of(value: u64) -> OwnedText {
    OwnedText::new(Digits::of(value).as_bytes())
}
