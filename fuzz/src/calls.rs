//! Calls out of bytes: as many bytes as there are choose among small, close and extreme values.

use crate::model::Call;
use arbitrary::{Result, Unstructured};
use rl::limiter::{MAX_UNITS, MAX_WINDOW_MS};

/// Calls in one run, for the models take long for many.
pub const MAX_CALLS: usize = 100;

/// The last clock that the commands believe.
const MAX_CLOCK_MS: u64 = 1 << 52;

const LENGTHS_MS: [u64; 12] =
    [1, 2, 3, 10, 90, 100, 700, 1_000, 4_000, 60_000, 3_600_000, MAX_WINDOW_MS];
const STARTS_MS: [u64; 5] = [1_796_037_190_903, 0, 1, 1_796_037_120_000, MAX_CLOCK_MS];

/// How a stream of calls tells its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// By the server's clock, which never steps back.
    Forward,
    /// By the server's clock, which may.
    Clock,
    /// By a time of its own.
    Own,
}

/// The limiter that a stream of calls asks.
pub struct Stream {
    /// `(window_ms, limit)` of the calls: one set, or several that take turns.
    sets: Vec<Vec<(u64, u64)>>,
    pub time: Time,
    now_ms: u64,
    clock_ms: u64,
}

impl Stream {
    pub fn new(input: &mut Unstructured) -> Result<Self> {
        let time = *input.choose(&[Time::Forward, Time::Clock, Time::Own])?;
        let start_ms = *input.choose(&STARTS_MS)?;
        let count = input.int_in_range(1..=3)?;
        let sets = (0..count).map(|_| windows(input)).collect::<Result<_>>()?;
        Ok(Self { sets, time, now_ms: start_ms, clock_ms: start_ms })
    }

    /// Whether all calls name the same windows.
    pub fn windows_stay(&self) -> bool {
        self.sets.len() == 1
    }

    /// How far back every call keeps what it finds: the longest window of each names at least this.
    pub fn kept_ms(&self) -> u64 {
        let longest_ms = |set: &Vec<(u64, u64)>| set.iter().map(|window| window.0).max();
        self.sets.iter().filter_map(longest_ms).min().unwrap_or(0)
    }

    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    pub fn clock_ms(&self) -> u64 {
        self.clock_ms
    }

    /// Moves the time, and gives the next call.
    pub fn next(&mut self, input: &mut Unstructured) -> Result<Call> {
        self.pass_time(input)?;
        let windows = input.choose(&self.sets)?.clone();
        let shortest_ms = windows.iter().map(|(window_ms, _)| *window_ms).min().unwrap_or(1);
        let options: u8 = input.arbitrary()?;
        let precision_ms = match options & 2 {
            0 => None,
            _ => Some(input.int_in_range(1..=shortest_ms)?),
        };
        Ok(Call {
            windows,
            cost: if options & 4 == 0 { 1 } else { units(input)? },
            force: options & 1 != 0,
            precision_ms,
            now_ms: self.now_ms,
            clock_ms: self.clock_ms,
        })
    }

    fn pass_time(&mut self, input: &mut Unstructured) -> Result<()> {
        self.clock_ms = step(input, self.clock_ms, self.time != Time::Forward)?.min(MAX_CLOCK_MS);
        self.now_ms = match self.time {
            Time::Own => step(input, self.now_ms, true)?.min(self.clock_ms + MAX_WINDOW_MS),
            _ => self.clock_ms,
        };
        Ok(())
    }
}

/// A time a little or much later than that one, or earlier.
fn step(input: &mut Unstructured, at_ms: u64, back: bool) -> Result<u64> {
    let kind: u8 = input.arbitrary()?;
    let far_ms = match kind % 8 {
        0..4 => u64::from(kind / 8),
        4 | 5 => input.int_in_range(0..=1_000)?,
        6 => input.int_in_range(0..=100_000)?,
        _ => input.int_in_range(0..=3 * MAX_WINDOW_MS)?,
    };
    // Of the small steps one kind goes back, of the others every second.
    let goes_back = back && matches!(kind % 16, 3 | 12..16);
    Ok(if goes_back { at_ms.saturating_sub(far_ms) } else { at_ms + far_ms })
}

/// One to eight windows of different lengths, each with its limit.
pub fn windows(input: &mut Unstructured) -> Result<Vec<(u64, u64)>> {
    let count = input.int_in_range(1..=8)?;
    let mut windows: Vec<(u64, u64)> = Vec::new();
    for _ in 0..count {
        let window_ms = match input.ratio(1, 8)? {
            true => input.int_in_range(1..=MAX_WINDOW_MS)?,
            false => *input.choose(&LENGTHS_MS)?,
        };
        let limit = units(input)?;
        if windows.iter().all(|(other_ms, _)| *other_ms != window_ms) {
            windows.push((window_ms, limit));
        }
    }
    Ok(windows)
}

/// A limit or a cost: mostly small.
pub fn units(input: &mut Unstructured) -> Result<u64> {
    let small: u8 = input.arbitrary()?;
    Ok(match small {
        ..=250 => u64::from(small % 24),
        251 => MAX_UNITS,
        252 => MAX_UNITS - 1,
        _ => input.int_in_range(0..=MAX_UNITS)?,
    })
}
