//! The sliding window counter: what is kept of a window, and its arithmetic.
//!
//! Windows are aligned to the Unix epoch. Of each, two counters are kept: units of the current
//! window and of the one before. The one before is taken to have come evenly, so that the part of
//! it that still lies inside the sliding window is its share of time:
//!
//! ```text
//! estimate = previous * (W - elapsed) / W + current
//! ```
//!
//! This is the approximation that Cloudflare described in "How we built rate limiting capable of
//! scaling to millions of domains" (2017). All of it is exact here, in integers: usage is the floor
//! of the estimate, and waits are solved for, not searched.

use super::log::MAX_STORED_UNITS;
use super::request::MAX_WINDOWS;

/// Two counters of one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    /// Length of the window in milliseconds, 1 to [`MAX_WINDOW_MS`](super::MAX_WINDOW_MS).
    pub window_ms: u64,
    /// When the current window began, in Unix milliseconds: a multiple of its length, 0 to
    /// [`MAX_STAMP_MS`](super::MAX_STAMP_MS).
    pub start_ms: u64,
    /// Units charged in the current window, 0 to [`MAX_STORED_UNITS`].
    pub current: u64,
    /// Units charged in the window before, 0 to [`MAX_STORED_UNITS`].
    pub previous: u64,
}

impl Counter {
    /// A counter of nothing, of the window that `now_ms` is in.
    pub fn new(window_ms: u64, now_ms: u64) -> Self {
        Self { window_ms, start_ms: now_ms - now_ms % window_ms, current: 0, previous: 0 }
    }

    /// The first millisecond at which nothing it counts now can matter.
    pub fn ends_at_ms(&self) -> u64 {
        self.start_ms + 2 * self.window_ms
    }

    /// Whether it was started by a clock far ahead of both the request's time and the server's.
    pub fn runs_ahead_of(&self, now_ms: u64, clock_ms: u64) -> bool {
        self.start_ms > now_ms.max(clock_ms) + self.window_ms
    }

    /// The same counter as seen at `now_ms`. A time before its start counts as its start.
    pub fn rotated_to(&self, now_ms: u64) -> Self {
        let fresh = Self::new(self.window_ms, now_ms);
        match fresh.start_ms.checked_sub(self.start_ms) {
            None | Some(0) => *self,
            Some(passed_ms) if passed_ms == self.window_ms => {
                Self { previous: self.current, ..fresh }
            }
            Some(_) => fresh,
        }
    }

    /// Units counted at `now_ms`, the floor of the estimate. The counter must be as seen at that time,
    /// [`rotated_to`](Self::rotated_to) it; a time before its start counts as its start.
    pub fn usage(&self, now_ms: u64) -> u64 {
        debug_assert!(now_ms < self.start_ms + self.window_ms, "the window is over");
        let left_ms = self.window_ms - now_ms.saturating_sub(self.start_ms);
        let share = u128::from(self.previous) * u128::from(left_ms) / u128::from(self.window_ms);
        // The share is at most `previous`, and two counters make less than 2^64.
        share as u64 + self.current
    }

    /// Units of a charge that the current counter can take in.
    pub fn room(&self) -> u64 {
        MAX_STORED_UNITS - self.current
    }

    /// The first millisecond, from the start of the current window on, at which usage is no more
    /// than `units` if nothing is charged. Usage never rises by itself, so it stays there.
    pub fn falls_to_at_ms(&self, units: u64) -> u64 {
        match units.checked_sub(self.current) {
            Some(units) => self.start_ms + self.elapsed_until(self.previous, units),
            None => {
                let next_ms = self.start_ms + self.window_ms;
                next_ms + self.elapsed_until(self.current, units)
            }
        }
    }

    /// The first elapsed time `e`, 0 to `W`, at which `floor(previous * (W - e) / W) <= units`.
    ///
    /// The floor is at most `units` just if `previous * (W - e) < (units + 1) * W`.
    fn elapsed_until(&self, previous: u64, units: u64) -> u64 {
        if previous <= units {
            return 0;
        }
        let below = (u128::from(units) + 1) * u128::from(self.window_ms);
        let left_ms = (below - 1) / u128::from(previous);
        // `units < previous`, so what is left is less than a window.
        self.window_ms - left_ms as u64
    }
}

/// The counters of one limiter: at most [`MAX_WINDOWS`], each of another length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    list: [Counter; MAX_WINDOWS],
    len: usize,
}

impl Counters {
    /// The counters in the order in which they were added.
    pub fn as_slice(&self) -> &[Counter] {
        &self.list[..self.len]
    }

    /// The counter of that window length.
    pub fn find(&self, window_ms: u64) -> Option<&Counter> {
        self.as_slice().iter().find(|counter| counter.window_ms == window_ms)
    }

    /// Adds a counter; says whether there was room.
    #[must_use]
    pub fn push(&mut self, counter: Counter) -> bool {
        let Some(free) = self.list.get_mut(self.len) else { return false };
        *free = counter;
        self.len += 1;
        true
    }

    /// Keeps the counters of which `keep` holds.
    pub fn retain(&mut self, keep: impl Fn(&Counter) -> bool) {
        let all = *self;
        self.len = 0;
        for counter in all.as_slice().iter().filter(|counter| keep(counter)) {
            self.list[self.len] = *counter;
            self.len += 1;
        }
    }
}
