//! What a log of a million entries costs the one who comes when they have left: all but one, or all.

use crate::contenders::{Contender, LUA_LOG, SLIDE};
use crate::machine::{LOAD_CORE, SERVER_CORE, cores};
use crate::server::Setup;
use crate::wire::{Reply, Wire, encode_lines};
use crate::workloads::{Run, SKIPLIST, UNBOUNDED, steady_at};

/// How often each is tried.
const TRIALS: u64 = 5;

/// The calls of a trial, of which the slowest counts.
const CALLS: u64 = 100;

/// The commands of a trial that the server remembers: more than the scripts call.
const LOGGED: u64 = 20 * CALLS;

/// The slowest call of each trial.
pub struct Backlog {
    /// Whose log it was.
    pub contender: &'static str,
    /// What had left it.
    pub left: &'static str,
    /// How long the server answered nobody else, in microseconds, the smallest first.
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
    let mut setup = Setup::plain().option(UNBOUNDED).option(SKIPLIST);
    // Every command is logged, those of a script too, with the time that it took.
    setup = setup.option("slowlog-log-slower-than 0").option(&format!("slowlog-max-len {LOGGED}"));
    if cores() > 1 {
        // What is freed in the background is not in the way there.
        setup = setup.option(&format!("server_cpulist {SERVER_CORE}"));
        setup = setup.option(&format!("bio_cpulist {LOAD_CORE}"));
    }
    let server = setup.start();
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
    wire.run("SLOWLOG RESET");
    for _ in 0..CALLS {
        wire.send(&bytes);
        run.check(commands, wire);
    }
    let worst_us = slowest_us(&wire.run(&format!("SLOWLOG GET {LOGGED}")));
    wire.run(&format!("UNLINK {key}"));
    worst_us
}

/// The slowest of the commands in a log, where the third field is the time that it took.
fn slowest_us(slowlog: &Reply) -> f64 {
    let Reply::Array(commands) = slowlog else { panic!("no slowlog: {slowlog:?}") };
    let logged = commands.len() as u64;
    assert!((CALLS..LOGGED).contains(&logged), "{logged} are all of them, or one is missing");
    let took_us = commands.iter().map(|command| match command {
        Reply::Array(fields) => fields[2].integer() as f64,
        other => panic!("no command: {other:?}"),
    });
    took_us.fold(0.0, f64::max)
}
