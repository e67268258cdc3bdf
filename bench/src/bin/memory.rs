//! Memory of a key by the requests that it keeps, and what a million users need.
//!
//! `MOST=` is the number of requests up to which it goes, `USERS=` how many stand for a million.

use redis_rl_bench::csv::Table;
use redis_rl_bench::footprint::{ALL, Keeper, bytes, bytes_of_each, encoding, fill};
use redis_rl_bench::machine::origin;
use redis_rl_bench::server::{self, Server, Setup, number, setting};
use redis_rl_bench::workloads::{SKIPLIST, UNBOUNDED};

/// The requests a minute that each of them may make, and does.
const RATES: [u64; 3] = [10, 100, 1000];

fn main() {
    let (most, users) = (number("MOST", 1_000_000), number("USERS", 10_000));
    let origin = origin();
    println!("{origin}");
    let memory = memory_table(&origin, most);
    print(&memory);
    let capacity = capacity_table(&origin, users);
    print(&capacity);
    if setting("MOST").is_none() && setting("USERS").is_none() {
        memory.keep("memory.csv");
        capacity.keep("capacity.csv");
    }
}

fn keepers() -> impl Iterator<Item = &'static Keeper> {
    ALL.into_iter().filter(|keeper| server::has(keeper.name))
}

/// The memory of one key, as it is stored by default, and as a skiplist where that is something else.
fn memory_table(origin: &str, most: u64) -> Table {
    let columns = ["keeper", "requests", "encoding", "bytes", "bytes_per_request"];
    let mut table = Table::new(origin, &columns);
    let sizes = [10, 100, 1_000, 10_000, 100_000, 1_000_000].into_iter();
    let sizes: Vec<u64> = sizes.filter(|size| *size <= most).collect();
    let (by_default, skiplists) = (server(), Setup::plain().option(SKIPLIST).start());
    for keeper in keepers() {
        for &requests in &sizes {
            row(&mut table, &by_default, keeper, requests);
            if keeper.is_log && requests <= 100 {
                row(&mut table, &skiplists, keeper, requests);
            }
        }
    }
    table
}

fn row(table: &mut Table, server: &Server, keeper: &Keeper, requests: u64) {
    let mut wire = server.connect();
    fill(keeper, "user:0000000", requests, &mut wire);
    let bytes = bytes("user:0000000", &mut wire);
    let encoding = encoding("user:0000000", &mut wire);
    let each = format!("{:.1}", bytes as f64 / requests as f64);
    table.row(&[keeper.name, &requests.to_string(), &encoding, &bytes.to_string(), &each]);
    wire.run("UNLINK user:0000000");
}

/// What a million users need who make so many requests a minute.
fn capacity_table(origin: &str, users: u64) -> Table {
    let columns =
        ["keeper", "requests_per_minute", "bytes_per_user", "gigabytes_per_million_users"];
    let mut table = Table::new(origin, &columns);
    let server = server();
    let mut wire = server.connect();
    for keeper in keepers() {
        for rate in RATES {
            let bytes = bytes_of_each(keeper, users, rate, &mut wire);
            let gigabytes = format!("{:.2}", bytes as f64 * 1e6 / 1e9);
            table.row(&[keeper.name, &rate.to_string(), &bytes.to_string(), &gigabytes]);
        }
    }
    table
}

fn server() -> Server {
    Setup::plain().option(UNBOUNDED).start()
}

fn print(table: &Table) {
    println!();
    for cells in &table.rows {
        println!("{}", cells.iter().map(|cell| format!("{cell:<22}")).collect::<String>());
    }
}
