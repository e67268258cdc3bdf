//! The sliding window counter: timelines, random streams against fractions, and its worst case.

use crate::counter_memory::CounterMemory;
use crate::memory::{reply, request};
use crate::model::{Call, CounterModel, Reply};
use crate::promises::{check_peek, check_wait};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use rl::limiter::{Charge, Counter, MAX_STORED_UNITS, Request, decide_counters};

/// A multiple of every window used here.
const START_MS: u64 = 1_796_036_400_000;

fn counter(window_ms: u64, start_ms: u64, current: u64, previous: u64) -> Counter {
    Counter { window_ms, start_ms, current, previous }
}

fn call(windows: &[(u64, u64)], after_ms: u64, cost: u64) -> Call {
    Call { cost, ..Call::new(windows, START_MS + after_ms) }
}

/// Plays requests of `(after_ms, cost)` over the counters and over the model.
fn play(windows: &[(u64, u64)], timeline: &[(u64, u64, Reply)]) -> CounterMemory {
    let (mut memory, mut model) = (CounterMemory::default(), CounterModel::default());
    for (row, (after_ms, cost, expected)) in timeline.iter().enumerate() {
        let call = call(windows, *after_ms, *cost);
        assert_eq!(memory.swc(&call), *expected, "row {row}");
        assert_eq!(model.swc(&call), *expected, "the model, row {row}");
    }
    memory
}

#[test]
fn the_documented_example() {
    // Limit 10, 30 s into a window of 60 s, 8 before and 3 now: the estimate is 7.
    let memory = CounterMemory::of(&[counter(60_000, START_MS, 3, 8)]);
    let asked = call(&[(60_000, 10)], 30_000, 0);
    assert_eq!(reply(&memory.decide(&asked).verdict)[..3], [1, 10, 3]);
    let four = call(&[(60_000, 10)], 30_000, 4);
    assert_eq!(reply(&memory.decide(&four).verdict)[..3], [0, 10, 3]);
}

#[test]
fn a_timeline_of_one_window() {
    let memory = play(
        &[(1_000, 4)],
        &[
            (0, 2, [1, 4, 2, 0, 1_501, 1_000]),
            (100, 2, [1, 4, 0, 0, 1_651, 1_000]),
            // Full: of 4, one has decayed when less than 4/4 of the next window is left.
            (200, 1, [0, 4, 0, 801, 1_551, 1_000]),
            (1_000, 1, [0, 4, 0, 1, 751, 1_000]),
            (1_001, 1, [1, 4, 0, 0, 1_000, 1_000]),
            (1_001, 1, [0, 4, 0, 250, 1_000, 1_000]),
            (1_001, 5, [0, 4, 0, -1, 1_000, 1_000]),
            (1_251, 1, [1, 4, 0, 0, 1_250, 1_000]),
            (4_000, 1, [1, 4, 3, 0, 1_001, 1_000]),
        ],
    );
    assert_eq!(memory.stored(), [counter(1_000, START_MS + 4_000, 1, 0)]);
}

#[test]
fn several_windows_are_charged_together_or_not_at_all() {
    let memory = play(
        &[(1_000, 3), (10_000, 4)],
        &[
            (0, 3, [1, 3, 0, 0, 1_667, 1_000]),
            (1_900, 1, [1, 4, 0, 0, 17_501 - 1_900, 10_000]),
            (1_950, 1, [0, 4, 0, 8_051, 17_501 - 1_950, 10_000]),
        ],
    );
    let stored = [counter(1_000, START_MS + 1_000, 1, 3), counter(10_000, START_MS, 4, 0)];
    assert_eq!(memory.stored(), stored);
}

#[test]
fn a_time_before_the_start_counts_as_the_start() {
    let mut memory = CounterMemory::of(&[counter(1_000, START_MS, 1, 2)]);
    let windows = &[(1_000, 3)];
    let late = |before_ms| Call::new(windows, START_MS - before_ms);
    assert_eq!(memory.swc(&Call { cost: 0, ..late(700) })[2], 0);
    // From the start on, 2 * (1000 - e) / 1000 is below 2 a millisecond later.
    assert_eq!(memory.swc(&late(700)), [0, 3, 0, 701, 1_701, 1_000]);
}

#[test]
fn a_start_far_ahead_counts_as_absent() {
    let windows = &[(1_000, 5)];
    let at_the_bound = CounterMemory::of(&[counter(1_000, START_MS + 1_000, 5, 0)]);
    assert_eq!(reply(&at_the_bound.decide(&call(windows, 0, 1)).verdict)[0], 0);
    assert!(!at_the_bound.decide(&call(windows, 0, 1)).clock_ahead);

    let mut beyond = CounterMemory::of(&[counter(1_000, START_MS + 2_000, 5, 0)]);
    assert!(beyond.decide(&call(windows, 0, 1)).clock_ahead);
    assert_eq!(beyond.swc(&call(windows, 0, 1)), [1, 5, 4, 0, 1_001, 1_000]);
    assert_eq!(beyond.stored(), [counter(1_000, START_MS, 1, 0)]);
}

#[test]
fn windows_of_other_calls_stay_until_they_have_passed() {
    let mut memory = CounterMemory::default();
    memory.swc(&call(&[(1_000, 9)], 0, 1));
    memory.swc(&call(&[(5_000, 9)], 0, 1));
    // The expiry is that of the window that ends last, whichever call sets it.
    assert_eq!(memory.expires_at_ms, Some(START_MS + 10_000));
    memory.swc(&call(&[(500, 9)], 1_999, 1));
    assert_eq!(memory.counters.as_slice().len(), 3);
    assert_eq!(memory.expires_at_ms, Some(START_MS + 10_000));
    memory.swc(&call(&[(5_000, 9)], 2_000, 1));
    let left: Vec<u64> = memory.stored().iter().map(|counter| counter.window_ms).collect();
    assert_eq!(left, [500, 5_000]);
}

#[test]
fn a_ninth_window_displaces_the_one_that_ends_first() {
    let mut memory = CounterMemory::default();
    for window_ms in [8_000, 1_000, 7_000, 2_000, 6_000, 3_000, 5_000, 4_000] {
        memory.swc(&call(&[(window_ms, 9)], 0, 1));
    }
    memory.swc(&call(&[(9_000, 9), (2_000, 9)], 0, 1));
    let left: Vec<u64> = memory.stored().iter().map(|counter| counter.window_ms).collect();
    assert_eq!(left, [2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000]);
}

#[test]
fn a_denial_and_a_cost_of_zero_change_nothing() {
    let memory =
        CounterMemory::of(&[counter(1_000, START_MS, 5, 5), counter(90, START_MS - 9_000, 1, 1)]);
    for cost in [0, 1, 9] {
        assert!(memory.decide(&call(&[(1_000, 5)], 0, cost)).change.is_none(), "cost {cost}");
    }
}

#[test]
fn forced_charges_are_cut_to_what_a_counter_can_hold() {
    let full = MAX_STORED_UNITS;
    let mut memory = CounterMemory::of(&[counter(1_000, START_MS, full - 4, full)]);
    let forced = Call { force: true, ..call(&[(1_000, 5), (2_000, 5)], 0, 10) };
    assert_eq!(memory.swc(&forced)[..3], [0, 5, 0]);
    let cut = [counter(1_000, START_MS, full, full), counter(2_000, START_MS, 10, 0)];
    assert_eq!(memory.stored(), cut);

    // A counter that is full takes nothing more, and alone writes nothing.
    let alone = Call { force: true, ..call(&[(1_000, 5)], 0, 10) };
    let decision = memory.decide(&alone);
    assert!(decision.change.is_none());
    assert_eq!(reply(&decision.verdict)[3], -1);
    let one = Call { force: true, ..call(&[(1_000, 5)], 0, 1) };
    assert_eq!(reply(&memory.decide(&one).verdict)[3..5], [2_000, 2_000]);
}

#[test]
fn a_time_slower_than_the_clock_forgets_nothing() {
    let windows = &[(1_000, 2)];
    let mut memory = CounterMemory::default();
    let at = |clock_ms| Call { clock_ms: START_MS + clock_ms, ..call(windows, 0, 1) };
    // Every charge pushes the expiry along; less than a window passes between two of them.
    for step in 0..100 {
        let forced = Call { force: true, ..at(step * 900) };
        assert_eq!(memory.swc(&forced)[0], i64::from(step < 2), "step {step}");
    }
}

#[test]
fn a_time_ahead_of_the_clock_takes_nothing_from_other_calls() {
    let mut memory = CounterMemory::default();
    memory.swc(&call(&[(4_000, 5)], 0, 5));
    assert_eq!(memory.expires_at_ms, Some(START_MS + 8_000));
    for ahead_ms in [7_600, 3 * 3_600_000] {
        let ahead = call(&[(200, 5)], ahead_ms, 1);
        memory.swc(&Call { clock_ms: START_MS, ..ahead });
        assert!(memory.expires_at_ms >= Some(START_MS + 8_000));
        assert_eq!(memory.counters.find(4_000).unwrap().current, 5);
    }
}

/// What the counter cannot promise: as it spreads the window before evenly, twice the limit can
/// pass inside one trailing window.
#[test]
fn up_to_twice_the_limit_can_pass_in_one_trailing_window() {
    const LIMIT: u64 = 1_000;
    let windows = &[(60_000, LIMIT)];
    let mut memory = CounterMemory::default();
    // All of the limit in the last millisecond of a window, then as fast as it lets pass.
    let mut passed = 0;
    for _ in 0..LIMIT {
        passed += memory.swc(&call(windows, 59_999, 1))[0];
    }
    for after_ms in 60_000..119_999 {
        while memory.swc(&call(windows, after_ms, 1))[0] == 1 {
            passed += 1;
        }
    }
    // All of this lies within 60 s: from 59,999 to 119,998.
    assert_eq!(passed as u64, 2 * LIMIT);

    // With a limit of 1: two requests 2 ms apart.
    let (windows, mut memory) = (&[(60_000, 1)], CounterMemory::default());
    assert_eq!(memory.swc(&call(windows, 59_999, 1))[0], 1);
    assert_eq!(memory.swc(&call(windows, 60_000, 1))[0], 0);
    assert_eq!(memory.swc(&call(windows, 60_001, 1))[0], 1);
}

/// The windows that the streams mix. Short, for the model tries every millisecond.
const LENGTHS_MS: [u64; 5] = [1, 7, 30, 40, 120];

fn sets() -> impl Strategy<Value = Vec<Vec<(u64, u64)>>> {
    let lengths = subsequence(LENGTHS_MS.to_vec(), 1..=3).prop_shuffle();
    let set = lengths.prop_flat_map(|lengths| {
        let limits = vec(0..=9_u64, lengths.len());
        limits.prop_map(move |limits| lengths.iter().copied().zip(limits).collect())
    });
    vec(set, 1..=3)
}

proptest! {
    #![proptest_config(crate::seeded::config())]

    #[test]
    fn answers_as_fractions_do(
        sets in sets(),
        steps in vec(
            (0..=25_i64, -90..=0_i64, 0..=20_u32, 0..=7_u64, select(vec![false, false, true]),
             any::<prop::sample::Index>()),
            1..60,
        ),
    ) {
        let (mut memory, mut model) = (CounterMemory::default(), CounterModel::default());
        let mut now_ms = START_MS;
        for (forward_ms, back_ms, chance, cost, force, set) in steps {
            now_ms = now_ms.saturating_add_signed(if chance == 0 { back_ms } else { forward_ms });
            let call = Call { cost, force, ..Call::new(set.get::<Vec<_>>(&sets), now_ms) };
            // The expiry is another test's: here the counters alone must know what has passed.
            memory.expires_at_ms = None;
            let before = memory.stored();
            let peek = Request { charge: Charge::Never, ..request(&call) };
            let peeked = decide_counters(&memory.counters, None, &peek);
            let reply = memory.swc(&call);
            prop_assert_eq!(reply, model.swc(&call), "{:?} on {:?}", call, before);
            prop_assert!(peeked.change.is_none());
            check_peek(super::memory::reply(&peeked.verdict), reply, &call);
            if (reply[0] == 0 && !force) || cost == 0 {
                prop_assert_eq!(memory.stored(), before);
            }
            // A counter from a clock far ahead is believed again when that time comes nearer.
            if reply[3] > 0 && !memory.decide(&call).clock_ahead {
                check_wait(reply, &call, &memory, |memory, call| memory.decide(call).verdict.allowed);
            }
        }
    }

    /// The expiry forgets nothing that counts.
    #[test]
    fn expiring_changes_no_answer(
        sets in sets(),
        steps in vec((0..=60_u64, 1..=7_u64, any::<prop::sample::Index>()), 1..60),
    ) {
        let (mut memory, mut model) = (CounterMemory::default(), CounterModel::default());
        let mut now_ms = START_MS;
        for (forward_ms, cost, set) in steps {
            now_ms += forward_ms;
            let call = Call { cost, ..Call::new(set.get::<Vec<_>>(&sets), now_ms) };
            prop_assert_eq!(memory.swc(&call), model.swc(&call), "{:?}", call);
        }
    }

    /// However the request's own time runs against the server's clock: while no more than the longest
    /// window passes on it between two charges, nothing is forgotten.
    #[test]
    fn a_time_of_its_own_forgets_nothing(
        sets in sets(),
        steps in vec((0..=60_u64, 0..=119_u64, 1..=7_u64), 1..60),
    ) {
        let windows = &sets[0];
        let longest_ms = windows.iter().map(|(window_ms, _)| *window_ms).max().unwrap();
        let (mut memory, mut model) = (CounterMemory::default(), CounterModel::default());
        let (mut now_ms, mut clock_ms) = (START_MS, START_MS + 5_000);
        for (forward_ms, clock_forward_ms, cost) in steps {
            now_ms += forward_ms;
            clock_ms += clock_forward_ms % longest_ms;
            // Forced, so that every call is a charge.
            let call = Call { cost, force: true, clock_ms, ..Call::new(windows, now_ms) };
            prop_assert_eq!(memory.swc(&call), model.swc(&call), "{:?}", call);
        }
    }

    /// Charges, refunds and time in turn, against two plain counts.
    #[test]
    fn a_refund_takes_what_is_counted_and_no_more(
        steps in vec((any::<bool>(), 0..=120_u64, 1..=20_u64), 1..80),
    ) {
        const W: u64 = 100;
        let mut memory = CounterMemory::default();
        // Units by the number of the window.
        let mut charged: std::collections::BTreeMap<u64, u64> = Default::default();
        let mut now_ms = START_MS;
        for (refunds, forward_ms, units) in steps {
            now_ms += forward_ms;
            let window = now_ms / W;
            if refunds {
                let mut left = units;
                for index in [window, window - 1] {
                    let held = charged.entry(index).or_default();
                    let taken = left.min(*held);
                    (*held, left) = (*held - taken, left - taken);
                }
                prop_assert_eq!(memory.refund(units, now_ms, now_ms), units - left);
            } else {
                let call = Call { cost: units, ..Call::new(&[(W, 1_000_000)], now_ms) };
                memory.swc(&call);
                *charged.entry(window).or_default() += units;
            }
            let ask = Call { cost: 0, ..Call::new(&[(W, 1_000_000)], now_ms) };
            let held = |index| charged.get(&index).copied().unwrap_or(0);
            let usage = held(window - 1) * (W - now_ms % W) / W + held(window);
            prop_assert_eq!(memory.swc(&ask)[2] as u64, 1_000_000 - usage);
        }
    }

    /// At any size: the products are exact, the waits are right and on time.
    #[test]
    fn solves_for_large_numbers(
        window_ms in 1..=rl::limiter::MAX_WINDOW_MS,
        elapsed in 0..1_000_u64,
        current in 0..=MAX_STORED_UNITS,
        previous in 0..=MAX_STORED_UNITS,
        units in 0..=MAX_STORED_UNITS,
    ) {
        let start_ms = START_MS - START_MS % window_ms;
        let counter = counter(window_ms, start_ms, current, previous);
        let now_ms = start_ms + (window_ms as u128 * elapsed as u128 / 1_000) as u64;
        let exact = previous as u128 * (window_ms - (now_ms - start_ms)) as u128 / window_ms as u128;
        prop_assert_eq!(counter.usage(now_ms) as u128, exact + current as u128);

        let at_ms = counter.falls_to_at_ms(units);
        let usage = |at_ms| counter.rotated_to(at_ms).usage(at_ms);
        prop_assert!(usage(at_ms) <= units);
        prop_assert!(at_ms == start_ms || usage(at_ms - 1) > units);
    }
}
