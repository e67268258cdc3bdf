//! What a log of a million entries costs the one who comes when they have left: all but one, or all.

use std::time::Instant;

use crate::contenders::{Contender, LUA_LOG, SLIDE};
use crate::server::Setup;
use crate::wire::{Wire, encode_lines};
use crate::workloads::{Run, SKIPLIST, UNBOUNDED, steady_at};

/// How often each is tried.
const TRIALS: u64 = 5;

/// The calls of a trial, of which the slowest counts.
const CALLS: u64 = 100;

/// The slowest call of each trial.
pub struct Backlog {
    /// Whose log it was.
    pub contender: &'static str,
    /// What had left it.
    pub left: &'static str,
    /// From sending to the reply, in microseconds, the smallest first.
    pub worst_us: Vec<f64>,
}

impl Backlog {
    /// The best of the trials: what the machine itself adds is seldom in all of them.
    pub fn smallest_us(&self) -> f64 {
        self.worst_us[0]
    }

    /// The worst of the trials.
    pub fn largest_us(&self) -> f64 {
        *self.worst_us.last().expect("there were trials")
    }
}

/// Lets logs of so many entries leave, and asks for each again.
pub fn measure(entries: u64) -> Vec<Backlog> {
    [&SLIDE, &LUA_LOG].into_iter().flat_map(|contender| measure_one(contender, entries)).collect()
}

fn measure_one(contender: &'static Contender, entries: u64) -> Vec<Backlog> {
    let server = Setup::plain().option(UNBOUNDED).option(SKIPLIST).start();
    let mut wire = server.connect();
    // An entry every so many milliseconds, all of them in the window.
    let workload = steady_at(entries);
    let run = Run::prepare(contender, &workload, 1, &mut wire);
    // The last is in the window for so many steps after it. Times are rounded to steps.
    let [all_but_one, all] = [2 * entries - 2, 2 * entries - 1];
    [("all but the newest", all_but_one), ("all", all)]
        .map(|(left, steps)| {
            let mut worst_us: Vec<f64> = (0..TRIALS)
                .map(|trial| worst(&run, &format!("trial:{steps}:{trial}"), steps, &mut wire))
                .collect();
            worst_us.sort_by(f64::total_cmp);
            Backlog { contender: contender.name, left, worst_us }
        })
        .into()
}

/// The slowest call to a copy of the log, at that time.
fn worst(run: &Run, key: &str, steps: u64, wire: &mut Wire) -> f64 {
    wire.run(&format!("COPY {} {key}", run.first_key()));
    let mut bytes = Vec::new();
    let commands = encode_lines(&mut bytes, &run.call_to(key, steps));
    let mut worst_us = 0.0;
    for _ in 0..CALLS {
        let sent = Instant::now();
        wire.send(&bytes);
        run.check(commands, wire);
        worst_us = f64::max(worst_us, sent.elapsed().as_secs_f64() * 1e6);
    }
    wire.run(&format!("UNLINK {key}"));
    worst_us
}
