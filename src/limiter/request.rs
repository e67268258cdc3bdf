//! What is asked: windows, a cost and a time.

use std::ops::Deref;

/// Windows that one request may name.
pub const MAX_WINDOWS: usize = 8;

/// The longest window: 3650 days, in milliseconds.
pub const MAX_WINDOW_MS: u64 = 3650 * 24 * 60 * 60 * 1000;

/// The largest limit and the largest cost: 2^53 - 1, which every client's number type holds.
pub const MAX_UNITS: u64 = (1 << 53) - 1;

/// At most `limit` units in any half-open stretch of `window_ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Length in milliseconds, 1 to [`MAX_WINDOW_MS`].
    pub window_ms: u64,
    /// Units admitted inside it, 0 to [`MAX_UNITS`]; 0 denies every request that costs anything.
    pub limit: u64,
}

impl Window {
    /// Whether an entry stamped `stamp_ms` is inside the window at `now_ms`: `now - W < stamp`.
    pub fn counts(&self, stamp_ms: u64, now_ms: u64) -> bool {
        now_ms < self.leaves_at_ms(stamp_ms)
    }

    /// The earliest stamp that is inside the window at `now_ms`.
    pub fn opens_at_ms(&self, now_ms: u64) -> u64 {
        (now_ms + 1).saturating_sub(self.window_ms)
    }

    /// The first millisecond at which an entry stamped `stamp_ms` no longer counts.
    pub fn leaves_at_ms(&self, stamp_ms: u64) -> u64 {
        stamp_ms + self.window_ms
    }
}

/// One to [`MAX_WINDOWS`] windows of different lengths, in the order written.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    list: [Window; MAX_WINDOWS],
    len: usize,
}

/// Why a window cannot join the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowsError {
    /// There are [`MAX_WINDOWS`] already.
    TooMany,
    /// One of the same length is there already.
    Duplicate,
}

impl Windows {
    /// A single window.
    pub fn new(first: Window) -> Self {
        let mut list = [Window::default(); MAX_WINDOWS];
        list[0] = first;
        Self { list, len: 1 }
    }

    /// Adds a window behind the others.
    ///
    /// # Errors
    /// If the list is full, or one of this length is in it.
    pub fn push(&mut self, window: Window) -> Result<(), WindowsError> {
        if self.iter().any(|other| other.window_ms == window.window_ms) {
            return Err(WindowsError::Duplicate);
        }
        let free = self.list.get_mut(self.len).ok_or(WindowsError::TooMany)?;
        *free = window;
        self.len += 1;
        Ok(())
    }

    /// The longest, in milliseconds.
    pub fn longest_ms(&self) -> u64 {
        self.iter().fold(0, |longest, window| longest.max(window.window_ms))
    }

    /// The shortest, in milliseconds.
    pub fn shortest_ms(&self) -> u64 {
        self.iter().fold(MAX_WINDOW_MS, |shortest, window| shortest.min(window.window_ms))
    }
}

impl Deref for Windows {
    type Target = [Window];

    fn deref(&self) -> &[Window] {
        &self.list[..self.len]
    }
}

/// When the cost is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// Not at all: the request only asks.
    Never,
    /// If the request is allowed.
    IfAllowed,
    /// Whatever the verdict: what it pays for has happened already.
    Always,
}

/// One request, complete: the same request on the same log always has the same answer.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The windows that it must fit, all of them.
    pub windows: Windows,
    /// Units it takes, 0 to [`MAX_UNITS`].
    pub cost: u64,
    /// When they are charged.
    pub charge: Charge,
    /// If given, stamps are rounded up to multiples of it and charges of one stamp share an entry.
    /// 1 to the shortest window.
    pub precision_ms: Option<u64>,
    /// Entries from which on a log is kept as with a precision of its longest window divided by
    /// this; 0 for no such bound.
    pub max_entries: u64,
    /// The time of the request in Unix milliseconds, 0 to 2^52 + [`MAX_WINDOW_MS`].
    pub now_ms: u64,
    /// The server's clock in Unix milliseconds, 0 to 2^52: a key's expiry runs on it.
    pub clock_ms: u64,
}
