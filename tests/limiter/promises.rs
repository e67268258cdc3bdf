//! What an answer promises of the answers to come.

use crate::model::{Call, Reply};
use std::fmt::Debug;

/// A peek says of the same call what it answers, and what is left before it.
pub fn check_peek(peeked: Reply, reply: Reply, call: &Call) {
    assert_eq!(peeked[0], reply[0], "{call:?}");
    let cost = call.cost as i64;
    if reply[0] == 1 {
        let before = [1, reply[1], reply[2] + cost, 0, peeked[4], reply[5]];
        assert_eq!(peeked, before, "{call:?}");
    } else if !call.force {
        assert_eq!(peeked, reply, "{call:?}");
    }
}

/// Asked again after the wait, the request is admitted; a millisecond sooner, it is not. `admits`
/// says so of what is `stored`.
pub fn check_wait<S: Debug>(
    denied: Reply,
    call: &Call,
    stored: &S,
    admits: impl Fn(&S, &Call) -> bool,
) {
    let wait_ms = denied[3] as u64;
    let after = |wait_ms| {
        let (now_ms, clock_ms) = (call.now_ms + wait_ms, call.clock_ms + wait_ms);
        admits(stored, &Call { force: false, now_ms, clock_ms, ..call.clone() })
    };
    assert!(after(wait_ms), "denied after {wait_ms} ms: {call:?} on {stored:?}");
    assert!(!after(wait_ms - 1), "admitted before {wait_ms} ms: {call:?} on {stored:?}");
}
