//! A clock that walks at random, by 1 ms to 10 years back and forth, with some times from `AT` that are
//! as far off: every answer field for field as the brute-force models give it, and so what is stored.

use crate::clock::{Clock, START_MS, TEN_YEARS_MS};
use crate::model::{Call, CounterModel, Model};
use crate::random::Random;

const CALLS: usize = 4_000;

/// The arguments for windows, and the same as numbers.
type Windows = (&'static str, &'static [(u64, u64)]);

const WINDOWS: [Windows; 3] = [
    ("10s 4 1m 9", &[(10_000, 4), (60_000, 9)]),
    ("1m 12", &[(60_000, 12)]),
    ("1h 60 1m 15", &[(3_600_000, 60), (60_000, 15)]),
];

/// A walk of the clock, and what is asked on its way.
struct Walk {
    clock: Clock,
    random: Random,
    now_ms: i64,
}

impl Walk {
    fn new() -> Walk {
        Walk { clock: Clock::frozen(), random: Random::seeded(), now_ms: START_MS }
    }

    /// So many milliseconds as seldom as they are many.
    fn far_ms(&mut self) -> i64 {
        let scale = 1 << self.random.below(39);
        ((scale + self.random.below(scale)) as i64).min(TEN_YEARS_MS)
    }

    /// Mostly some seconds on; now and then far, and never farther from the start than ten years.
    fn step(&mut self) {
        let by_ms = match self.random.below(10) {
            0 => self.far_ms(),
            1 => -self.far_ms(),
            _ => self.random.below(4_000) as i64,
        };
        self.now_ms += by_ms;
        if (self.now_ms - START_MS).abs() > TEN_YEARS_MS {
            self.now_ms = START_MS;
        }
        self.clock.freeze_at(self.now_ms);
    }

    /// The next request, as words and as the model takes it.
    fn request(&mut self, (words, windows): Windows) -> (String, Call) {
        let at_ms = match self.random.below(8) {
            0 => self.now_ms + self.far_ms(),
            1 => self.now_ms - self.far_ms(),
            _ => self.now_ms,
        };
        let call = Call {
            cost: self.random.below(4),
            force: self.random.below(20) == 0,
            clock_ms: self.now_ms as u64,
            ..Call::new(windows, at_ms as u64)
        };
        let mut words = format!("k {words} COST {}", call.cost);
        if call.force {
            words += " FORCE";
        }
        if call.now_ms != call.clock_ms {
            words += &format!(" AT {at_ms}");
        }
        (words, call)
    }
}

/// A walk that admits all or nothing tells little.
fn assert_both_common(admitted: i64) {
    let share = admitted * 100 / CALLS as i64;
    assert!((20..=80).contains(&share), "{share} % admitted");
}

#[test]
fn logs_answer_as_the_model_does() {
    let mut walk = Walk::new();
    let server = walk.clock.server();
    let (mut model, mut admitted) = (Model::default(), 0);
    for number in 0..CALLS {
        walk.step();
        let windows = WINDOWS[walk.random.below(3) as usize];
        let (mut words, mut call) = walk.request(windows);
        if walk.random.below(8) == 0 {
            call.precision_ms = Some(3_000);
            words += " PRECISION 3s";
        }
        let peeked = server.peek(&words);
        let (reply, expected) = (server.slide(&words), model.slide(&call));
        assert_eq!(reply, expected, "call {number}: {call:?}");
        assert_eq!(peeked[0], reply[0], "call {number}: {call:?}");
        admitted += reply[0];
        if reply[0] == 1 && call.cost > 0 {
            let stored: Vec<(u64, u64)> = stamps_and_costs(&server.entries("k"));
            let held: Vec<(u64, u64)> =
                model.entries.iter().map(|entry| (entry.stamp_ms, entry.cost)).collect();
            assert_eq!(stored, held, "call {number}: {call:?}");
            let expiry_ms = server.expiry("k") as u64;
            assert_eq!(Some(expiry_ms), model.expires_at_ms, "call {number}: {call:?}");
        }
    }
    assert_both_common(admitted);
    assert_ne!(server.info("rl_clocks_ahead"), "0");
    assert_eq!(server.info("rl_panics"), "0");
}

fn stamps_and_costs(entries: &[String]) -> Vec<(u64, u64)> {
    let parse = |entry: &String| {
        let (stamp, member) = entry.split_once(' ')?;
        Some((stamp.parse().ok()?, member.split_once('+')?.1.parse().ok()?))
    };
    entries.iter().map(|entry| parse(entry).expect("a stamp and a member")).collect()
}

#[test]
fn counters_answer_as_the_model_does() {
    let mut walk = Walk::new();
    let server = walk.clock.server();
    let (mut model, mut admitted) = (CounterModel::default(), 0);
    // The model has no expiry: it forgets when the server says that it will.
    let mut expires_at_ms = None;
    for number in 0..CALLS {
        walk.step();
        if expires_at_ms.is_some_and(|expiry_ms| expiry_ms < walk.now_ms as u64) {
            model = CounterModel::default();
        }
        let (words, call) =
            walk.request(("1m 9 10s 4 1h 60", &[(60_000, 9), (10_000, 4), (3_600_000, 60)]));
        let peeked = server.peek(&words);
        let (reply, expected) = (server.swc(&words), model.swc(&call));
        assert_eq!(reply, expected, "call {number}: {call:?}");
        assert_eq!(peeked[0], reply[0], "call {number}: {call:?}");
        admitted += reply[0];
        expires_at_ms = u64::try_from(server.expiry("k")).ok();
    }
    assert_both_common(admitted);
    assert_ne!(server.info("rl_clocks_ahead"), "0");
    assert_eq!(server.info("rl_panics"), "0");
}
