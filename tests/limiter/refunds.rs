//! Taking units back, from logs and from counters.

use crate::memory::Memory;
use crate::model::Call;
use proptest::collection::vec;
use proptest::prelude::*;
use rl::limiter::{
    Counter, Counters, Entry, LogError, MAX_REFUNDED, Refund, plan_counter_refunds, plan_log_refund,
};

const NOW_MS: u64 = 1_796_037_190_903;

fn stored(log: &Memory) -> Vec<(u64, u64, u64)> {
    log.entries.iter().map(|e| (e.stamp_ms, e.total, e.cost)).collect()
}

#[test]
fn the_newest_entries_go_first_and_the_last_one_shrinks() {
    let mut log = Memory::of(&[(1, 4, 4), (2, 5, 1), (3, 12, 7)]);
    assert_eq!(log.refund(3), 3);
    assert_eq!(stored(&log), [(1, 4, 4), (2, 5, 1), (3, 9, 4)]);
    assert_eq!(log.refund(6), 6);
    assert_eq!(stored(&log), [(1, 3, 3)]);
    assert_eq!(log.refund(3), 3);
    assert_eq!(stored(&log), []);
    assert_eq!(log.refund(1), 0);
}

#[test]
fn no_more_is_taken_back_than_there_is() {
    let mut log = Memory::of(&[(1, 4, 4), (2, 5, 1)]);
    assert_eq!(log.refund(1_000), 5);
    assert_eq!(log, Memory::default());
}

#[test]
fn totals_used_again_stay_unique_and_in_order() {
    let mut log = Memory::default();
    let charge = |log: &mut Memory, cost| {
        log.slide(&Call { cost, ..Call::new(&[(60_000, 1_000)], NOW_MS) });
    };
    charge(&mut log, 8);
    charge(&mut log, 5);
    assert_eq!(log.refund(4), 4);
    charge(&mut log, 4);
    charge(&mut log, 90);
    assert_eq!(stored(&log), [(NOW_MS, 8, 8), (NOW_MS, 9, 1), (NOW_MS, 13, 4), (NOW_MS, 103, 90)]);
}

#[test]
fn a_refund_across_the_wrap_leaves_valid_entries() {
    let before = [(1, u64::MAX - 1, 5), (2, 8, 10)];
    for (units, left) in [
        (3, [(1, u64::MAX - 1, 5), (2, 5, 7)].as_slice()),
        // Total 0, and a total that is below zero again.
        (8, &[(1, u64::MAX - 1, 5), (2, 0, 2)]),
        (9, &[(1, u64::MAX - 1, 5), (2, u64::MAX, 1)]),
        (10, &[(1, u64::MAX - 1, 5)]),
        (12, &[(1, u64::MAX - 3, 3)]),
    ] {
        let mut log = Memory::of(&before);
        assert_eq!(log.refund(units), units);
        assert_eq!(stored(&log), left);
    }
}

#[test]
fn one_call_touches_a_bounded_number_of_entries() {
    let entries: Vec<_> = (1..=MAX_REFUNDED + 10).map(|n| (n, n, 1)).collect();
    let mut log = Memory::of(&entries);
    assert_eq!(log.refund(u64::MAX >> 11), MAX_REFUNDED);
    assert_eq!(log.entries.len(), 10);
    assert_eq!(log.refund(u64::MAX >> 11), 10);
}

#[test]
fn a_log_that_is_none_of_ours_is_refused_before_anything_changes() {
    let entry = |total, cost| Ok(Entry { stamp_ms: 1, total, cost });
    let broken = [entry(9, 2), entry(6, 1), entry(5, 5)];
    assert_eq!(plan_log_refund(broken.into_iter(), 4), Err(LogError::Foreign));
    let garbage = [entry(9, 2), Err(LogError::Foreign)];
    assert_eq!(plan_log_refund(garbage.into_iter(), 3), Err(LogError::Foreign));
    let enough = [entry(9, 2), entry(7, 1), Err(LogError::Foreign)];
    let refund = Refund { units: 3, removed: 2, shrunk: None };
    // What lies behind the last entry touched is looked at too: the next charge builds on it.
    assert_eq!(plan_log_refund(enough.into_iter(), 3), Err(LogError::Foreign));
    assert_eq!(plan_log_refund(enough.into_iter().take(2), 3), Ok(refund));
}

/// A limiter of one window of a second: what is left of it after a refund.
fn refunded(counter: Counter, units: u64, now_ms: u64) -> (u64, u64, u64) {
    let mut stored = Counters::default();
    assert!(stored.push(counter));
    let refunds = plan_counter_refunds(&stored, units, now_ms, now_ms);
    let left = refunds.as_slice().first().map_or(counter, |refund| refund.counter);
    (refunds.units(), left.current, left.previous)
}

#[test]
fn a_counter_shrinks_from_the_current_window_to_the_one_before() {
    let start_ms = NOW_MS - NOW_MS % 1_000;
    let counter = Counter { window_ms: 1_000, start_ms, current: 3, previous: 8 };
    assert_eq!(refunded(counter, 2, start_ms), (2, 1, 8));
    assert_eq!(refunded(counter, 5, start_ms + 999), (5, 0, 6));
    assert_eq!(refunded(counter, 100, start_ms), (11, 0, 0));
    // A time before the start counts as the start.
    assert_eq!(refunded(counter, 5, start_ms - 700), (5, 0, 6));
    // In the next window, its current count is the one before, and there is no other.
    assert_eq!(refunded(counter, 2, start_ms + 1_000), (2, 1, 8));
    assert_eq!(refunded(counter, 5, start_ms + 1_999), (3, 0, 8));
    // After that it counts nothing.
    assert_eq!(refunded(counter, 5, start_ms + 2_000), (0, 3, 8));
    // And nothing of a clock far ahead.
    assert_eq!(refunded(counter, 5, start_ms - 1_000), (5, 0, 6));
    assert_eq!(refunded(counter, 5, start_ms - 1_001), (0, 3, 8));
}

#[test]
fn the_most_of_several_counters_is_answered() {
    let mut stored = Counters::default();
    for (window_ms, current) in [(1_000, 3), (2_000, 7), (4_000, 0)] {
        let start_ms = NOW_MS - NOW_MS % window_ms;
        assert!(stored.push(Counter { window_ms, start_ms, current, previous: 0 }));
    }
    let refunds = plan_counter_refunds(&stored, 5, NOW_MS, NOW_MS);
    assert_eq!(refunds.units(), 5);
    let left: Vec<u64> = refunds.as_slice().iter().map(|refund| refund.counter.current).collect();
    assert_eq!(left, [0, 2], "the third does not change");
}

proptest! {
    #![proptest_config(crate::seeded::config())]

    /// Charges and refunds in turn: the log holds what a plain list of units holds, and every total
    /// follows from the one before.
    #[test]
    fn a_log_holds_what_was_charged_and_not_taken_back(
        steps in vec((any::<bool>(), 0..=3_u64, 1..=20_u64), 1..120),
        precision_ms in prop::option::of(1..=50_u64),
        first_total in prop_oneof![Just(0), Just(u64::MAX - 60)],
    ) {
        let mut log = Memory::of(&[(NOW_MS - 1, first_total, 1)]);
        // A unit an element: the stamp it was charged under.
        let mut units: Vec<u64> = vec![NOW_MS - 1];
        let mut now_ms = NOW_MS;
        for (refunds, advance_ms, cost) in steps {
            now_ms += advance_ms;
            if refunds {
                let taken = units.len().min(cost as usize);
                units.truncate(units.len() - taken);
                prop_assert_eq!(log.refund(cost), taken as u64);
            } else {
                let call = Call::new(&[(60_000, 1_000_000)], now_ms);
                log.slide(&Call { cost, precision_ms, ..call });
                let newest = *log.entries.last().unwrap();
                units.extend((0..cost).map(|_| newest.stamp_ms));
                // Where a total wraps, the units merged move with it.
                let held = units.len();
                let merged = newest.cost as usize;
                units[held - merged..].fill(newest.stamp_ms);
            }
            let held: Vec<u64> = log.entries.iter().flat_map(|entry| {
                (0..entry.cost).map(|_| entry.stamp_ms)
            }).collect();
            prop_assert_eq!(&held, &units);
            for pair in log.entries.windows(2) {
                prop_assert_eq!(pair[1].total.wrapping_sub(pair[1].cost), pair[0].total);
            }
        }
    }
}
