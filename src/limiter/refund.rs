//! Taking units back: the newest first, whoever took them.

use super::counter::{Counter, Counters};
use super::log::{Entry, LogError};
use super::request::MAX_WINDOWS;

/// Entries that one refund may touch.
pub const MAX_REFUNDED: u64 = 4096;

/// What a refund does to a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refund {
    /// Units taken back, at most as many as asked for.
    pub units: u64,
    /// Remove so many of the newest entries, 0 to [`MAX_REFUNDED`],
    pub removed: u64,
    /// and then put the second entry, smaller, in the place of the first, the newest left.
    pub shrunk: Option<(Entry, Entry)>,
}

/// Plans to take back up to `units` of the newest units of a log, whose entries come newest first.
///
/// Totals of what is left are as if the units had never been charged, so the next charge uses some
/// of them again, and is unique and in order all the same.
///
/// # Errors
/// [`LogError::Foreign`] if an entry looked at is none of ours, or does not follow the one before.
pub fn plan_log_refund(
    newest_first: impl Iterator<Item = Result<Entry, LogError>>,
    units: u64,
) -> Result<Refund, LogError> {
    let mut refund = Refund::default();
    let mut newer: Option<Entry> = None;
    for entry in newest_first {
        let entry = entry?;
        if newer.is_some_and(|newer| newer.total.wrapping_sub(newer.cost) != entry.total) {
            return Err(LogError::Foreign);
        }
        if refund.units == units || refund.removed == MAX_REFUNDED {
            break;
        }
        let taken = entry.cost.min(units - refund.units);
        refund.units += taken;
        if taken < entry.cost {
            let (total, cost) = (entry.total.wrapping_sub(taken), entry.cost - taken);
            refund.shrunk = Some((entry, Entry { total, cost, ..entry }));
            break;
        }
        refund.removed += 1;
        newer = Some(entry);
    }
    Ok(refund)
}

/// What a refund does to a stored counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterRefund {
    /// The counter without the units.
    pub counter: Counter,
    /// Units taken from its current count.
    pub current: u64,
    /// Units taken from its previous count.
    pub previous: u64,
}

/// What a refund does to the counters of a limiter.
#[derive(Clone, Copy, Debug, Default)]
pub struct CounterRefunds {
    list: [CounterRefund; MAX_WINDOWS],
    len: usize,
}

impl CounterRefunds {
    /// The counters that change.
    pub fn as_slice(&self) -> &[CounterRefund] {
        &self.list[..self.len]
    }

    /// Units taken back: the most of any counter.
    pub fn units(&self) -> u64 {
        let units = self.as_slice().iter().map(|refund| refund.current + refund.previous);
        units.max().unwrap_or(0)
    }
}

/// Plans to take back up to `units` of each counter: of the window that `now_ms` is in, then of the
/// one before. A counter from a clock far ahead has none.
///
/// What was counted stays under the start it is stored with: if the next window has begun, today's
/// previous count is the current one as stored, and shrinks there. So no window starts with a
/// refund, and the expiry stays right.
pub fn plan_counter_refunds(
    stored: &Counters,
    units: u64,
    now_ms: u64,
    clock_ms: u64,
) -> CounterRefunds {
    let mut refunds = CounterRefunds::default();
    let believed = |counter: &&Counter| !counter.runs_ahead_of(now_ms, clock_ms);
    for counter in stored.as_slice().iter().filter(believed) {
        let refund = refund_counter(*counter, units, now_ms);
        if refund.current + refund.previous > 0 {
            refunds.list[refunds.len] = refund;
            refunds.len += 1;
        }
    }
    refunds
}

fn refund_counter(mut counter: Counter, units: u64, now_ms: u64) -> CounterRefund {
    let passed = now_ms.saturating_sub(counter.start_ms) / counter.window_ms;
    let current = if passed <= 1 { units.min(counter.current) } else { 0 };
    let previous = if passed == 0 { (units - current).min(counter.previous) } else { 0 };
    counter.current -= current;
    counter.previous -= previous;
    CounterRefund { counter, current, previous }
}
