//! Holds each decision against what may be in a window.

use super::limiters::{Limit, Limiter};
use std::collections::VecDeque;

/// What a limiter did with the requests of a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub requests: u64,
    pub admitted: u64,
    /// Admitted though the window was full.
    pub wrongly_admitted: u64,
    /// Denied though the window had room.
    pub wrongly_denied: u64,
    /// The most that were admitted in any stretch as long as the window.
    pub most_in_window: u64,
    /// The most room that the window had when a request was denied.
    pub most_room_denied: u64,
}

/// Asks `limiter` at each of `times_ms`, which never fall.
pub fn judge(limit: Limit, times_ms: &[u64], limiter: &mut dyn Limiter) -> Outcome {
    let mut outcome = Outcome::default();
    // When those were admitted that are in the window which ends now: an admission at `s` is in it
    // until just before `s + window`.
    let mut inside_ms: VecDeque<u64> = VecDeque::new();
    for &now_ms in times_ms {
        while inside_ms.front().is_some_and(|at_ms| at_ms + limit.window_ms <= now_ms) {
            inside_ms.pop_front();
        }
        let room = limit.units.saturating_sub(inside_ms.len() as u64);
        outcome.requests += 1;
        if limiter.admits(now_ms) {
            inside_ms.push_back(now_ms);
            outcome.admitted += 1;
            outcome.wrongly_admitted += u64::from(room == 0);
            // Only an admission makes it more, so no other moment needs a look.
            outcome.most_in_window = outcome.most_in_window.max(inside_ms.len() as u64);
        } else {
            outcome.wrongly_denied += u64::from(room > 0);
            outcome.most_room_denied = outcome.most_room_denied.max(room);
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const LIMIT: Limit = Limit { units: 5, window_ms: 100 };

    /// A limiter that throws dice.
    struct Dice(Random);

    impl Limiter for Dice {
        fn admits(&mut self, _now_ms: u64) -> bool {
            self.0.below(2) == 0
        }
    }

    /// The same counts, by a look at every window that ends at a whole millisecond.
    fn by_looking_everywhere(decisions: &[(u64, bool)]) -> Outcome {
        let admitted_in = |from_ms: u64, end_ms: u64, until: usize| {
            let inside = decisions[..until].iter();
            let inside = inside.filter(|(at_ms, _)| (from_ms..end_ms).contains(at_ms));
            inside.filter(|(_, admitted)| *admitted).count() as u64
        };
        let mut outcome = Outcome::default();
        for (index, &(now_ms, admitted)) in decisions.iter().enumerate() {
            let before = admitted_in((now_ms + 1).saturating_sub(100), now_ms + 1, index);
            let room = LIMIT.units.saturating_sub(before);
            outcome.requests += 1;
            outcome.admitted += u64::from(admitted);
            outcome.wrongly_admitted += u64::from(admitted && room == 0);
            outcome.wrongly_denied += u64::from(!admitted && room > 0);
            if !admitted {
                outcome.most_room_denied = outcome.most_room_denied.max(room);
            }
        }
        let last_ms = decisions.last().unwrap().0;
        let windows = (0..=last_ms).map(|at_ms| admitted_in(at_ms, at_ms + 100, decisions.len()));
        outcome.most_in_window = windows.max().unwrap();
        outcome
    }

    #[test]
    fn counts_are_those_of_every_window() {
        for seed in 0..50 {
            let mut random = Random(seed);
            let mut times_ms: Vec<u64> = (0..200).map(|_| random.below(3_000)).collect();
            times_ms.sort();
            let mut dice = Dice(Random(seed));
            let decisions: Vec<_> =
                times_ms.iter().map(|at_ms| (*at_ms, dice.admits(*at_ms))).collect();
            let outcome = judge(LIMIT, &times_ms, &mut Dice(Random(seed)));
            assert_eq!(outcome, by_looking_everywhere(&decisions), "seed {seed}");
            assert!(outcome.wrongly_admitted > 0 && outcome.wrongly_denied > 0, "{outcome:?}");
        }
    }
}
