//! Time: the contenders side by side, in turns, each on a server of its own, all on one core.
//!
//! `ROUNDS=` and `CALLS=` say how often and how much, `ONLY=` takes the scenarios whose name contains it.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use redis_rl_bench::backlog::{self, Backlog};
use redis_rl_bench::csv::Table;
use redis_rl_bench::goals::{self, Timing};
use redis_rl_bench::machine::{LOAD_CORE, SERVER_CORE, cores, origin};
use redis_rl_bench::scenarios::{self, Pair, Scenario};
use redis_rl_bench::server::{self, Server, Setup, free_port, info_field, number, setting};
use redis_rl_bench::timing::{Sample, median, round};
use redis_rl_bench::wire::Wire;
use redis_rl_bench::workloads::Run;

/// The entries of the log that leaves.
const BACKLOG: u64 = 1_000_000;

/// How much is measured.
#[derive(Clone, Copy)]
struct Amount {
    rounds: u64,
    calls: u64,
}

impl Amount {
    fn from_settings() -> Amount {
        Amount { rounds: number("ROUNDS", 15), calls: number("CALLS", 8_000) }
    }

    /// The calls of a round. They take less time in a pipeline, so that there are more.
    fn of_round(self, scenario: &Scenario, pipeline: u64) -> u64 {
        let calls = self.calls * if pipeline > 1 { 3 } else { 1 };
        (calls / scenario.calls_to_one).max(1)
    }

    /// The calls that a contender is asked in all, the first of which only warm it up.
    fn in_all(self, scenario: &Scenario) -> u64 {
        let calls = |pipeline: &u64| (self.rounds + 1) * self.of_round(scenario, *pipeline);
        scenario.pipelines.iter().map(calls).sum()
    }
}

fn main() {
    let amount = Amount::from_settings();
    let only = setting("ONLY");
    pin_the_load();
    let origin = origin();
    println!("{origin}; the median of {} rounds", amount.rounds);
    let chosen = scenarios::all().into_iter();
    let chosen = chosen.filter(|it| only.as_deref().is_none_or(|only| it.name.contains(only)));
    let timings: Vec<Timing> =
        chosen.flat_map(|scenario| time_scenario(&scenario, amount)).collect();
    let backlogs = backlog::measure(number("BACKLOG", BACKLOG));
    report_backlogs(&backlogs);
    let verdicts = goals::judge(&timings, &backlogs);
    for verdict in &verdicts {
        println!("goal: {}: {}: {}", verdict.goal, verdict.measured, verdict.word());
    }
    // Figures of a short run, or of a part, are not kept.
    if ["ONLY", "CALLS", "ROUNDS", "BACKLOG"].iter().all(|name| setting(name).is_none()) {
        timing_table(&origin, &timings).keep("time.csv");
        backlog_table(&origin, &backlogs).keep("backlog.csv");
        goals::table(&origin, &verdicts).keep("goals.csv");
    }
}

/// Times the contenders of a scenario in turns, so that a slow moment of the machine hits all of them.
fn time_scenario(scenario: &Scenario, amount: Amount) -> Vec<Timing> {
    let pairs = scenario.pairs.iter().filter(|pair| server::has(pair.0.name));
    let calls = amount.in_all(scenario);
    let mut lanes: Vec<Lane> = pairs.map(|pair| Lane::prepare(scenario, pair, calls)).collect();
    let mut timings = Vec::new();
    for pipeline in scenario.pipelines {
        let calls = amount.of_round(scenario, *pipeline);
        let mut samples = vec![Vec::new(); lanes.len()];
        for turn in 0..=amount.rounds {
            for (lane, samples) in lanes.iter_mut().zip(&mut samples) {
                let sample = lane.round(calls, *pipeline);
                if turn > 0 {
                    samples.push(sample);
                }
            }
        }
        println!("\n{}, {pipeline} at a time", scenario.name);
        println!(
            "{:>10} {:>22} {:>8} {:>8} {:>8} {:>8}",
            "calls/s", "CPU us", "in call", "p50", "p99", "p99.9"
        );
        for (lane, samples) in lanes.iter().zip(&samples) {
            let timing = lane.timing(scenario, *pipeline, samples);
            print_timing(&timing);
            timings.push(timing);
        }
    }
    timings
}

/// A contender at its workload, on a server of its own.
struct Lane<'a> {
    pair: &'a Pair,
    run: Run<'a>,
    wire: Wire,
    next: u64,
    // They end with it.
    _servers: Vec<Server>,
}

impl Lane<'_> {
    fn prepare<'a>(scenario: &Scenario, pair: &'a Pair, calls: u64) -> Lane<'a> {
        let port = free_port();
        let mut setup =
            pinned(SERVER_CORE).option(&format!("port {port}")).option("bind 127.0.0.1");
        for line in scenario.options.iter().chain(pair.1.options) {
            setup = setup.option(line);
        }
        let server = setup.start();
        let mut wire = server.connect();
        let run = Run::prepare(pair.0, &pair.1, calls, &mut wire);
        let mut servers = vec![server];
        if scenario.replica {
            servers.push(start_replica(port));
        }
        Lane { pair, run, wire, next: 0, _servers: servers }
    }

    fn round(&mut self, calls: u64, pipeline: u64) -> Sample {
        let first = self.next;
        self.next += calls;
        round(&self.run, first, calls, pipeline, &mut self.wire)
    }

    fn timing(&self, scenario: &Scenario, pipeline: u64, samples: &[Sample]) -> Timing {
        let cpu = samples.iter().map(|sample| sample.cpu_us);
        let range = (cpu.clone().fold(f64::MAX, f64::min), cpu.fold(0.0, f64::max));
        let (contender, workload) = (self.pair.0.name, self.pair.1.name);
        let (scenario, median) = (scenario.name, median(samples));
        Timing { scenario, contender, workload, pipeline, median, cpu_us_range: range }
    }
}

/// A replica of the server at that port, which has caught up.
fn start_replica(port: u16) -> Server {
    let replica = pinned(LOAD_CORE).option(&format!("replicaof 127.0.0.1 {port}")).start();
    let mut wire = replica.connect();
    loop {
        let info = wire.run("INFO replication");
        if info_field(info.text(), "master_link_status") == Some("up") {
            return replica;
        }
        sleep(Duration::from_millis(10));
    }
}

/// A server that stays on a core, where there is more than one.
fn pinned(core: usize) -> Setup {
    if cores() > 1 { Setup::plain().on_core(core) } else { Setup::plain() }
}

/// Keeps this process on its core, out of the way of the servers.
fn pin_the_load() {
    if cores() < 2 {
        println!("there is one core: the server shares it with the load");
        return;
    }
    let status = Command::new("taskset")
        .args(["--cpu-list", "--pid", &LOAD_CORE.to_string(), &std::process::id().to_string()])
        .stdout(Stdio::null())
        .status();
    assert!(status.expect("taskset runs").success(), "the load cannot be kept on a core");
}

fn print_timing(timing: &Timing) {
    let Sample { calls_per_second, cpu_us, in_call_us, p50_us, p99_us, p999_us } = timing.median;
    let (least, most) = timing.cpu_us_range;
    println!(
        "{calls_per_second:>10.0} {cpu_us:>8.2} ({least:.2}-{most:.2}) {in_call_us:>8.2} {p50_us:>8.1} \
         {p99_us:>8.1} {p999_us:>8.1}  {} {}",
        timing.contender, timing.workload
    );
}

fn timing_table(origin: &str, timings: &[Timing]) -> Table {
    let columns = [
        "scenario",
        "contender",
        "workload",
        "pipeline",
        "calls_per_second",
        "cpu_us",
        "cpu_us_least",
        "cpu_us_most",
        "in_call_us",
        "p50_us",
        "p99_us",
        "p999_us",
    ];
    let mut table = Table::new(origin, &columns);
    for timing in timings {
        let Sample { calls_per_second, cpu_us, in_call_us, p50_us, p99_us, p999_us } =
            timing.median;
        let (least, most) = timing.cpu_us_range;
        let figures = [cpu_us, least, most, in_call_us, p50_us, p99_us, p999_us];
        let mut cells: Vec<String> =
            [timing.scenario, timing.contender, timing.workload].map(String::from).into();
        cells.push(timing.pipeline.to_string());
        cells.push(format!("{calls_per_second:.0}"));
        cells.extend(figures.map(|figure| format!("{figure:.3}")));
        table.row(&cells);
    }
    table
}

fn report_backlogs(backlogs: &[Backlog]) {
    println!("\nthe slowest call on a backlog: the smallest of the trials and the largest, in us");
    for backlog in backlogs {
        let (least, most) = (backlog.smallest_us(), backlog.largest_us());
        println!(
            "{least:>10.0} {most:>10.0}  {} when {} had left",
            backlog.contender, backlog.left
        );
    }
}

fn backlog_table(origin: &str, backlogs: &[Backlog]) -> Table {
    let mut table = Table::new(origin, &["contender", "left", "least_us", "most_us"]);
    for backlog in backlogs {
        let least = format!("{:.0}", backlog.smallest_us());
        let most = format!("{:.0}", backlog.largest_us());
        table.row(&[backlog.contender, backlog.left, &least, &most]);
    }
    table
}
