//! Timelines with every field of every answer written out.
//!
//! A row is a request at `now_ms` after the start, and the reply expected:
//! allowed, limit, remaining, retry_after, reset_after, window.

use crate::memory::Memory;
use crate::model::{Call, Model, Reply};

const START_MS: u64 = 1_796_037_190_903;

/// One request of a timeline: `plain(0, 1)` asks for one unit at the start.
#[derive(Clone)]
struct Ask {
    windows: &'static [(u64, u64)],
    call: Call,
}

fn ask(windows: &'static [(u64, u64)], now_ms: u64, cost: u64) -> Ask {
    let mut call = Call::new(windows, START_MS + now_ms);
    call.cost = cost;
    Ask { windows, call }
}

impl Ask {
    fn force(mut self) -> Self {
        self.call.force = true;
        self
    }

    fn precision(mut self, precision_ms: u64) -> Self {
        self.call.precision_ms = Some(precision_ms);
        self
    }
}

/// Plays a timeline over a log and over the model: both must give every row.
fn play(timeline: &[(Ask, Reply)]) -> Memory {
    let (mut log, mut model) = (Memory::default(), Model::default());
    for (row, (ask, expected)) in timeline.iter().enumerate() {
        assert_eq!(log.slide(&ask.call), *expected, "row {row}: {:?}", ask.windows);
        assert_eq!(model.slide(&ask.call), *expected, "the model, row {row}: {:?}", ask.windows);
    }
    log
}

#[test]
fn one_window_and_its_half_open_edge() {
    const W: &[(u64, u64)] = &[(1_000, 3)];
    play(&[
        (ask(W, 0, 1), [1, 3, 2, 0, 1_000, 1_000]),
        (ask(W, 100, 1), [1, 3, 1, 0, 1_000, 1_000]),
        (ask(W, 100, 1), [1, 3, 0, 0, 1_000, 1_000]),
        (ask(W, 100, 1), [0, 3, 0, 900, 1_000, 1_000]),
        (ask(W, 999, 1), [0, 3, 0, 1, 101, 1_000]),
        (ask(W, 1_000, 1), [1, 3, 0, 0, 1_000, 1_000]),
        (ask(W, 1_001, 1), [0, 3, 0, 99, 999, 1_000]),
        (ask(W, 1_100, 2), [1, 3, 0, 0, 1_000, 1_000]),
        (ask(W, 2_100, 1), [1, 3, 2, 0, 1_000, 1_000]),
    ]);
}

#[test]
fn costs_wait_for_as_many_units_as_they_need() {
    const W: &[(u64, u64)] = &[(1_000, 10)];
    play(&[
        (ask(W, 0, 4), [1, 10, 6, 0, 1_000, 1_000]),
        (ask(W, 200, 1), [1, 10, 5, 0, 1_000, 1_000]),
        (ask(W, 300, 5), [1, 10, 0, 0, 1_000, 1_000]),
        // 4 units leave at 1,000, one more at 1,200, the last five at 1,300.
        (ask(W, 400, 1), [0, 10, 0, 600, 900, 1_000]),
        (ask(W, 400, 4), [0, 10, 0, 600, 900, 1_000]),
        (ask(W, 400, 5), [0, 10, 0, 800, 900, 1_000]),
        (ask(W, 400, 6), [0, 10, 0, 900, 900, 1_000]),
        (ask(W, 400, 10), [0, 10, 0, 900, 900, 1_000]),
        (ask(W, 400, 11), [0, 10, 0, -1, 900, 1_000]),
        (ask(W, 400, 0), [1, 10, 0, 0, 900, 1_000]),
        (ask(W, 1_000, 5), [0, 10, 4, 200, 300, 1_000]),
        (ask(W, 1_200, 5), [1, 10, 0, 0, 1_000, 1_000]),
    ]);
}

#[test]
fn a_limit_of_zero_denies_all_and_an_empty_window_is_reset() {
    const W: &[(u64, u64)] = &[(1_000, 0)];
    let log =
        play(&[(ask(W, 0, 1), [0, 0, 0, -1, 0, 1_000]), (ask(W, 0, 0), [1, 0, 0, 0, 0, 1_000])]);
    assert_eq!(log, Memory::default());
}

#[test]
fn limits_and_windows_may_change_on_a_live_log() {
    play(&[
        (ask(&[(1_000, 5)], 0, 2), [1, 5, 3, 0, 1_000, 1_000]),
        (ask(&[(1_000, 5)], 500, 3), [1, 5, 0, 0, 1_000, 1_000]),
        // Lowered below what is used: nothing fits until enough has left.
        (ask(&[(1_000, 2)], 600, 1), [0, 2, 0, 900, 900, 1_000]),
        (ask(&[(1_000, 2)], 600, 0), [0, 2, 0, 900, 900, 1_000]),
        (ask(&[(1_000, 4)], 600, 1), [0, 4, 0, 400, 900, 1_000]),
        // Raised: at once.
        (ask(&[(1_000, 9)], 600, 1), [1, 9, 3, 0, 1_000, 1_000]),
        // A shorter window of the same log.
        (ask(&[(150, 2)], 650, 1), [1, 2, 0, 0, 150, 150]),
        (ask(&[(150, 2)], 650, 1), [0, 2, 0, 100, 150, 150]),
    ]);
}

#[test]
fn of_several_windows_the_binding_one_is_reported() {
    const W: &[(u64, u64)] = &[(1_000, 3), (10_000, 5)];
    play(&[
        // Fewest remaining when allowed: 2 of 3.
        (ask(W, 0, 1), [1, 3, 2, 0, 1_000, 1_000]),
        (ask(W, 100, 2), [1, 3, 0, 0, 1_000, 1_000]),
        // Only the short one denies.
        (ask(W, 200, 2), [0, 3, 0, 900, 900, 1_000]),
        // Both are at 0 after this one; the first written is told.
        (ask(W, 1_100, 2), [1, 5, 0, 0, 10_000, 10_000]),
        // The long one denies for longer: its first unit leaves at 10,000.
        (ask(W, 1_200, 1), [0, 5, 0, 8_800, 9_900, 10_000]),
        // Never is longer than any wait.
        (ask(W, 1_200, 4), [0, 3, 1, -1, 900, 1_000]),
        (ask(W, 1_200, 6), [0, 3, 1, -1, 900, 1_000]),
        (ask(&[(10_000, 5), (1_000, 3)], 1_200, 6), [0, 5, 0, -1, 9_900, 10_000]),
    ]);
}

#[test]
fn a_tie_goes_to_the_window_written_first() {
    play(&[
        (ask(&[(1_000, 2), (2_000, 2)], 0, 1), [1, 2, 1, 0, 1_000, 1_000]),
        (ask(&[(2_000, 2), (1_000, 2)], 0, 1), [1, 2, 0, 0, 2_000, 2_000]),
    ]);
}

#[test]
fn force_charges_whatever_the_verdict_and_tells_the_state_after() {
    const W: &[(u64, u64)] = &[(1_000, 3)];
    play(&[
        (ask(W, 0, 2).force(), [1, 3, 1, 0, 1_000, 1_000]),
        // Usage 4: two units would have to leave before two more fit, and they leave at 1,000
        // together with the wish for a third: 4 + 2 - 3 = 3, so the second entry must go too.
        (ask(W, 400, 2).force(), [0, 3, 0, 1_000, 1_000, 1_000]),
        (ask(W, 500, 1), [0, 3, 0, 500, 900, 1_000]),
        // More than the limit can never be allowed, and is charged all the same.
        (ask(W, 600, 7).force(), [0, 3, 0, -1, 1_000, 1_000]),
        (ask(W, 1_400, 1), [0, 3, 0, 200, 200, 1_000]),
        (ask(W, 1_600, 0).force(), [1, 3, 3, 0, 0, 1_000]),
    ]);
}

#[test]
fn precision_rounds_stamps_up_and_merges() {
    // 1,796,037,190,903 is 97 ms before a multiple of 100.
    const W: &[(u64, u64)] = &[(1_000, 4)];
    let log = play(&[
        (ask(W, 0, 1).precision(100), [1, 4, 3, 0, 1_097, 1_000]),
        (ask(W, 97, 1).precision(100), [1, 4, 2, 0, 1_000, 1_000]),
        (ask(W, 98, 1).precision(100), [1, 4, 1, 0, 1_099, 1_000]),
        (ask(W, 150, 2).precision(100), [0, 4, 1, 947, 1_047, 1_000]),
        // Without PRECISION the stamp is still never before the newest, but nothing merges.
        (ask(W, 150, 1), [1, 4, 0, 0, 1_047, 1_000]),
    ]);
    let tick_ms = START_MS + 97;
    let stored = [(tick_ms, 2, 2), (tick_ms + 100, 3, 1), (tick_ms + 100, 4, 1)];
    assert_eq!(log.entries, Memory::of(&stored).entries);
}

#[test]
fn a_clock_that_steps_back_counts_the_whole_log() {
    const W: &[(u64, u64)] = &[(1_000, 3)];
    play(&[
        (ask(W, 900, 1), [1, 3, 2, 0, 1_000, 1_000]),
        // 600 ms back: stamped as the newest, so it leaves with it.
        (ask(W, 300, 1), [1, 3, 1, 0, 1_600, 1_000]),
        (ask(W, 0, 1), [1, 3, 0, 0, 1_900, 1_000]),
        (ask(W, 0, 1), [0, 3, 0, 1_900, 1_900, 1_000]),
        (ask(W, 1_899, 1), [0, 3, 0, 1, 1, 1_000]),
        (ask(W, 1_900, 3), [1, 3, 0, 0, 1_000, 1_000]),
    ]);
}

#[test]
fn a_clock_far_ahead_is_not_believed() {
    const W: &[(u64, u64)] = &[(1_000, 1)];
    let at_the_bound = Memory::of(&[(START_MS + 2_000, 9, 9)]);
    let beyond = Memory::of(&[(START_MS + 2_001, 9, 9)]);
    let call = Call::new(W, START_MS);

    let mut log = at_the_bound.clone();
    assert_eq!(log.slide(&call), [0, 1, 0, 3_000, 3_000, 1_000]);
    assert_eq!(log, at_the_bound);

    // A denial answers as a fresh limiter does and leaves the log alone.
    let mut log = beyond.clone();
    let mut dear = call.clone();
    dear.cost = 2;
    assert_eq!(log.slide(&dear), [0, 1, 1, -1, 0, 1_000]);
    assert_eq!(log, beyond);

    // An admission starts afresh.
    assert_eq!(log.slide(&call), [1, 1, 0, 0, 1_000, 1_000]);
    assert_eq!(log.entries, Memory::of(&[(START_MS, 1, 1)]).entries);

    // A late `AT` does not make the server's own stamps look ahead.
    let mut late = call.clone();
    late.now_ms = 0;
    let mut log = Memory::of(&[(START_MS, 1, 1)]);
    assert_eq!(log.slide(&late)[0], 0);
}

#[test]
fn what_a_longer_window_stamps_ahead_is_not_far_ahead_of_a_shorter_one() {
    let hour: &[(u64, u64)] = &[(3_600_000, 3)];
    let second: &[(u64, u64)] = &[(1_000, 100)];
    let mut log = Memory::default();
    let coarse = Call { precision_ms: Some(60_000), ..Call::new(hour, START_MS) };
    // The units of both count against the hour.
    for expected in [1, 1, 0, 0] {
        assert_eq!(log.slide(&coarse)[0], expected);
        assert_eq!(log.slide(&Call::new(second, START_MS))[0], 1);
    }
    assert_eq!(log.entries.iter().map(|entry| entry.cost).sum::<u64>(), 6);
}

#[test]
fn a_time_far_behind_the_clock_stops_trimming_for_two_windows_at_most() {
    let window: &[(u64, u64)] = &[(1_000, 1_000)];
    // The last one is in seconds instead of milliseconds.
    for behind_ms in [500, 2_000, 3_000, 86_400_000, 31_536_000_000, START_MS - START_MS / 1_000] {
        let mut log = Memory::default();
        log.slide(&Call::new(window, START_MS));
        let late = Call { now_ms: START_MS - behind_ms, ..Call::new(window, START_MS) };
        log.slide(&late);
        assert!(log.expires_at_ms <= Some(START_MS + 3_250), "{behind_ms}: {log:?}");
        for step in 1..=200 {
            log.slide(&Call::new(window, START_MS + 100 * step));
            assert!(log.entries.len() <= 33, "{} entries", log.entries.len());
        }
        assert!(log.entries.len() <= 11, "{} entries", log.entries.len());
    }
}

#[test]
fn a_time_far_behind_the_clock_makes_a_bounded_log_no_coarser_than_its_windows() {
    let window: &[(u64, u64)] = &[(60_000, 100)];
    for behind_ms in [180_000, 86_400_000, 31_536_000_000] {
        let mut log = Memory { max_entries: 1_000, ..Memory::default() };
        log.slide(&Call { now_ms: START_MS - behind_ms, ..Call::new(window, START_MS) });
        let asked = (1..=5_000).map(|step| log.slide(&Call::new(window, START_MS + 500 * step)));
        let replies: Vec<Reply> = asked.collect();
        let longest_wait_ms = replies.iter().map(|reply| reply[3]).max();
        assert!(longest_wait_ms <= Some(60_000), "{behind_ms}: {longest_wait_ms:?}");
        assert!(log.entries.len() <= 101, "{} entries", log.entries.len());
    }
}
