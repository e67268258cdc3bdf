//! `maxmemory` and its policies: which forget limits, and what of a limiter that is forgotten is left.

use std::collections::BTreeSet;

use crate::harness::{Server, Setup, wait_until};

/// Limiters of each kind, and keys without an expiry.
const LIMITERS: usize = 500;
const PLAIN: usize = 500;

/// What a server may hold on top of these.
const ROOM_BYTES: i64 = 1_000_000;

/// As many evictions of limiters are looked at.
const FORGOTTEN: usize = 100;

/// A server that is nearly full of limiters, each with its whole limit taken, and of plain keys.
fn full_server(policy: &str) -> Server {
    let server = Setup::new().option(&format!("maxmemory-policy {policy}")).start();
    for key in limiters() {
        assert_eq!(charge(&server, &key, "COST 2")[..3], [1, 2, 0]);
    }
    for number in 0..PLAIN {
        server.does(&format!("SET plain:{number} value"));
    }
    let used_bytes: i64 = server.info("used_memory").parse().unwrap();
    server.does(&format!("CONFIG SET maxmemory {}", used_bytes + ROOM_BYTES));
    server
}

fn limiters() -> impl Iterator<Item = String> {
    (0..LIMITERS).flat_map(|number| [format!("log:{number}"), format!("counters:{number}")])
}

/// Charges a limiter of two units a day, as its name says.
fn charge(server: &Server, key: &str, option: &str) -> [i64; 6] {
    let command = if key.starts_with("log") { "SLIDE" } else { "SWC" };
    server.verdict(format!("RL.{command} {key} 1d 2 AT {} {option}", 1_796_037_190_000_i64).trim())
}

fn keys(server: &Server, pattern: &str) -> BTreeSet<String> {
    server.run(&format!("KEYS {pattern}"))
}

/// While the server is full, looking at its keys may evict more of them.
fn limiters_left(server: &Server) -> BTreeSet<String> {
    &keys(server, "log:*") | &keys(server, "counters:*")
}

/// Adds keys without an expiry until the server refuses them, or `enough`.
fn fill_until(server: &Server, enough: impl Fn() -> bool) {
    let value = "v".repeat(10_000);
    for number in 0..100_000 {
        if enough() {
            return;
        }
        if let Err(error) = server.try_run(&format!("SET filler:{number} {value}")) {
            assert!(error.starts_with("OOM"), "{error}");
            return;
        }
    }
    panic!("the server took everything and forgot nothing");
}

/// Limiters that are left are as they were; forgotten ones are fresh, and nothing of them is left.
fn each_is_whole_or_fresh(server: &Server, left: &BTreeSet<String>) {
    for key in limiters() {
        let fresh = !left.contains(&key);
        let expected = if fresh { [1, 2, 1] } else { [0, 2, 0] };
        assert_eq!(charge(server, &key, "")[..3], expected, "{key}, fresh: {fresh}");
        assert!(server.run::<i64>(&format!("PTTL {key}")) > 0, "{key} expires");
    }
    assert_eq!(server.info("rl_panics"), "0");
}

#[test]
fn noeviction_forgets_nothing() {
    let server = full_server("noeviction");
    fill_until(&server, || false);
    server.does("CONFIG SET maxmemory 1");
    for key in limiters() {
        assert_eq!(charge(&server, &key, "")[..3], [0, 2, 0], "{key}");
    }
    for call in ["RL.SLIDE fresh 1d 2", "RL.SWC fresh 1d 2", "RL.SLIDE log:0 1d 5"] {
        assert!(server.error(call).starts_with("OOM"), "{call}");
    }
    assert_eq!(server.peek("fresh 1d 2")[..3], [1, 2, 2]);
    assert_eq!(server.info("evicted_keys"), "0");
    server.does("CONFIG SET maxmemory 0");
    let left = limiters_left(&server);
    assert_eq!(left.len(), 2 * LIMITERS);
    each_is_whole_or_fresh(&server, &left);
}

/// Every limiter expires, so these take limiters and nothing else, down to the last one.
#[test]
fn volatile_policies_forget_limiters_first() {
    for policy in ["volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"] {
        let server = full_server(policy);
        fill_until(&server, || limiters_left(&server).len() + FORGOTTEN <= 2 * LIMITERS);
        server.does("CONFIG SET maxmemory 0");
        let left = limiters_left(&server);
        println!("{policy}: {} of {} limiters left", left.len(), 2 * LIMITERS);
        assert!(!left.is_empty() && left.len() + FORGOTTEN <= 2 * LIMITERS);
        assert_eq!(keys(&server, "plain:*").len(), PLAIN, "{policy} takes what expires");
        each_is_whole_or_fresh(&server, &left);

        server.does(&format!("CONFIG SET maxmemory {}", server.info("used_memory")));
        fill_until(&server, || false);
        assert!(limiters_left(&server).is_empty(), "{policy} takes all of them before it says OOM");
        assert_eq!(keys(&server, "plain:*").len(), PLAIN);
        server.does("CONFIG SET maxmemory 1");
        assert!(server.error("RL.SLIDE fresh 1d 2").starts_with("OOM"));
    }
}

#[test]
fn allkeys_policies_forget_limiters_too() {
    for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random"] {
        let server = full_server(policy);
        fill_until(&server, || limiters_left(&server).len() + FORGOTTEN <= 2 * LIMITERS);
        server.does("CONFIG SET maxmemory 0");
        let (left, plain) = (limiters_left(&server), keys(&server, "plain:*").len());
        let total = 2 * LIMITERS;
        println!(
            "{policy}: {} of {total} limiters, {plain} of {PLAIN} plain keys left",
            left.len()
        );
        assert!(left.len() + FORGOTTEN <= total);
        each_is_whole_or_fresh(&server, &left);
    }
}

/// Who is soonest free again is forgotten first: short windows before long ones. In a cluster newer
/// servers compare only keys of one slot, so all of these are in one.
#[test]
fn volatile_ttl_forgets_short_windows_first() {
    let setup = Setup::new().option("maxmemory-policy volatile-ttl").option("maxmemory-samples 64");
    let server = setup.start();
    // Keys are large, beside what the server needs for itself from moment to moment.
    let padding = "x".repeat(2_000);
    for number in 0..300 {
        server.slide(&format!("short:{number}:{padding}:{{slot}} 1h 2"));
        server.slide(&format!("long:{number}:{padding}:{{slot}} 30d 2"));
    }
    // Without what is still to be sent to a replica, which the server does not count either.
    let [used_bytes, uncounted_bytes] = ["used_memory", "mem_not_counted_for_evict"]
        .map(|field| server.info(field).parse::<i64>().unwrap());
    server.does(&format!("CONFIG SET maxmemory {}", used_bytes - uncounted_bytes - 300_000));
    wait_until("evictions", || server.run::<i64>("DBSIZE") < 600);
    server.does("CONFIG SET maxmemory 0");
    let short = keys(&server, "short:*").len();
    println!("{short} of 300 with a short window left");
    assert!(short > 0 && short < 300);
    assert_eq!(keys(&server, "long:*").len(), 300);
}
