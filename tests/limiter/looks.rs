//! How often a decision looks into a log: so many times at most, whatever is in it.

use crate::memory::{Memory, reply, request};
use crate::model::{Call, Reply};
use proptest::collection::btree_set;
use proptest::prelude::*;
use rl::limiter::{Entry, Log, LogError, MAX_WINDOW_MS, decide};

const START_MS: u64 = 1_796_037_190_000;

/// The newest entry that is believed lies two windows ahead of the clock, and the oldest that counts one
/// behind it: bisecting three of the longest windows takes 40 steps, of two looks each.
const MOST_STEPS: u32 = 40;

/// The oldest, the newest, and the first inside the window.
const OTHER_LOOKS: u32 = 3;

/// A log that counts the looks into it.
struct Watched {
    log: Memory,
    looks: u32,
}

impl Watched {
    fn look<T>(&mut self, look: impl FnOnce(&mut Memory) -> T) -> T {
        self.looks += 1;
        look(&mut self.log)
    }
}

impl Log for Watched {
    fn len(&self) -> u64 {
        self.log.len()
    }

    fn expires_at_ms(&self) -> Option<u64> {
        self.log.expires_at_ms()
    }

    fn oldest(&mut self) -> Result<Option<Entry>, LogError> {
        self.look(Memory::oldest)
    }

    fn newest(&mut self) -> Result<Option<Entry>, LogError> {
        self.look(Memory::newest)
    }

    fn first_from(&mut self, from_ms: u64) -> Result<Option<Entry>, LogError> {
        self.look(|log| log.first_from(from_ms))
    }

    fn last_until(&mut self, until_ms: u64) -> Result<Option<Entry>, LogError> {
        self.look(|log| log.last_until(until_ms))
    }
}

/// The looks that a denial takes which waits for `units` of a log of one unit at each of these stamps.
fn looks(stamps_ms: impl IntoIterator<Item = u64>, units: u64) -> (Reply, u32) {
    let entry = |(total, stamp_ms)| Entry { stamp_ms, total, cost: 1 };
    let entries: Vec<Entry> = (1..).zip(stamps_ms).map(entry).collect();
    let limit = entries.len() as u64;
    let mut log = Watched { log: Memory { entries, ..Memory::default() }, looks: 0 };
    let call = Call { cost: units, ..Call::new(&[(MAX_WINDOW_MS, limit)], START_MS) };
    let decision = decide(&mut log, &request(&call)).unwrap();
    (reply(&decision.verdict), log.looks)
}

#[test]
fn the_longest_bisection_takes_40_steps() {
    // Each step halves what is left and finds an entry there, up to the first two.
    let first_ms = START_MS - MAX_WINDOW_MS + 1;
    let stamps_ms = (0..40).map(|power| first_ms + (1 << power) - 1);
    let ([allowed, .., window_ms], looks) = looks(stamps_ms, 2);
    assert_eq!((allowed, window_ms), (0, MAX_WINDOW_MS as i64));
    assert!((MOST_STEPS..=MOST_STEPS * 2 + OTHER_LOOKS).contains(&looks), "{looks} looks");
}

proptest! {
    #![proptest_config(crate::seeded::config())]

    #[test]
    fn no_log_takes_more_looks(
        offsets_ms in btree_set(0..3 * MAX_WINDOW_MS, 1..300),
        units in 1..300_u64,
    ) {
        let first_ms = START_MS - MAX_WINDOW_MS + 1;
        let stamps_ms = offsets_ms.iter().map(|offset_ms| first_ms + offset_ms);
        let units = units.min(offsets_ms.len() as u64);
        let (reply, looks) = looks(stamps_ms, units);
        prop_assert_eq!(reply[0], 0);
        prop_assert!(looks <= MOST_STEPS * 2 + OTHER_LOOKS, "{} looks", looks);
    }
}
