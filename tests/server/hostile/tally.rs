//! What a run has seen. It must be everything, or the run was blind to something.

use std::collections::BTreeMap;

use crate::harness::server_is_at_least;

/// Who must have been answered with what, each once in so many calls at least.
const ONCE_IN: u64 = 20_000;
const SORTS: [(&str, &[&str]); 11] = [
    (
        "rl.slide",
        &[
            "admitted",
            "denied",
            "admitted by force",
            "denied by force",
            "wrong words",
            "wrong type",
            "foreign log",
            "full log",
        ],
    ),
    (
        "rl.swc",
        &[
            "admitted",
            "denied",
            "admitted by force",
            "denied by force",
            "wrong words",
            "wrong type",
            "foreign hash",
        ],
    ),
    (
        "rl.peek",
        &[
            "admitted",
            "denied",
            "wrong words",
            "wrong type",
            "foreign log",
            "foreign hash",
            "full log",
        ],
    ),
    (
        "rl.refund",
        &[
            "refunded",
            "refunded nothing",
            "wrong words",
            "wrong type",
            "foreign log",
            "foreign hash",
        ],
    ),
    ("rl.denied", &["listed", "reset", "wrong words"]),
    ("directly", EVERYWHERE),
    ("in a transaction", INSIDE),
    ("from a script", INSIDE),
    ("from a read-only script", &["admitted", "denied", "read-only script"]),
    ("in RESP2", EVERYWHERE),
    ("in RESP3", EVERYWHERE),
];
const EVERYWHERE: &[&str] =
    &["admitted", "denied", "refunded", "listed", "foreign log", "foreign hash"];
const INSIDE: &[&str] = &["admitted", "denied", "refunded", "listed", "foreign log"];

/// How often each sort of answer came to each command, in each way.
#[derive(Default)]
pub struct Tally {
    counts: BTreeMap<(&'static str, &'static str), u64>,
    calls: u64,
    /// Calls whose key may have expired meanwhile, so that less is known.
    uncertain: u64,
}

impl Tally {
    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Counts a call for those who had a part in it.
    pub fn add(&mut self, who: [&'static str; 3], sort: &'static str, is_uncertain: bool) {
        self.calls += 1;
        self.uncertain += u64::from(is_uncertain);
        for who in who {
            *self.counts.entry((who, sort)).or_default() += 1;
        }
    }

    pub fn show(&self) {
        println!("{} calls, {} to keys that may have expired", self.calls, self.uncertain);
        for ((who, sort), count) in &self.counts {
            println!("{who:>24}  {sort:<20} {count:>9}");
        }
    }

    /// Fails unless all that must come came often enough.
    pub fn check(&self) {
        let has_read_only_scripts = server_is_at_least(7, 0);
        for (who, sorts) in SORTS {
            for sort in sorts {
                let count = self.counts.get(&(who, sort)).copied().unwrap_or_default();
                let must_come = has_read_only_scripts || who != "from a read-only script";
                assert!(!must_come || count > self.calls / ONCE_IN, "{who}, {sort}: {count}");
            }
        }
        assert!(self.uncertain < self.calls / 3, "{} keys may have expired", self.uncertain);
    }
}
