//! A brute-force twin of the sliding window counter, written from the documentation alone.
//!
//! It keeps what was charged in every aligned window ever, counts with fractions, and finds a wait
//! by trying.

use super::{Call, MAX_STORED_UNITS, Reply};
use std::collections::BTreeMap;

/// Windows that one limiter may keep.
const MAX_WINDOWS: usize = 8;

/// All that was ever charged under one window length: units by the window's start.
#[derive(Clone, Debug, Default)]
struct Charges {
    by_start_ms: BTreeMap<u64, u128>,
}

/// A limiter's counters.
#[derive(Clone, Debug, Default)]
pub struct CounterModel {
    charges: BTreeMap<u64, Charges>,
    /// When the key expires, in Unix milliseconds of the server's clock.
    pub expires_at_ms: Option<u64>,
}

impl Charges {
    /// The latest start charged, 0 if none is.
    fn latest_ms(&self) -> u64 {
        self.by_start_ms.keys().next_back().copied().unwrap_or(0)
    }

    /// The start that a time belongs to: never before the latest one charged.
    fn start_ms(&self, window_ms: u64, at_ms: u64) -> u64 {
        (at_ms / window_ms * window_ms).max(self.latest_ms())
    }

    /// The start of the window before.
    fn before_ms(start_ms: u64, window_ms: u64) -> Option<u64> {
        start_ms.checked_sub(window_ms)
    }

    /// Adds units, as many as fit; answers how many did.
    fn charge(&mut self, start_ms: u64, units: u64) -> u128 {
        let held = self.by_start_ms.entry(start_ms).or_default();
        let added = u128::from(units).min(MAX_STORED_UNITS - *held);
        *held += added;
        added
    }

    /// Takes units back of those; answers how many it took.
    fn refund(&mut self, start_ms: u64, units: u128) -> u128 {
        let Some(held) = self.by_start_ms.get_mut(&start_ms) else { return 0 };
        let taken = units.min(*held);
        *held -= taken;
        taken
    }

    fn units(&self, start_ms: u64) -> u128 {
        self.by_start_ms.get(&start_ms).copied().unwrap_or(0)
    }

    /// The estimate, in units times `window_ms`, so that it is an integer.
    fn estimate(&self, window_ms: u64, at_ms: u64) -> u128 {
        let start_ms = self.start_ms(window_ms, at_ms);
        let elapsed_ms = at_ms.saturating_sub(start_ms);
        let previous =
            Self::before_ms(start_ms, window_ms).map_or(0, |before_ms| self.units(before_ms));
        previous * u128::from(window_ms - elapsed_ms) + self.units(start_ms) * u128::from(window_ms)
    }

    fn usage(&self, window_ms: u64, at_ms: u64) -> u128 {
        self.estimate(window_ms, at_ms) / u128::from(window_ms)
    }

    /// The first delay after which `done`, which it stays: usage falls by itself. Tries every
    /// millisecond of a short time; halves a long one.
    fn delay_ms(&self, window_ms: u64, now_ms: u64, done: impl Fn(u128) -> bool) -> i64 {
        let done_at = |at_ms: u64| done(self.usage(window_ms, at_ms));
        let last_ms = self.start_ms(window_ms, now_ms) + 2 * window_ms;
        let (mut low_ms, mut high_ms) = (now_ms, last_ms);
        while low_ms < high_ms {
            let middle_ms = if high_ms - low_ms <= 300 { low_ms } else { low_ms.midpoint(high_ms) };
            if done_at(middle_ms) {
                high_ms = middle_ms;
            } else {
                low_ms = middle_ms + 1;
            }
        }
        assert!(done_at(high_ms));
        (high_ms - now_ms) as i64
    }
}

impl CounterModel {
    /// The counters as they would be stored: `(window_ms, start_ms, current, previous)`.
    pub fn stored(&self) -> Vec<(u64, u64, u64, u64)> {
        let stored = self.charges.iter().map(|(window_ms, charges)| {
            let start_ms = charges.latest_ms();
            let before_ms = Charges::before_ms(start_ms, *window_ms);
            let previous = before_ms.map_or(0, |before_ms| charges.units(before_ms));
            (*window_ms, start_ms, charges.units(start_ms) as u64, previous as u64)
        });
        stored.collect()
    }

    /// Whether nothing is counted from `at_ms` on.
    pub fn is_empty_at(&self, at_ms: u64) -> bool {
        self.charges.iter().all(|(window_ms, charges)| charges.usage(*window_ms, at_ms) == 0)
    }

    /// Answers a call and charges what it charges.
    pub fn swc(&mut self, call: &Call) -> Reply {
        let mut after = self.clone();
        let latest_ms = call.now_ms.max(call.clock_ms);
        for (window_ms, _) in &call.windows {
            let charges = after.charges.entry(*window_ms).or_default();
            if charges.latest_ms() > latest_ms + window_ms {
                charges.by_start_ms.clear();
            }
        }
        let cost = u128::from(call.cost);
        let fits = |(window_ms, limit): &(u64, u64)| {
            let usage = after.charges[window_ms].usage(*window_ms, call.now_ms);
            usage + cost <= u128::from(*limit)
        };
        let allowed = call.windows.iter().all(fits);
        let (mut written, mut started) = (false, false);
        if (allowed || call.force) && call.cost > 0 {
            for (window_ms, _) in &call.windows {
                let charges = after.charges.get_mut(window_ms).unwrap();
                let start_ms = charges.start_ms(*window_ms, call.now_ms);
                let starts = !charges.by_start_ms.contains_key(&start_ms);
                let charged = charges.charge(start_ms, call.cost) > 0;
                written |= charged;
                started |= charged && starts;
            }
        }
        let reply = after.report(call, allowed);
        if written {
            after.forget(call);
            after.expire(call, started);
            *self = after;
        }
        reply
    }

    /// Takes units back, in each window of the current and then of the one before; answers the most
    /// that it took in any.
    pub fn refund(&mut self, units: u64, now_ms: u64, clock_ms: u64) -> u64 {
        let latest_ms = now_ms.max(clock_ms);
        let refunds = self.charges.iter_mut().map(|(window_ms, charges)| {
            if charges.latest_ms() > latest_ms + window_ms {
                return 0;
            }
            let start_ms = charges.start_ms(*window_ms, now_ms);
            let current = charges.refund(start_ms, u128::from(units));
            let left = u128::from(units) - current;
            let before_ms = Charges::before_ms(start_ms, *window_ms);
            current + before_ms.map_or(0, |before_ms| charges.refund(before_ms, left))
        });
        refunds.max().unwrap_or(0) as u64
    }

    /// What a write does to the windows that the call does not name: those that have passed go, by
    /// the request's time and by the server's clock, and those that end first if there are too many.
    fn forget(&mut self, call: &Call) {
        let latest_ms = call.now_ms.max(call.clock_ms);
        let passed_ms = call.now_ms.min(call.clock_ms);
        let is_named = |window_ms: u64| call.windows.iter().any(|named| named.0 == window_ms);
        self.charges.retain(|window_ms, charges| {
            let start_ms = charges.latest_ms();
            let counts = start_ms + 2 * window_ms > passed_ms;
            is_named(*window_ms) || (counts && start_ms <= latest_ms + window_ms)
        });
        while self.charges.len() > MAX_WINDOWS {
            let others = self.charges.iter().filter(|(window_ms, _)| !is_named(**window_ms));
            let ends_first = others.min_by_key(|(window_ms, charges)| {
                (charges.latest_ms() + 2 * **window_ms, **window_ms)
            });
            let window_ms = *ends_first.expect("a call names at most as many").0;
            self.charges.remove(&window_ms);
        }
    }

    /// When the last window ends, set when one starts, or when less than the longest of the call is left.
    /// A time behind the clock puts it no further away than three windows, and one ahead of it brings it
    /// forward for nobody.
    fn expire(&mut self, call: &Call, started: bool) {
        let lives = self.charges.iter().map(|(window_ms, charges)| {
            let ends_ms = charges.latest_ms() + 2 * window_ms;
            ends_ms.saturating_sub(call.now_ms).min(3 * window_ms)
        });
        let lives_ms = lives.max().expect("a window was charged");
        let least_ms = call.clock_ms + lives_ms.min(call.longest_ms());
        if started || self.expires_at_ms.is_none_or(|expiry_ms| expiry_ms < least_ms) {
            let kept_ms = self.expires_at_ms.filter(|_| call.now_ms > call.clock_ms).unwrap_or(0);
            self.expires_at_ms = Some((call.clock_ms + lives_ms).max(kept_ms));
        }
    }

    fn report(&self, call: &Call, allowed: bool) -> Reply {
        let cost = u128::from(call.cost);
        let reports = call.windows.iter().map(|(window_ms, limit)| {
            let charges = &self.charges[window_ms];
            let fits = |usage| usage + cost <= u128::from(*limit);
            let retry_ms = match allowed {
                true => 0,
                false if call.cost > *limit => -1,
                false => charges.delay_ms(*window_ms, call.now_ms, fits),
            };
            let usage = charges.usage(*window_ms, call.now_ms);
            let reset_ms = charges.delay_ms(*window_ms, call.now_ms, |usage| usage == 0);
            let remaining = u128::from(*limit).saturating_sub(usage) as i64;
            [allowed.into(), *limit as i64, remaining, retry_ms, reset_ms, *window_ms as i64]
        });
        super::binding(reports, allowed)
    }
}
