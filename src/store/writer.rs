//! A limiter open for writing: here, for replicas and the AOF, and for who listens.

use super::{WriteFailed, written};
use crate::limiter::MAX_WINDOWS;
use crate::redis::{Context, EventClass, Key, Kind, Text};
use std::ffi::CStr;

/// Events that one call may bring about: two for each window and one more.
const MAX_EVENTS: usize = 2 * MAX_WINDOWS + 1;

/// An open key, and the events of what is written to it.
///
/// Whoever writes replicates before writing on: a fault between two writes then leaves replicas and
/// the AOF as the key is.
pub struct Writer<'a> {
    pub context: &'a Context,
    pub name: Text<'a>,
    pub key: Key<'a>,
    events: [Option<(EventClass, &'static CStr)>; MAX_EVENTS],
    len: usize,
}

impl<'a> Writer<'a> {
    /// Lets `write` change the limiter at `key`, which need not exist, closes it, and tells of the writes
    /// in their order, also when one was refused. A panic closes it and announces nothing.
    pub fn write<T>(
        key: Key<'a>,
        write: impl FnOnce(&mut Self) -> Result<T, WriteFailed>,
    ) -> Result<T, WriteFailed> {
        let (context, name) = (key.context(), key.name());
        let mut writer = Self { context, name, key, events: [None; MAX_EVENTS], len: 0 };
        let outcome = write(&mut writer);
        writer.close();
        outcome
    }

    /// Whether there is nothing at the key.
    pub fn is_empty(&self) -> bool {
        self.key.kind() == Kind::Empty
    }

    /// Notes the event of a write.
    pub fn note(&mut self, class: EventClass, event: &'static CStr) {
        if let Some(free) = self.events.get_mut(self.len) {
            *free = Some((class, event));
            self.len += 1;
        }
    }

    /// Sets the expiry, in Unix milliseconds of the server's clock.
    ///
    /// # Errors
    /// If the server refuses it.
    pub fn set_expiry(&mut self, at_ms: u64) -> Result<(), WriteFailed> {
        let at_ms = at_ms as i64;
        written(self.key.set_expires_at_ms(at_ms))?;
        self.context.replicate_pexpireat(self.name, at_ms);
        self.note(EventClass::Generic, c"expire");
        Ok(())
    }

    fn close(self) {
        drop(self.key);
        for (class, event) in self.events[..self.len].iter().flatten() {
            self.context.notify(*class, event, self.name);
        }
    }
}
