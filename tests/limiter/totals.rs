//! Running totals at their ends: the wrap at 2^64, and the most that a log may hold.

use crate::memory::{Memory, request};
use crate::model::{Call, Model};
use rl::limiter::{Charge, LogError, MAX_STORED_UNITS, MAX_TRIMMED, MAX_UNITS, Request, decide};

const NOW_MS: u64 = 1_796_037_190_903;
const W: &[(u64, u64)] = &[(60_000, 100)];

fn call(cost: u64) -> Call {
    Call { cost, ..Call::new(W, NOW_MS) }
}

/// What the log holds as `(stamp_ms after now, total, cost)`.
fn stored(log: &Memory) -> Vec<(i64, u64, u64)> {
    let entries = log.entries.iter();
    entries.map(|e| (e.stamp_ms as i64 - NOW_MS as i64, e.total, e.cost)).collect()
}

#[test]
fn a_total_that_wraps_is_put_a_millisecond_behind() {
    let mut log = Memory::of(&[(NOW_MS, u64::MAX - 5, 5)]);
    assert_eq!(log.slide(&call(10)), [1, 100, 85, 0, 60_001, 60_000]);
    assert_eq!(stored(&log), [(0, u64::MAX - 5, 5), (1, 4, 10)]);
    // And everything behind it again in order.
    assert_eq!(log.slide(&call(3)), [1, 100, 82, 0, 60_001, 60_000]);
    assert_eq!(stored(&log)[2], (1, 7, 3));
}

#[test]
fn a_total_may_wrap_to_zero() {
    let mut log = Memory::of(&[(NOW_MS - 1, u64::MAX - 5, 5)]);
    assert_eq!(log.slide(&call(6)), [1, 100, 89, 0, 60_000, 60_000]);
    assert_eq!(stored(&log), [(-1, u64::MAX - 5, 5), (0, 0, 6)]);
    assert_eq!(log.slide(&call(90)), [0, 100, 89, 59_999, 60_000, 60_000]);
    assert_eq!(log.slide(&call(95)), [0, 100, 89, 60_000, 60_000, 60_000]);
}

#[test]
fn a_merged_total_that_wraps_takes_the_merged_units_along() {
    let mut log = Memory::of(&[(NOW_MS - 9, u64::MAX - 15, 5), (NOW_MS, u64::MAX - 5, 10)]);
    let merging = Call { precision_ms: Some(1), ..call(10) };
    assert_eq!(log.slide(&merging), [1, 100, 75, 0, 60_001, 60_000]);
    assert_eq!(stored(&log), [(-9, u64::MAX - 15, 5), (1, 4, 20)]);
    // The wait for more than the first entry is that of the moved units.
    assert_eq!(log.slide(&call(81)), [0, 100, 75, 60_001, 60_001, 60_000]);
}

#[test]
fn the_model_wraps_alike() {
    for precision_ms in [None, Some(1), Some(1_000)] {
        let mut log = Memory::of(&[(NOW_MS - 5, u64::MAX - 20, 7)]);
        let mut model = Model::of(log.charged());
        for step in 0..60 {
            let mut call = Call { precision_ms, ..call(1 + step % 3) };
            (call.now_ms, call.clock_ms) = (NOW_MS + step / 4, NOW_MS + step / 4);
            assert_eq!(log.slide(&call), model.slide(&call), "step {step} of {precision_ms:?}");
            assert_eq!(log.charged(), model.entries);
        }
    }
}

#[test]
fn forced_charges_are_cut_to_what_a_log_can_hold() {
    let full = MAX_STORED_UNITS;
    let forced = Call { force: true, ..call(10) };
    let mut log = Memory::of(&[(NOW_MS - 1, full - 4, full - 4)]);
    assert_eq!(log.slide(&forced), [0, 100, 0, 59_999, 60_000, 60_000]);
    assert_eq!(stored(&log), [(-1, full - 4, full - 4), (0, full, 4)]);

    let before = log.clone();
    assert_eq!(log.slide(&forced), [0, 100, 0, 59_999, 60_000, 60_000]);
    assert_eq!(log, before, "a charge cut to nothing writes nothing");
}

#[test]
fn what_has_left_counts_against_a_log_that_a_longer_window_uses() {
    let full = MAX_STORED_UNITS;
    let mut log = Memory::of(&[(NOW_MS - 70_000, full, full)]);
    log.expires_at_ms = Some(NOW_MS + 3_600_000);
    let before = log.clone();
    assert_eq!(log.try_slide(&call(1)), Err(LogError::Full));
    let peek = Request { charge: Charge::Never, ..request(&call(1)) };
    assert_eq!(decide(&mut log, &peek), Err(LogError::Full), "a peek says what the call would");
    assert_eq!(log.slide(&Call { force: true, ..call(1) }), [1, 100, 100, 0, 0, 60_000]);
    assert_eq!(log, before);

    // Where no longer window uses it, a log that has left makes room whole.
    log.expires_at_ms = Some(NOW_MS + 60_000);
    assert_eq!(log.slide(&call(1)), [1, 100, 99, 0, 60_000, 60_000]);
    assert_eq!(stored(&log), [(0, 1, 1)]);
}

#[test]
fn the_largest_limit_and_cost_are_exact() {
    let largest = Call { cost: MAX_UNITS, ..Call::new(&[(60_000, MAX_UNITS)], NOW_MS) };
    let mut log = Memory::default();
    let limit = MAX_UNITS as i64;
    assert_eq!(log.slide(&largest), [1, limit, 0, 0, 60_000, 60_000]);
    assert_eq!(log.slide(&largest), [0, limit, 0, 60_000, 60_000, 60_000]);
    let one = Call { cost: 1, ..largest };
    assert_eq!(log.slide(&one), [0, limit, 0, 60_000, 60_000, 60_000]);
}

#[test]
fn a_backlog_is_trimmed_a_bounded_number_at_a_time() {
    let stale = |count: u64| (0..count).map(|index| (NOW_MS - 100_000 + index, index + 1, 1));
    let entries: Vec<_> = stale(500).chain([(NOW_MS - 1, 501, 1)]).collect();
    let mut log = Memory::of(&entries);
    for left in [502 - MAX_TRIMMED, 503 - 2 * MAX_TRIMMED, 504 - 3 * MAX_TRIMMED, 5] {
        log.slide(&call(1));
        assert_eq!(log.entries.len() as u64, left);
    }
}

#[test]
fn a_log_that_has_left_whole_is_trimmed_or_dropped() {
    for (count, total) in [(MAX_TRIMMED, MAX_TRIMMED + 1), (MAX_TRIMMED + 1, 1)] {
        let entries: Vec<_> = (0..count).map(|i| (NOW_MS - 100_000 + i, i + 1, 1)).collect();
        let mut log = Memory::of(&entries);
        assert_eq!(log.slide(&call(1)), [1, 100, 99, 0, 60_000, 60_000]);
        assert_eq!(stored(&log), [(0, total, 1)], "of {count} entries");
    }
}

#[test]
fn sums_that_no_log_of_ours_has_are_foreign() {
    let foreign: [&[(u64, u64, u64)]; 5] = [
        // More than a log can hold.
        &[(NOW_MS - 2, 1, 1), (NOW_MS - 1, MAX_STORED_UNITS + 1, 1)],
        // Totals that fall.
        &[(NOW_MS - 2, 9, 1), (NOW_MS - 1, 8, 1)],
        // Less between the ends than the newest alone.
        &[(NOW_MS - 2, 9, 1), (NOW_MS - 1, 10, 5)],
        // The first inside the window says more than the whole log.
        &[(NOW_MS - 90_000, 5, 5), (NOW_MS - 2, 0, 1), (NOW_MS - 1, 7, 2)],
        // And less than the newest alone.
        &[(NOW_MS - 90_000, 5, 5), (NOW_MS - 2, 30, 1), (NOW_MS - 1, 7, 2)],
    ];
    for entries in foreign {
        let mut log = Memory::of(entries);
        assert_eq!(log.try_slide(&call(1)), Err(LogError::Foreign), "{entries:?}");
        assert_eq!(log, Memory::of(entries));
    }
}

#[test]
fn a_wait_that_meets_a_sum_out_of_order_is_foreign() {
    let entries =
        [(NOW_MS - 40, 50, 50), (NOW_MS - 30, 9_000, 10), (NOW_MS - 20, 80, 20), (NOW_MS, 100, 20)];
    let mut log = Memory::of(&entries);
    assert_eq!(log.try_slide(&call(60)), Err(LogError::Foreign));
}
