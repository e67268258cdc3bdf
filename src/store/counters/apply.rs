//! Applying: a planned change as native writes, and the same writes for replicas and the AOF.

use super::field::{Name, Part};
use crate::decimal::Digits;
use crate::limiter::{
    Counter, CounterChange, CounterCharge, CounterRefund, CounterRefunds, MAX_WINDOWS,
};
use crate::redis::{Context, EventClass, Key, Kind, OwnedText, Text};
use crate::store::{Events, WriteFailed};

/// Writes `change` to the counters at `name`.
///
/// Each write is replicated before the next is tried. What is added comes before what is removed, so
/// that the hash never empties. Keyspace events are those of the native commands, and come when the
/// key is closed.
///
/// # Errors
/// If the server refuses the expiry; what was written up to then is replicated.
pub fn apply(context: &Context, name: Text, change: &CounterChange) -> Result<(), WriteFailed> {
    let mut hash = Hash::open(context, name);
    let outcome = hash.charge(change);
    hash.close();
    outcome
}

/// Takes back what `refunds` says from the counters at `name`.
///
/// Replicated and told as [`apply`] does.
pub fn refund(context: &Context, name: Text, refunds: &CounterRefunds) {
    let mut hash = Hash::open(context, name);
    hash.refund(refunds);
    hash.close();
}

/// Counters open for writing, here and for replicas and the AOF.
struct Hash<'a> {
    context: &'a Context,
    name: Text<'a>,
    key: Key<'a>,
    /// A charge and a removal for each window, and the expiry; or two shrunk counts for each.
    events: Events<{ 2 * MAX_WINDOWS + 1 }>,
}

impl<'a> Hash<'a> {
    fn open(context: &'a Context, name: Text<'a>) -> Self {
        Self { context, name, key: Key::open_to_write(context, name), events: Events::new() }
    }

    /// Closes the key and tells what happened to it.
    fn close(self) {
        drop(self.key);
        self.events.tell(self.context, self.name);
    }

    fn charge(&mut self, change: &CounterChange) -> Result<(), WriteFailed> {
        let is_new = self.key.kind() == Kind::Empty;
        for CounterCharge { counter, added, starts } in change.charges() {
            if *starts || is_new {
                self.start(counter);
            } else {
                self.add(counter, Part::Current, *added as i64);
            }
        }
        for counter in change.removed() {
            self.remove(counter);
        }
        if is_new || change.expiry_due {
            self.set_expiry(change.expires_at_ms)?;
        }
        Ok(())
    }

    fn refund(&mut self, refunds: &CounterRefunds) {
        if self.key.kind() == Kind::Empty {
            return;
        }
        for CounterRefund { counter, current, previous } in refunds.as_slice() {
            for (part, taken) in [(Part::Current, *current), (Part::Previous, *previous)] {
                if taken > 0 {
                    self.add(counter, part, -(taken as i64));
                }
            }
        }
    }

    /// Writes all of a counter.
    fn start(&mut self, counter: &Counter) {
        let names = Part::ALL.map(|part| Name::of(counter.window_ms, part));
        let values = Part::ALL.map(|part| part.of(counter));
        for (field, value) in names.iter().zip(values) {
            self.key.set_field(field.as_c_str(), text_of(value).text());
        }
        let [start, current, previous] = names.each_ref().map(Name::as_c_str);
        let [start_ms, current_units, previous_units] = values.map(|value| value as i64);
        let fields = [(start, start_ms), (current, current_units), (previous, previous_units)];
        self.context.replicate_hset(self.name, fields);
        self.events.push(EventClass::Hash, c"hset");
    }

    /// Writes one part of `counter`, which differs by `increment` from what is stored.
    fn add(&mut self, counter: &Counter, part: Part, increment: i64) {
        let field = Name::of(counter.window_ms, part);
        self.key.set_field(field.as_c_str(), text_of(part.of(counter)).text());
        self.context.replicate_hincrby(self.name, field.as_c_str(), increment);
        self.events.push(EventClass::Hash, c"hincrby");
    }

    /// Removes all of a counter.
    fn remove(&mut self, counter: &Counter) {
        let names = Part::ALL.map(|part| Name::of(counter.window_ms, part));
        let fields = names.each_ref().map(Name::as_c_str);
        for field in fields {
            self.key.remove_field(field);
        }
        self.context.replicate_hdel(self.name, fields);
        self.events.push(EventClass::Hash, c"hdel");
    }

    fn set_expiry(&mut self, at_ms: u64) -> Result<(), WriteFailed> {
        let at_ms = at_ms as i64;
        self.key.set_expires_at_ms(at_ms).then_some(()).ok_or(WriteFailed)?;
        self.context.replicate_pexpireat(self.name, at_ms);
        self.events.push(EventClass::Generic, c"expire");
        Ok(())
    }
}

fn text_of(value: u64) -> OwnedText {
    OwnedText::new(Digits::of(value).as_bytes())
}
