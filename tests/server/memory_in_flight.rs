//! `maxmemory` that is lowered and raised again under load.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use redis::{Connection, Value};

use crate::client::six_fields;
use crate::clock::START_MS;
use crate::harness::{Server, Setup, wait_until};
use crate::load::{CLIENTS, Gate, Load, connections};

#[test]
fn charges_stop_and_go_on_and_all_else_is_answered() {
    let server = Server::start();
    let load = Load::of(&server).behind(Gate::Charges("OOM"));
    let ((), asked) = load.during(connections(&server), |progress| {
        for _ in 0..5 {
            progress.wait_for_answers(50);
            server.does("CONFIG SET maxmemory 1");
            progress.wait_for_refusals(10);
            // Denials and refunds.
            progress.wait_for_answers(10);
            server.does("CONFIG SET maxmemory 0");
        }
        progress.wait_for_answers(50);
    });
    load.assert_all_go_on(&server, &asked);
}

// --- With evictions --------------------------------------------------------------------------------

const LIMIT: i64 = 1_000_000_000;

/// Limiters of each client, which take far more memory than all else. A server that evicts copies names
/// that are longer than 255 bytes, and does not reckon with that.
const LIMITERS: usize = 300;
const NAME_BYTES: usize = 200;

/// What is taken away from a server that holds them all, which is about a third of them.
const TAKEN_BYTES: i64 = 100_000;

/// One client's limiters, and the units that each has counted.
struct Counted {
    used: BTreeMap<String, i64>,
    forgotten: u64,
}

impl Counted {
    fn of(client: usize) -> Counted {
        let padding = "x".repeat(NAME_BYTES);
        let name = |number| format!("{client}:{number}:{padding}");
        Counted { used: (0..LIMITERS).map(|number| (name(number), 0)).collect(), forgotten: 0 }
    }

    /// Asks for each limiter once. Whatever is evicted, none is anything but what it was, or fresh.
    fn ask(&mut self, connection: &mut Connection) {
        for (number, (key, used)) in self.used.iter_mut().enumerate() {
            let mut call = redis::cmd(if number % 2 == 0 { "RL.SLIDE" } else { "RL.SWC" });
            call.arg(&[key.as_str(), "1d"]).arg(LIMIT).arg("AT").arg(START_MS);
            let reply: Value = call.query(connection).unwrap();
            let now_used = LIMIT - six_fields(reply)[2];
            assert!(now_used == *used + 1 || now_used == 1, "{now_used} after {used}");
            self.forgotten += u64::from(now_used == 1 && *used > 0);
            *used = now_used;
        }
    }
}

/// Who begins afresh was evicted, and who was evicted begins afresh.
#[test]
fn what_is_not_evicted_counts_on() {
    for policy in ["volatile-ttl", "allkeys-lru"] {
        let setup = Setup::new().alone().option(&format!("maxmemory-policy {policy}"));
        // It may take its time: else a server that is slow refuses what it has not yet made room for.
        let server = setup.option("maxmemory-eviction-tenacity 100").start();
        let evicted = || server.info("evicted_keys").parse::<u64>().unwrap();
        let mut counted: [Counted; CLIENTS] = std::array::from_fn(Counted::of);
        let mut clients = connections(&server);
        for (connection, counted) in clients.iter_mut().zip(&mut counted) {
            counted.ask(connection);
        }
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for (connection, counted) in clients.iter_mut().zip(&mut counted) {
                scope.spawn(|| {
                    while !stop.load(Relaxed) {
                        counted.ask(connection);
                    }
                });
            }
            let used_bytes: i64 = server.info("used_memory").parse().unwrap();
            server.does(&format!("CONFIG SET maxmemory {}", used_bytes - TAKEN_BYTES));
            wait_until("evictions", || evicted() > 300);
            server.does("CONFIG SET maxmemory 0");
            stop.store(true, Relaxed);
        });
        // Once more, so that each is asked after the last eviction.
        for (connection, counted) in clients.iter_mut().zip(&mut counted) {
            counted.ask(connection);
        }
        let forgotten: u64 = counted.iter().map(|counted| counted.forgotten).sum();
        println!("{policy}: {} evicted, {forgotten} began afresh", evicted());
        assert_eq!(forgotten, evicted());
    }
}
