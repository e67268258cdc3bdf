//! A small world, walked whole: every sequence of few choices, each step compared with the model.

use crate::memory::Memory;
use crate::model::{Call, Model};

/// Late enough for every window to reach back from it.
const START_MS: u64 = 100;

/// What one step may be.
struct World {
    advances_ms: &'static [u64],
    costs: &'static [u64],
    forces: &'static [bool],
    precision_ms: Option<u64>,
}

/// Walks every sequence of `steps` and returns how many calls that took.
fn walk(
    world: &World,
    window: (u64, u64),
    now_ms: u64,
    log: &Memory,
    model: &Model,
    steps: u32,
) -> u64 {
    if steps == 0 {
        return 0;
    }
    let mut calls = 0;
    for advance_ms in world.advances_ms {
        for cost in world.costs {
            for force in world.forces {
                let now_ms = now_ms + advance_ms;
                let mut call = Call::new(&[window], now_ms);
                (call.cost, call.force, call.precision_ms) = (*cost, *force, world.precision_ms);
                let (mut log_before, mut model_after) = (log.clone(), model.clone());
                log_before.expire(now_ms);
                let mut log_after = log_before.clone();
                let (reply, expected) = (log_after.slide(&call), model_after.slide(&call));
                assert_eq!(reply, expected, "{call:?} on {log:?}");
                assert_eq!(log_after.charged(), model_after.entries, "{call:?} on {log:?}");
                if reply[0] == 0 && !force {
                    assert_eq!(log_after, log_before, "a denial wrote: {call:?}");
                }
                calls += 1 + walk(world, window, now_ms, &log_after, &model_after, steps - 1);
            }
        }
    }
    calls
}

fn walk_all_windows(world: &World, steps: u32) -> u64 {
    let mut calls = 0;
    for window_ms in 1..=4 {
        for limit in 0..=3 {
            if world.precision_ms.is_none_or(|precision_ms| precision_ms <= window_ms) {
                let (log, model) = (Memory::default(), Model::default());
                calls += walk(world, (window_ms, limit), START_MS, &log, &model, steps);
            }
        }
    }
    calls
}

/// Calls in all sequences of up to `steps` out of `choices`.
fn tree(choices: u64, steps: u32) -> u64 {
    (1..=steps).map(|length| choices.pow(length)).sum()
}

#[test]
fn every_sequence_of_eight_plain_requests() {
    let world =
        World { advances_ms: &[0, 1, 2], costs: &[1, 2], forces: &[false], precision_ms: None };
    assert_eq!(walk_all_windows(&world, 8), 16 * tree(6, 8));
}

#[test]
fn every_sequence_of_four_with_force_and_precision() {
    for (precision_ms, worlds) in [(None, 16), (Some(1), 16), (Some(2), 12), (Some(3), 8)] {
        let world =
            World { advances_ms: &[0, 1, 2], costs: &[1, 2], forces: &[false, true], precision_ms };
        assert_eq!(walk_all_windows(&world, 4), worlds * tree(12, 4));
    }
}
