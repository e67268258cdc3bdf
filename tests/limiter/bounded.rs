//! A log with as many entries as it may have is kept coarser: memory bounded, never too much.

use crate::memory::Memory;
use crate::model::{Call, Reply};
use proptest::collection::vec;
use proptest::prelude::*;

const START_MS: u64 = 1_796_037_190_000;

fn log_of(max_entries: u64) -> Memory {
    Memory { max_entries, ..Memory::default() }
}

fn slide(log: &mut Memory, after_ms: u64, precision_ms: Option<u64>) -> Reply {
    let call = Call::new(&[(1_000, 100)], START_MS + after_ms);
    log.slide(&Call { precision_ms, ..call })
}

fn stored(log: &Memory) -> Vec<(u64, u64)> {
    log.entries.iter().map(|entry| (entry.stamp_ms - START_MS, entry.cost)).collect()
}

#[test]
fn up_to_the_bound_every_request_has_its_entry() {
    let mut log = log_of(3);
    for after_ms in [1, 2, 3] {
        slide(&mut log, after_ms, None);
    }
    assert_eq!(stored(&log), [(1, 1), (2, 1), (3, 1)]);
    // From here on the tick is a third of the window, rounded up: 334 ms of Unix time.
    let tick_ms = 334 - START_MS % 334;
    assert_eq!(slide(&mut log, 4, None)[4] as u64, 1_000 + tick_ms - 4);
    slide(&mut log, 5, None);
    assert_eq!(stored(&log), [(1, 1), (2, 1), (3, 1), (tick_ms, 2)]);
}

#[test]
fn the_coarser_of_the_bound_and_a_precision_asked_for_holds() {
    for (precision_ms, tick_ms) in [(100, 500), (1_000, 1_000)] {
        let mut log = log_of(2);
        slide(&mut log, 1, None);
        slide(&mut log, 2, None);
        slide(&mut log, 3, Some(precision_ms));
        assert_eq!(stored(&log)[2], (tick_ms, 1), "with PRECISION {precision_ms}ms");
    }
}

#[test]
fn a_log_below_the_bound_is_exact_again() {
    let mut log = log_of(2);
    for after_ms in [1, 2, 3, 1_700] {
        slide(&mut log, after_ms, None);
    }
    assert_eq!(stored(&log), [(2_000, 1)], "the last one found three entries");
    slide(&mut log, 2_100, None);
    assert_eq!(stored(&log), [(2_000, 1), (2_100, 1)]);
}

#[test]
fn a_log_that_is_dropped_begins_exact() {
    let mut log = log_of(300);
    log.entries =
        Memory::of(&(0..300).map(|n| (START_MS + n, n + 1, 1)).collect::<Vec<_>>()).entries;
    slide(&mut log, 90_001, None);
    assert_eq!(stored(&log), [(90_001, 1)]);
}

proptest! {
    #![proptest_config(crate::seeded::config())]

    /// Also where a longer window keeps the log for shorter ones, which do not trim it then.
    #[test]
    fn a_longer_window_in_calls_of_its_own_does_not_lift_the_bound(
        steps in vec((0..=20_u64, 0..=40_u8), 1..1_000),
        max_entries in 1..=20_u64,
    ) {
        let mut log = log_of(max_entries);
        let mut now_ms = START_MS;
        for (advance_ms, turn) in steps {
            now_ms += advance_ms;
            let window = if turn == 0 { (4_000, 1_000_000) } else { (100, 1_000_000) };
            log.slide(&Call::new(&[window], now_ms));
            prop_assert!(log.entries.len() as u64 <= 6 * max_entries + 6, "{}", log.entries.len());
        }
    }

    #[test]
    fn memory_is_bounded_and_no_window_holds_too_much(
        advances_ms in vec(0..=20_u64, 1..300),
        max_entries in 1..=20_u64,
        limit in 1..=60_u64,
    ) {
        let mut log = log_of(max_entries);
        let (mut now_ms, mut admitted) = (START_MS, Vec::new());
        for advance_ms in advances_ms {
            now_ms += advance_ms;
            if log.slide(&Call::new(&[(500, limit)], now_ms))[0] == 1 {
                admitted.push(now_ms);
            }
            prop_assert!(log.entries.len() as u64 <= 2 * max_entries + 1);
            let inside = admitted.iter().filter(|at_ms| now_ms < *at_ms + 500);
            prop_assert!(inside.count() as u64 <= limit);
        }
    }
}

/// Where a longer window that is no longer charged keeps a bounded log for a shorter one, the last
/// stamps before the key's expiry lie no further ahead than the next call believes.
#[test]
fn a_bounded_stamp_is_never_taken_for_one_of_a_clock_far_ahead() {
    let (long, short) = ([(4_000, 1_000)], [(10, 1)]);
    let mut log = log_of(4);
    for after_ms in [0, 1, 2, 3] {
        log.slide(&Call::new(&long, START_MS + after_ms));
    }
    log.slide(&Call::new(&short, START_MS + 3_990));
    for now_ms in START_MS + 4_400..START_MS + 5_400 {
        let call = Call::new(&short, now_ms);
        if log.slide(&call)[0] == 1 {
            assert_eq!(log.slide(&call)[0], 0, "{} ms after the start: {log:?}", now_ms - START_MS);
        }
    }
}
