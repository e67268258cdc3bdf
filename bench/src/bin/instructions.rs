//! Instructions of the whole server for a call, counted by callgrind, and the gate against the baseline.
//!
//! `ONLY=` takes the rows whose name contains it, `GATE=1` those that are compared with the baseline,
//! `BASELINE=write` writes these anew, and `PROFILES=` is a folder for callgrind's files, one a row.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

use redis_rl_bench::baseline;
use redis_rl_bench::callgrind::instructions;
use redis_rl_bench::contenders::*;
use redis_rl_bench::csv::Table;
use redis_rl_bench::machine::{origin, project_file};
use redis_rl_bench::server::{self, setting};
use redis_rl_bench::workloads::*;

/// The counters are put to zero after the first number of calls, and read after the second.
const LENGTHS: [u64; 2] = [5_000, 25_000];

/// The same of what is only compared with: a script takes long to count.
const SHORT_LENGTHS: [u64; 2] = [1_000, 5_000];

/// What a row should be at most.
enum Target {
    None,
    Instructions(u64),
    Times(f64, &'static Contender, &'static Workload),
}

use Target::{Instructions, Times};

/// One contender at one workload.
struct Row {
    contender: &'static Contender,
    workload: &'static Workload,
    target: Target,
    /// Whether it is compared with the baseline.
    gated: bool,
}

impl Row {
    fn name(&self) -> String {
        name(self.contender, self.workload)
    }
}

fn name(contender: &Contender, workload: &Workload) -> String {
    match contender.name {
        "PING" | "INCR" | "HINCRBY" => contender.name.to_string(),
        other => format!("{other} {}", workload.name.replace(',', "")),
    }
}

const ROWS: &[Row] = &[
    floor(&PING, &COUNTED),
    floor(&INCR, &COUNTED),
    floor(&HINCRBY, &COUNTED),
    floor(&ZADD, &GROWING),
    floor(&ZADD, &LISTPACK),
    ours(&SLIDE, &DENIED, Instructions(9_000)),
    ours(&SLIDE, &DENIED_LISTPACK, Target::None),
    ours(&SLIDE, &DENIED_THREE, Times(1.4, &SLIDE, &DENIED)),
    ours(&SLIDE, &GROWING, Instructions(12_500)),
    ours(&SLIDE, &GROWING_THREE, Times(1.4, &SLIDE, &GROWING)),
    ours(&SLIDE, &COST_500, Target::None),
    ours(&SLIDE, &PRECISION, Target::None),
    ours(&SLIDE, &FIRST, Target::None),
    ours(&SLIDE, &SMALL, Instructions(13_500)),
    ours(&SLIDE, &LISTPACK, Times(1.2, &ZADD, &LISTPACK)),
    ours(&SLIDE, &STEADY, Times(1.6, &SLIDE, &GROWING)),
    ours(&SLIDE, &STEADY_SMALL, Times(1.6, &SLIDE, &SMALL)),
    ours(&SLIDE, &STEADY_LISTPACK, Times(1.6, &SLIDE, &LISTPACK)),
    ours(&SWC, &COUNTED, Instructions(10_000)),
    ours(&SWC, &COUNTED_OUT, Instructions(7_300)),
    ours(&SWC, &COUNTED_THREE, Times(1.4, &SWC, &COUNTED)),
    ours(&PEEK, &ROOM, Instructions(8_000)),
    ours(&PEEK_COUNTER, &COUNTED, Target::None),
    other(&LUA_LOG, &DENIED),
    other(&LUA_LOG, &GROWING),
    other(&LUA_LOG, &LISTPACK),
    other(&LUA_LOG, &STEADY),
    other(&LUA_LOG, &STEADY_LISTPACK),
    other(&LUA_COUNTER, &COUNTED),
    other(&LUA_COUNTER, &COUNTED_OUT),
    other(&CLASSIC, &GROWING),
    other(&CLASSIC, &STEADY),
    other(&MULTI, &GROWING),
    other(&MULTI, &STEADY),
    other(&THROTTLE, &COUNTED),
    other(&THROTTLE, &COUNTED_OUT),
];

const fn floor(contender: &'static Contender, workload: &'static Workload) -> Row {
    ours(contender, workload, Target::None)
}

const fn ours(contender: &'static Contender, workload: &'static Workload, target: Target) -> Row {
    Row { contender, workload, target, gated: true }
}

const fn other(contender: &'static Contender, workload: &'static Workload) -> Row {
    Row { gated: false, ..ours(contender, workload, Target::None) }
}

fn main() -> ExitCode {
    let rows = rows_asked_for();
    let origin = origin();
    println!("{origin}");
    let measured = measure_all(&rows);
    report(&rows, &measured);
    let named: Vec<_> = rows.iter().map(|row| row.name()).zip(measured.clone()).collect();
    let gated = rows.iter().zip(&named).filter(|(row, _)| row.gated);
    let gated: Vec<_> = gated.map(|(_, named)| named.clone()).collect();
    let version = origin.split(',').next().unwrap();
    if setting("ONLY").is_none() && setting("GATE").is_none() {
        write_csv(&origin, &rows, &measured);
    }
    if setting("BASELINE").as_deref() == Some("write") {
        assert_eq!(setting("ONLY"), None, "a baseline has every row");
        baseline::table(version, &gated).write(&baseline_file());
        return ExitCode::SUCCESS;
    }
    gate(version, &gated)
}

/// Compares with the committed baseline, and says what is worse.
fn gate(server: &str, measured: &[(String, u64)]) -> ExitCode {
    let before = Table::read(&baseline_file()).expect("bench/instructions.csv is committed");
    let complaints = baseline::compare(&before, server, measured);
    for complaint in &complaints {
        eprintln!("worse than the baseline: {complaint}");
    }
    if complaints.is_empty() {
        println!("{} rows are no more than a tenth above the baseline", measured.len());
        return ExitCode::SUCCESS;
    }
    ExitCode::FAILURE
}

fn baseline_file() -> PathBuf {
    project_file("bench/instructions.csv")
}

/// The rows that the settings name, with those that their targets are multiples of.
fn rows_asked_for() -> Vec<&'static Row> {
    let only = setting("ONLY").unwrap_or_default();
    let gate = setting("GATE").is_some();
    let asked = |row: &&Row| row.name().contains(&only) && (row.gated || !gate);
    let known = |row: &&Row| server::has(row.contender.name);
    let asked_for: Vec<&Row> = ROWS.iter().filter(asked).filter(known).collect();
    assert!(!asked_for.is_empty(), "no row's name contains {only:?}");
    let bases: Vec<String> = asked_for
        .iter()
        .filter_map(|row| match row.target {
            Times(_, contender, workload) => Some(name(contender, workload)),
            _ => None,
        })
        .collect();
    let wanted = |row: &&Row| asked(row) || bases.contains(&row.name());
    ROWS.iter().filter(wanted).filter(known).collect()
}

/// Measures rows, as many at once as there are cores: instructions do not mind company.
fn measure_all(rows: &[&Row]) -> Vec<u64> {
    let next = Mutex::new(rows.iter().enumerate());
    let results = Mutex::new(vec![0; rows.len()]);
    let work = || {
        loop {
            let Some((place, row)) = next.lock().unwrap().next() else { return };
            let instructions = measure(row);
            eprintln!("{instructions:>10}  {}", row.name());
            results.lock().unwrap()[place] = instructions;
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, |cores| cores.get()) {
            scope.spawn(work);
        }
    });
    results.into_inner().unwrap()
}

fn measure(row: &Row) -> u64 {
    let file = row.name().replace(' ', "-") + ".callgrind";
    let kept = setting("PROFILES").map(|folder| Path::new(&folder).join(file));
    let lengths = if row.gated { LENGTHS } else { SHORT_LENGTHS };
    instructions(row.contender, row.workload, lengths, kept.as_deref())
}

/// The instructions that a row should take at most.
fn most(row: &Row, rows: &[&Row], measured: &[u64]) -> Option<f64> {
    match row.target {
        Target::None => None,
        Instructions(most) => Some(most as f64),
        Times(factor, contender, workload) => {
            let base = name(contender, workload);
            let place = rows.iter().position(|row| row.name() == base).expect("the base is a row");
            Some(factor * measured[place] as f64)
        }
    }
}

fn report(rows: &[&Row], measured: &[u64]) {
    println!("{:>12} {:>10} {:>7}", "instructions", "target", "ratio");
    for (row, instructions) in rows.iter().zip(measured) {
        let goal = most(row, rows, measured).map_or(String::new(), |most| {
            let ratio = *instructions as f64 / most;
            format!("{most:.0} {ratio:>7.2} {}", if ratio <= 1.0 { "met" } else { "MISSED" })
        });
        println!("{instructions:>12} {goal:>25}  {}", row.name());
    }
}

fn write_csv(origin: &str, rows: &[&Row], measured: &[u64]) {
    let mut table = Table::new(origin, &["contender", "workload", "instructions", "target"]);
    for (row, instructions) in rows.iter().zip(measured) {
        let target = most(row, rows, measured).map_or(String::new(), |most| format!("{most:.0}"));
        let (contender, workload) = (row.contender.name, row.workload.name);
        table.row(&[contender, workload, &instructions.to_string(), &target]);
    }
    table.keep("instructions.csv");
}
