//! Brute-force twins of the limiters. This one, of the sliding window log, is written from the documentation alone.
//!
//! It keeps every charge in a vector, counts by summing, and finds a wait by trying every moment at
//! which something leaves. It knows nothing of running totals, look-ups or bisection, and shares no
//! code with the module.

#![allow(dead_code, reason = "no test uses all of it")]

mod counters;

pub use counters::CounterModel;

/// Entries that one charge may remove, and beyond which a log that has left is dropped whole.
const MAX_TRIMMED: usize = 128;
const MAX_WINDOW_MS: u64 = 3650 * 86_400_000;
const MAX_STORED_UNITS: u128 = i64::MAX as u128;

/// One call of `RL.SLIDE`.
#[derive(Clone, Debug)]
pub struct Call {
    /// `(window_ms, limit)`, in the order written.
    pub windows: Vec<(u64, u64)>,
    pub cost: u64,
    pub force: bool,
    pub precision_ms: Option<u64>,
    pub now_ms: u64,
    pub clock_ms: u64,
}

impl Call {
    /// A plain request of one unit, whose clock is the server's.
    pub fn new(windows: &[(u64, u64)], now_ms: u64) -> Self {
        Self {
            windows: windows.to_vec(),
            cost: 1,
            force: false,
            precision_ms: None,
            now_ms,
            clock_ms: now_ms,
        }
    }

    fn longest_ms(&self) -> u64 {
        self.windows.iter().map(|(window_ms, _)| *window_ms).max().unwrap()
    }
}

/// One entry: units charged at a time, and the total that the stored form shows with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charged {
    pub stamp_ms: u64,
    pub total: u64,
    pub cost: u64,
}

/// A limiter's log, and the expiry of its key.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub entries: Vec<Charged>,
    pub expires_at_ms: Option<u64>,
    /// Entries from which on the log is kept coarser; 0 for no bound.
    pub max_entries: usize,
}

/// The six fields of a reply.
pub type Reply = [i64; 6];

impl Model {
    /// A log of these entries, whose key never expires and that may grow.
    pub fn of(entries: Vec<Charged>) -> Self {
        Self { entries, ..Self::default() }
    }

    /// Answers a call and charges what it charges.
    pub fn slide(&mut self, call: &Call) -> Reply {
        self.try_slide(call).expect("the log can take the cost")
    }

    /// The same; `None` if the log cannot take the cost, and stays as it is.
    pub fn try_slide(&mut self, call: &Call) -> Option<Reply> {
        self.expire(call.clock_ms);
        let clock_ahead = self.is_ahead_of(call);
        let mut after = self.clone();
        if clock_ahead {
            after.forget();
        }

        let alone = after.is_alone(call);
        let allowed = after.admits(call, call.now_ms);
        let mut written = false;
        if (allowed || call.force) && call.cost > 0 {
            let charged = after.charge(call, alone);
            if charged < call.cost && !call.force {
                return None;
            }
            written = charged > 0;
        }
        let reply = after.report(call, allowed);
        if written {
            *self = after;
            self.trim_and_expire(call, alone);
        }
        Some(reply)
    }

    /// Takes units back, the newest first, and answers how many.
    pub fn refund(&mut self, units: u64) -> u64 {
        let mut taken = 0;
        while let Some(newest) = self.entries.last_mut().filter(|_| taken < units) {
            let part = newest.cost.min(units - taken);
            newest.cost -= part;
            newest.total = newest.total.wrapping_sub(part);
            taken += part;
            self.entries.retain(|entry| entry.cost > 0);
        }
        if self.entries.is_empty() {
            self.forget();
        }
        taken
    }

    /// The key is gone once its time has passed.
    fn expire(&mut self, clock_ms: u64) {
        if self.expires_at_ms.is_some_and(|expiry_ms| expiry_ms < clock_ms) {
            self.forget();
        }
    }

    fn forget(&mut self) {
        *self = Self { max_entries: self.max_entries, ..Self::default() };
    }

    /// Whether the newest entry lies more than twice the longest window ahead: of the call's, and of
    /// what the expiry shows, which is a window and a quarter behind the stamp it was set with.
    fn is_ahead_of(&self, call: &Call) -> bool {
        let Some(newest) = self.entries.last() else { return false };
        let longest_ms = call.longest_ms().max(self.shown_window_ms(newest, call));
        newest.stamp_ms > call.now_ms.max(call.clock_ms) + 2 * longest_ms
    }

    /// The longest window that the expiry shows.
    fn shown_window_ms(&self, newest: &Charged, call: &Call) -> u64 {
        let since_ms = newest.stamp_ms.max(call.clock_ms);
        let lives_ms = self.expires_at_ms.unwrap_or(0).saturating_sub(since_ms);
        (lives_ms - lives_ms / 5).min(MAX_WINDOW_MS)
    }

    /// Units charged in `(at - window, ...)`.
    pub fn usage(&self, window_ms: u64, at_ms: u64) -> u128 {
        let counted = self.entries.iter().filter(|entry| at_ms < entry.stamp_ms + window_ms);
        counted.map(|entry| u128::from(entry.cost)).sum()
    }

    fn fits(&self, (window_ms, limit): (u64, u64), cost: u64, at_ms: u64) -> bool {
        self.usage(window_ms, at_ms) + u128::from(cost) <= u128::from(limit)
    }

    fn admits(&self, call: &Call, at_ms: u64) -> bool {
        call.windows.iter().all(|window| self.fits(*window, call.cost, at_ms))
    }

    fn has_left(&self, call: &Call) -> bool {
        self.usage(call.longest_ms(), call.now_ms) == 0
    }

    /// The expiry that this charge must give the key at least, and the latest it may give.
    fn expiry_bounds_ms(&self, call: &Call, stamp_ms: u64) -> (u64, u64) {
        // A stamp that is believed is no more than two windows ahead of the clock.
        let ahead_ms = (stamp_ms - call.now_ms).min(2 * call.longest_ms());
        let least_ms = call.clock_ms + ahead_ms + call.longest_ms();
        (least_ms, least_ms + call.longest_ms() / 4)
    }

    fn stamp_ms(&self, call: &Call) -> u64 {
        let precision_ms = call.precision_ms.unwrap_or(1);
        let rounded_ms = call.now_ms.div_ceil(precision_ms) * precision_ms;
        rounded_ms.max(self.entries.last().map_or(0, |newest| newest.stamp_ms))
    }

    /// Whether no longer window than the call's keeps the log.
    fn is_alone(&self, call: &Call) -> bool {
        let (_, most_ms) = self.expiry_bounds_ms(call, self.stamp_ms(call));
        self.expires_at_ms.is_none_or(|expiry_ms| expiry_ms <= most_ms)
    }

    /// The precision that the call is charged with: its own, or a coarser one in a log of as many
    /// entries as it may have.
    fn precision_ms(&self, call: &Call, alone: bool) -> Option<u64> {
        let Some(newest) = self.entries.last().filter(|_| self.max_entries > 0) else {
            return call.precision_ms;
        };
        if self.entries.len() < self.max_entries {
            return call.precision_ms;
        }
        let (mut longest_ms, mut most_ms) = (call.longest_ms(), u64::MAX);
        if !alone {
            // A longer window uses it, which its expiry shows, and how far back it reaches.
            let reaches_ms = newest.stamp_ms - self.entries[0].stamp_ms;
            let shown_ms = self.shown_window_ms(newest, call);
            most_ms = (2 * longest_ms).max(shown_ms / 4 * 3);
            longest_ms = longest_ms.max(reaches_ms).max(shown_ms);
        }
        call.precision_ms.max(Some(longest_ms.div_ceil(self.max_entries as u64).min(most_ms)))
    }

    fn units(&self) -> u128 {
        self.entries.iter().map(|entry| u128::from(entry.cost)).sum()
    }

    /// Adds the entry, cut to what a log can hold; answers how much was added.
    fn charge(&mut self, call: &Call, alone: bool) -> u64 {
        let crowded = self.entries.len() > MAX_TRIMMED
            || self.units() + u128::from(call.cost) > MAX_STORED_UNITS;
        if crowded && alone && self.has_left(call) {
            self.forget();
        }
        let call = Call { precision_ms: self.precision_ms(call, alone), ..call.clone() };
        let cost = u128::from(call.cost).min(MAX_STORED_UNITS - self.units()) as u64;
        if cost == 0 {
            return 0;
        }
        let mut entry = Charged { stamp_ms: self.stamp_ms(&call), total: cost, cost };
        if let Some(newest) = self.entries.last().copied() {
            let total = u128::from(newest.total) + u128::from(cost);
            entry.total = total as u64;
            if call.precision_ms.is_some() && entry.stamp_ms == newest.stamp_ms {
                self.entries.pop();
                entry.cost += newest.cost;
            }
            if total > u128::from(u64::MAX) {
                entry.stamp_ms = entry.stamp_ms.max(newest.stamp_ms + 1);
            }
        }
        self.entries.push(entry);
        cost
    }

    fn trim_and_expire(&mut self, call: &Call, alone: bool) {
        let newest = *self.entries.last().unwrap();
        if alone {
            let mut trimmed = 0;
            while trimmed < MAX_TRIMMED
                && self.entries[0].stamp_ms + call.longest_ms() <= call.now_ms
            {
                self.entries.remove(0);
                trimmed += 1;
            }
        }
        let (least_ms, most_ms) = self.expiry_bounds_ms(call, newest.stamp_ms);
        if self.expires_at_ms.is_none_or(|expiry_ms| expiry_ms < least_ms) {
            self.expires_at_ms = Some(most_ms);
        }
    }

    /// The first delay after which the window alone admits the cost, or -1.
    fn wait_ms(&self, call: &Call, window: (u64, u64)) -> i64 {
        if call.cost > window.1 {
            return -1;
        }
        let mut moments_ms = vec![call.now_ms];
        moments_ms.extend(self.entries.iter().map(|entry| entry.stamp_ms + window.0));
        moments_ms.retain(|at_ms| *at_ms >= call.now_ms);
        moments_ms.sort();
        let fits = |at_ms: &&u64| self.fits(window, call.cost, **at_ms);
        (moments_ms.iter().find(fits).unwrap() - call.now_ms) as i64
    }

    fn report(&self, call: &Call, allowed: bool) -> Reply {
        let reports = call.windows.iter().map(|(window_ms, limit)| {
            let usage = self.usage(*window_ms, call.now_ms);
            let retry_ms = if allowed { 0 } else { self.wait_ms(call, (*window_ms, *limit)) };
            let leave_ms = self.entries.iter().map(|entry| entry.stamp_ms + window_ms);
            let reset_ms = leave_ms.max().map_or(0, |at_ms| at_ms.saturating_sub(call.now_ms));
            let remaining = u128::from(*limit).saturating_sub(usage) as i64;
            let limit = *limit as i64;
            [allowed.into(), limit, remaining, retry_ms, reset_ms as i64, *window_ms as i64]
        });
        binding(reports, allowed)
    }
}

/// Of the reports of several windows the one that is told.
fn binding(mut reports: impl Iterator<Item = Reply>, allowed: bool) -> Reply {
    let rank = |reply: &Reply| match allowed {
        true => -reply[2],
        false if reply[3] == -1 => i64::MAX,
        false => reply[3],
    };
    let first = reports.next().unwrap();
    reports.fold(
        first,
        |reported, other| {
            if rank(&other) > rank(&reported) { other } else { reported }
        },
    )
}
