//! A brute-force twin of the sliding window counter, written from the contract alone.
//!
//! It keeps what was charged in every aligned window ever, counts with fractions, and finds a wait
//! by trying.

use super::{Call, Reply};
use std::collections::BTreeMap;

/// All that was ever charged under one window length: units by the window's start.
#[derive(Clone, Debug, Default)]
struct Charges {
    by_start_ms: BTreeMap<u64, u128>,
}

/// A limiter's counters.
#[derive(Clone, Debug, Default)]
pub struct CounterModel {
    charges: BTreeMap<u64, Charges>,
}

impl Charges {
    /// The start that a time belongs to: never before the latest one charged.
    fn start_ms(&self, window_ms: u64, at_ms: u64) -> u64 {
        let latest_ms = self.by_start_ms.keys().next_back().copied().unwrap_or(0);
        (at_ms / window_ms * window_ms).max(latest_ms)
    }

    fn units(&self, start_ms: u64) -> u128 {
        self.by_start_ms.get(&start_ms).copied().unwrap_or(0)
    }

    /// The estimate, in units times `window_ms`, so that it is an integer.
    fn estimate(&self, window_ms: u64, at_ms: u64) -> u128 {
        let start_ms = self.start_ms(window_ms, at_ms);
        let elapsed_ms = at_ms.saturating_sub(start_ms);
        let previous = start_ms.checked_sub(window_ms).map_or(0, |before_ms| self.units(before_ms));
        previous * u128::from(window_ms - elapsed_ms) + self.units(start_ms) * u128::from(window_ms)
    }

    fn usage(&self, window_ms: u64, at_ms: u64) -> u128 {
        self.estimate(window_ms, at_ms) / u128::from(window_ms)
    }

    /// The first delay after which `done`, which it stays: usage falls by itself. Tries every
    /// millisecond of short windows; halves the time of long ones.
    fn delay_ms(&self, window_ms: u64, now_ms: u64, done: impl Fn(u128) -> bool) -> i64 {
        let done_at = |at_ms: u64| done(self.usage(window_ms, at_ms));
        let last_ms = self.start_ms(window_ms, now_ms) + 2 * window_ms;
        let (mut low_ms, mut high_ms) = (now_ms, last_ms);
        while low_ms < high_ms {
            let middle_ms = if window_ms <= 1_000 { low_ms } else { low_ms.midpoint(high_ms) };
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
    /// Answers a call and charges what it charges.
    pub fn swc(&mut self, call: &Call) -> Reply {
        let mut after = self.clone();
        let reply = after.answer(call);
        if (reply[0] == 1 || call.force) && call.cost > 0 {
            after.forget(call);
            *self = after;
        }
        reply
    }

    fn answer(&mut self, call: &Call) -> Reply {
        let latest_ms = call.now_ms.max(call.clock_ms);
        for (window_ms, _) in &call.windows {
            let charges = self.charges.entry(*window_ms).or_default();
            if charges.start_ms(*window_ms, 0) > latest_ms + window_ms {
                charges.by_start_ms.clear();
            }
        }
        let cost = u128::from(call.cost);
        let fits = |(window_ms, limit): &(u64, u64)| {
            let usage = self.charges[window_ms].usage(*window_ms, call.now_ms);
            usage + cost <= u128::from(*limit)
        };
        let allowed = call.windows.iter().all(fits);
        if allowed || call.force {
            for (window_ms, _) in &call.windows {
                let charges = self.charges.get_mut(window_ms).unwrap();
                let start_ms = charges.start_ms(*window_ms, call.now_ms);
                *charges.by_start_ms.entry(start_ms).or_default() += cost;
            }
        }
        self.report(call, allowed)
    }

    /// What a write does to the windows that the call does not name.
    fn forget(&mut self, call: &Call) {
        let latest_ms = call.now_ms.max(call.clock_ms);
        self.charges.retain(|window_ms, charges| {
            let start_ms = charges.start_ms(*window_ms, 0);
            let is_named = call.windows.iter().any(|(named_ms, _)| named_ms == window_ms);
            let counts = start_ms + 2 * window_ms > call.now_ms;
            is_named || (counts && start_ms <= latest_ms + window_ms)
        });
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
