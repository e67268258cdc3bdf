//! Limiters broken on purpose: the comparison with the model must catch each.

use crate::memory::{Memory, request};
use crate::model::{Call, Model};
use rl::limiter::{Entry, Log, LogError, decide};

/// Reads of a log, off by one millisecond at the window's edge.
struct OffByOne<'a> {
    log: &'a mut Memory,
    /// Added to the time asked for: -1 counts what has just left, 1 misses what is about to leave.
    shift_ms: i64,
}

impl Log for OffByOne<'_> {
    fn len(&self) -> u64 {
        self.log.len()
    }

    fn expires_at_ms(&self) -> Option<u64> {
        self.log.expires_at_ms()
    }

    fn oldest(&mut self) -> Result<Option<Entry>, LogError> {
        self.log.oldest()
    }

    fn newest(&mut self) -> Result<Option<Entry>, LogError> {
        self.log.newest()
    }

    fn first_from(&mut self, from_ms: u64) -> Result<Option<Entry>, LogError> {
        self.log.first_from(from_ms.saturating_add_signed(self.shift_ms))
    }

    fn last_until(&mut self, until_ms: u64) -> Result<Option<Entry>, LogError> {
        self.log.last_until(until_ms)
    }
}

/// How many requests of a fixed stream the shifted limiter answers as the model does, up to the
/// first that it does not.
fn answers_like_the_model(shift_ms: i64) -> usize {
    let (mut log, mut model) = (Memory::default(), Model::default());
    // Uneven steps over a window of 10 ms: entries leave at, just before and just after a request.
    let advances_ms = [3, 4, 2, 1, 5, 3, 2, 9, 1, 4];
    let mut now_ms = 1_000;
    for (index, advance_ms) in advances_ms.iter().cycle().take(1_000).enumerate() {
        now_ms += advance_ms;
        let call = Call::new(&[(10, 3)], now_ms);
        let expected = model.slide(&call);
        let shifted = decide(&mut OffByOne { log: &mut log, shift_ms }, &request(&call));
        // The true log goes on as the model does, whatever the shifted one said.
        let remaining = shifted.map(|decision| decision.verdict.remaining as i64);
        log.slide(&call);
        if remaining != Ok(expected[2]) {
            return index;
        }
    }
    advances_ms.len() * 100
}

#[test]
fn the_true_limiter_passes() {
    assert_eq!(answers_like_the_model(0), 1_000);
}

#[test]
fn an_edge_one_millisecond_early_is_caught() {
    assert!(answers_like_the_model(-1) < 1_000);
}

#[test]
fn an_edge_one_millisecond_late_is_caught() {
    assert!(answers_like_the_model(1) < 1_000);
}
