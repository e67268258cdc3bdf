//! What `zset-max-listpack-entries` decides: logs of so many entries as a listpack and as a skiplist.

use redis_rl_bench::callgrind::instructions;
use redis_rl_bench::contenders::SLIDE;
use redis_rl_bench::csv::Table;
use redis_rl_bench::footprint;
use redis_rl_bench::machine::origin;
use redis_rl_bench::server::Setup;
use redis_rl_bench::workloads::{Workload, denied_by, steady_at};

/// The entries of logs.
const SIZES: [u64; 7] = [8, 16, 32, 64, 128, 256, 512];

/// Lengths of runs. Nothing grows here, so that they are short.
const LENGTHS: [u64; 2] = [600, 2600];

fn main() {
    let origin = origin();
    println!("{origin}");
    println!("entries encoding  steady  denied  bytes per entry");
    let columns = ["entries", "encoding", "steady", "denied", "bytes_per_entry"];
    let mut table = Table::new(&origin, &columns);
    for entries in SIZES {
        // One more than the log has: an admission adds before it trims.
        for (encoding, most) in [("listpack", entries + 1), ("skiplist", 0)] {
            let option: &'static str = format!("zset-max-listpack-entries {most}").leak();
            let options: &'static [&'static str] = vec![option].leak();
            let count = |workload: Workload| {
                instructions(&SLIDE, &Workload { options, ..workload }, LENGTHS, None)
            };
            let (steady, denied) = (count(steady_at(entries)), count(denied_by(entries)));
            let bytes = bytes_per_entry(entries, option);
            println!("{entries:>7} {encoding} {steady:>7} {denied:>7} {bytes:>8.1}");
            let cells = [entries.to_string(), encoding.into(), steady.to_string()];
            table.row(&[&cells[..], &[denied.to_string(), format!("{bytes:.1}")]].concat());
        }
    }
    table.keep("listpack.csv");
}

fn bytes_per_entry(entries: u64, option: &str) -> f64 {
    let server = Setup::plain().option(option).start();
    let mut wire = server.connect();
    footprint::fill(&footprint::SLIDE, "log", entries, &mut wire);
    footprint::bytes("log", &mut wire) as f64 / entries as f64
}
