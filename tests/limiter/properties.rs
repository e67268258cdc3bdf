//! Random streams: the limiter against the model, and the promises that a user can check.
//!
//! The seed is fixed, and printed with the shortest stream that fails; `PROPTEST_RNG_SEED` sets
//! another and `PROPTEST_CASES` the number of streams of each property.

use crate::memory::Memory;
use crate::model::{Call, Model};
use crate::promises::{check_peek, check_wait};
use crate::seeded::config;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

const START_MS: u64 = 1_796_037_190_903;

/// How the time of a request differs from that of the one before: mostly forward, sometimes not.
fn advance_ms() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => 0..=3_i64,
        4 => 0..=400_i64,
        1 => 400..=5_000_i64,
        1 => -1_500..0_i64,
    ]
}

fn cost() -> impl Strategy<Value = u64> {
    prop_oneof![6 => Just(1_u64), 3 => 0..=6_u64, 1 => 7..=40_u64]
}

/// The window lengths that the streams mix: close to each other and far apart.
const LENGTHS_MS: [u64; 6] = [1, 90, 100, 700, 1_000, 4_000];

fn windows(count: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<(u64, u64)>> {
    let lengths = subsequence(LENGTHS_MS.to_vec(), count).prop_shuffle();
    lengths.prop_flat_map(|lengths| {
        let limits = vec(0..=12_u64, lengths.len());
        limits.prop_map(move |limits| lengths.iter().copied().zip(limits).collect())
    })
}

/// One step: how far time moves, and what is asked.
#[derive(Clone, Debug)]
struct Step {
    advance_ms: i64,
    cost: u64,
    force: bool,
    precision_ms: Option<u64>,
    /// For streams that change their windows: which of a few sets this step uses.
    set: prop::sample::Index,
}

fn steps(force: bool, precision: bool) -> impl Strategy<Value = Vec<Step>> {
    let forces = if force { vec![false, false, false, true] } else { vec![false] };
    let precisions = match precision {
        true => vec![None, Some(1), Some(7), Some(64), Some(1_000)],
        false => vec![None],
    };
    let step =
        (advance_ms(), cost(), select(forces), select(precisions), any::<prop::sample::Index>());
    let step = step.prop_map(|(advance_ms, cost, force, precision_ms, set)| Step {
        advance_ms,
        cost,
        force,
        precision_ms,
        set,
    });
    vec(step, 1..80)
}

/// The same steps with a clock that never steps back.
fn forward(steps: &[Step]) -> Vec<Step> {
    let forward = |step: &Step| Step { advance_ms: step.advance_ms.abs(), ..step.clone() };
    steps.iter().map(forward).collect()
}

/// The calls of a stream over a fixed choice of window sets.
fn calls<'a>(steps: &'a [Step], sets: &'a [Vec<(u64, u64)>]) -> impl Iterator<Item = Call> + 'a {
    let mut now_ms = START_MS;
    steps.iter().map(move |step| {
        now_ms = now_ms.saturating_add_signed(step.advance_ms);
        let windows = step.set.get(sets);
        let shortest_ms = windows.iter().map(|(window_ms, _)| *window_ms).min().unwrap();
        let mut call = Call::new(windows, now_ms);
        (call.cost, call.force) = (step.cost, step.force);
        call.precision_ms = step.precision_ms.map(|precision_ms| precision_ms.min(shortest_ms));
        call
    })
}

/// Whether all calls of a stream name windows of the same lengths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lengths {
    Same,
    Vary,
}

/// Plays a stream over the log and the model and compares everything: every field, every entry,
/// the expiry, and that a denial changes nothing.
fn compare(calls: impl Iterator<Item = Call>, windows: Lengths) -> Result<(), TestCaseError> {
    let (mut log, mut model) = (Memory::default(), Model::default());
    for (index, call) in calls.enumerate() {
        log.expire(call.clock_ms);
        let before = log.clone();
        let peeked = log.peek(&call);
        let reply = log.slide(&call);
        check_peek(peeked, reply, &call);
        prop_assert_eq!(reply, model.slide(&call), "call {}: {:?}", index, call);
        prop_assert_eq!(log.charged(), model.entries.clone(), "call {}: {:?}", index, call);
        prop_assert_eq!(log.expires_at_ms, model.expires_at_ms, "call {}: {:?}", index, call);
        if (reply[0] == 0 && !call.force) || call.cost == 0 {
            prop_assert_eq!(&log, &before, "call {} wrote: {:?}", index, call);
        }
        if reply[3] > 0 {
            // A window longer than those that charged may find the key expired, and be admitted
            // sooner; one that was named all along may not.
            check_wait(reply, &call, &log, |log, call| log.admits(call, windows == Lengths::Same));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn one_window_answers_as_the_model(steps in steps(false, false), set in windows(1..=1)) {
        compare(calls(&steps, &[set]), Lengths::Same)?;
    }

    #[test]
    fn several_windows_in_one_call_answer_as_the_model(
        steps in steps(false, false),
        set in windows(2..=6),
    ) {
        compare(calls(&steps, &[set]), Lengths::Same)?;
    }

    #[test]
    fn windows_and_limits_that_change_answer_as_the_model(
        steps in steps(false, false),
        sets in vec(windows(1..=3), 2..=4),
    ) {
        compare(calls(&steps, &sets), Lengths::Vary)?;
    }

    #[test]
    fn force_and_precision_answer_as_the_model(
        steps in steps(true, true),
        sets in vec(windows(1..=3), 1..=3),
    ) {
        compare(calls(&steps, &sets), Lengths::Vary)?;
    }

    /// Against a log that never forgets: as long as the windows stay the same and time does not step
    /// back, trimming, dropping and expiry change no answer, whatever the limits do.
    #[test]
    fn forgetting_changes_no_answer(
        steps in steps(true, true),
        lengths in windows(1..=3),
        limits in vec(vec(0..=12_u64, 3), 1..=3),
    ) {
        let set = |limits: &Vec<u64>| {
            let limits = limits.iter().copied();
            lengths.iter().zip(limits).map(|((length, _), limit)| (*length, limit)).collect()
        };
        let sets: Vec<Vec<(u64, u64)>> = limits.iter().map(set).collect();
        let (mut log, mut ideal) = (Memory::default(), Ideal::default());
        for call in calls(&forward(&steps), &sets) {
            let reply = log.slide(&call);
            prop_assert_eq!(reply[0] == 1, ideal.admits(&call), "{:?}", call);
            if (reply[0] == 1 || call.force) && call.cost > 0 {
                ideal.charged.push((log.entries.last().unwrap().stamp_ms, call.cost));
            }
        }
    }

    /// No window ever holds more than its limit: of what was admitted, by the times of the requests
    /// themselves where those never step back.
    #[test]
    fn no_window_ever_holds_more_than_its_limit(
        steps in steps(false, true),
        set in windows(1..=3),
    ) {
        let mut log = Memory::default();
        let mut admitted: Vec<(u64, u64)> = Vec::new();
        for call in calls(&forward(&steps), std::slice::from_ref(&set)) {
            if log.slide(&call)[0] == 1 {
                admitted.push((call.now_ms, call.cost));
            }
        }
        for (window_ms, limit) in &set {
            for (start_ms, _) in &admitted {
                let inside = admitted.iter().filter(|(at_ms, _)| {
                    (*start_ms..start_ms + window_ms).contains(at_ms)
                });
                prop_assert!(inside.map(|(_, cost)| cost).sum::<u64>() <= *limit);
            }
        }
    }

    /// With PRECISION, a log keeps at most `ceil(W / p) + 1` entries inside its window.
    #[test]
    fn precision_bounds_the_log(
        advances_ms in vec(0..=40_u64, 1..200),
        precision_ms in 1..=300_u64,
        window_ms in 300..=1_000_u64,
    ) {
        let mut log = Memory::default();
        let mut now_ms = START_MS;
        for advance_ms in advances_ms {
            now_ms += advance_ms;
            let call = Call::new(&[(window_ms, 1_000)], now_ms);
            log.slide(&Call { precision_ms: Some(precision_ms), ..call });
            let inside = log.entries.iter().filter(|entry| now_ms < entry.stamp_ms + window_ms);
            prop_assert!(inside.count() as u64 <= window_ms.div_ceil(precision_ms) + 1);
        }
    }

    /// A longer window that is charged often enough in calls of its own counts everything, though
    /// shorter ones use the log in between, whose own windows its stamps may lie far ahead of.
    #[test]
    fn a_longer_window_in_turn_counts_what_it_should(
        steps in vec((0..=100_u64, cost(), any::<bool>()), 1..120),
        precision_ms in select(vec![None, Some(1_000), Some(4_000)]),
        short_ms in select(vec![10_u64, 100, 1_000]),
    ) {
        // The long window is charged at least every 600 ms, less than 4,000 - 1.25 * 1,000.
        let (short, long) = ((short_ms, 1_000_000), (4_000, 1_000_000));
        let (mut log, mut ideal) = (Memory::default(), Ideal::default());
        let (mut now_ms, mut long_at_ms) = (START_MS, 0);
        for (advance_ms, cost, prefers_long) in steps {
            now_ms += advance_ms;
            let is_long = prefers_long || now_ms - long_at_ms >= 500;
            let window = if is_long { long } else { short };
            let mut call = Call { cost: cost.max(1), ..Call::new(&[window], now_ms) };
            if is_long {
                (call.precision_ms, long_at_ms) = (precision_ms, now_ms);
            }
            let reply = log.slide(&call);
            ideal.charged.push((log.entries.last().unwrap().stamp_ms, call.cost));
            prop_assert_eq!(1_000_000 - reply[2] as u64, ideal.usage(window.0, now_ms), "{:?}", call);
        }
    }
}

/// Every charge ever made, `(stamp_ms, cost)`.
#[derive(Default)]
struct Ideal {
    charged: Vec<(u64, u64)>,
}

impl Ideal {
    fn usage(&self, window_ms: u64, now_ms: u64) -> u64 {
        let inside = self.charged.iter().filter(|(stamp_ms, _)| now_ms < stamp_ms + window_ms);
        inside.map(|(_, cost)| cost).sum()
    }

    fn admits(&self, call: &Call) -> bool {
        let fits = |(window_ms, limit): &(u64, u64)| {
            self.usage(*window_ms, call.now_ms) + call.cost <= *limit
        };
        call.windows.iter().all(fits)
    }
}
