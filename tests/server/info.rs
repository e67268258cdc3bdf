//! `INFO rl`: every field moves by exactly what happened, and no other moves with it.

use std::collections::BTreeMap;

use crate::client::Client;
use crate::harness::{Server, Setup, module_path};

const FIELDS: [&str; 20] = [
    "slide_admitted",
    "slide_denied",
    "slide_forced",
    "slide_errors",
    "swc_admitted",
    "swc_denied",
    "swc_forced",
    "swc_errors",
    "peek_admitted",
    "peek_denied",
    "peek_errors",
    "refund_done",
    "refund_empty",
    "refund_errors",
    "units_refunded",
    "entries_trimmed",
    "logs_dropped",
    "logs_capped",
    "clocks_ahead",
    "panics",
];

/// The fields and their values, without the module's name before them.
fn counts(client: &Client) -> Vec<(String, i64)> {
    let info: String = client.run("INFO rl");
    let lines = info.lines().filter_map(|line| line.strip_prefix("rl_")?.split_once(':'));
    lines.map(|(name, value)| (name.to_string(), value.parse().unwrap())).collect()
}

/// Fields by name, each with a number.
type Moves<'a> = &'a [(&'a str, i64)];

/// A call moves these fields by so much, and no other.
fn moves(client: &Client, call: &str, expected: Moves) {
    let before: BTreeMap<String, i64> = counts(client).into_iter().collect();
    let answer = client.try_run(call);
    let after = counts(client).into_iter().map(|(name, value)| (value - before[&name], name));
    let moved: BTreeMap<String, i64> =
        after.filter(|(by, _)| *by != 0).map(|(by, name)| (name, by)).collect();
    let expected = expected.iter().map(|(name, by)| (name.to_string(), *by)).collect();
    assert_eq!(moved, expected, "{call}, answered {answer:?}");
}

/// A server with a log and counters that hold 2 units each, and keys that no command takes.
fn server_with_keys() -> Server {
    let server = Server::start();
    server.slide("log 60s 2 COST 2 AT 1000000");
    server.swc("counters 60s 2 COST 2 AT 1000000");
    server.does("SET text v");
    server.does("ZADD set 1 m");
    server.does("HSET hash f v");
    server
}

#[test]
fn every_field_is_there_from_the_start() {
    let zeros: Vec<(String, i64)> = FIELDS.iter().map(|name| (name.to_string(), 0)).collect();
    assert_eq!(counts(&Server::start()), zeros);
}

#[test]
fn verdicts_count_for_their_command() {
    let server = server_with_keys();
    let at = "AT 1000000";
    for (call, expected) in [
        (format!("RL.SLIDE log 60s 3 {at}"), &[("slide_admitted", 1)][..]),
        (format!("RL.SLIDE log 60s 3 {at}"), &[("slide_denied", 1)]),
        (format!("RL.SLIDE log 60s 0 COST 0 {at}"), &[("slide_denied", 1)]),
        (format!("RL.SLIDE new 60s 5 COST 0 {at}"), &[("slide_admitted", 1)]),
        (format!("RL.SLIDE log 60s 9 FORCE {at}"), &[("slide_admitted", 1), ("slide_forced", 1)]),
        (format!("RL.SLIDE log 60s 1 FORCE {at}"), &[("slide_denied", 1), ("slide_forced", 1)]),
        (format!("RL.SWC counters 60s 3 {at}"), &[("swc_admitted", 1)]),
        (format!("RL.SWC counters 60s 3 {at}"), &[("swc_denied", 1)]),
        (format!("RL.SWC counters 60s 9 FORCE {at}"), &[("swc_admitted", 1), ("swc_forced", 1)]),
        (format!("RL.SWC counters 60s 1 FORCE {at}"), &[("swc_denied", 1), ("swc_forced", 1)]),
        (format!("RL.PEEK log 60s 9 {at}"), &[("peek_admitted", 1)]),
        (format!("RL.PEEK log 60s 1 FORCE {at}"), &[("peek_denied", 1)]),
        (format!("RL.PEEK counters 60s 9 FORCE {at}"), &[("peek_admitted", 1)]),
        (format!("RL.PEEK counters 60s 1 {at}"), &[("peek_denied", 1)]),
        (format!("RL.PEEK missing 60s 1 {at}"), &[("peek_admitted", 1)]),
    ] {
        moves(&server, &call, expected);
    }
}

#[test]
fn refunds_count_with_their_units() {
    let server = server_with_keys();
    for (call, expected) in [
        ("RL.REFUND log 1", &[("refund_done", 1), ("units_refunded", 1)][..]),
        ("RL.REFUND log 9007199254740991", &[("refund_done", 1), ("units_refunded", 1)]),
        ("RL.REFUND log 1", &[("refund_empty", 1)]),
        ("RL.REFUND counters 5 AT 1000000", &[("refund_done", 1), ("units_refunded", 2)]),
        ("RL.REFUND counters 5 AT 1000000", &[("refund_empty", 1)]),
        ("RL.REFUND missing 5", &[("refund_empty", 1)]),
    ] {
        moves(&server, call, expected);
    }
}

#[test]
fn errors_count_for_their_command() {
    let server = server_with_keys();
    for (command, field) in
        [("SLIDE", "slide_errors"), ("SWC", "swc_errors"), ("PEEK", "peek_errors")]
    {
        for rest in ["new 60 5", "new 60s 5 NX", "text 60s 5", "set 60s 5", "hash 60s 5"] {
            moves(&server, &format!("RL.{command} {rest}"), &[(field, 1)]);
        }
    }
    moves(&server, "RL.SLIDE counters 60s 5", &[("slide_errors", 1)]);
    moves(&server, "RL.SWC log 60s 5", &[("swc_errors", 1)]);
    for rest in ["log 0", "log 1 COST 1", "text 1", "set 1", "hash 1"] {
        moves(&server, &format!("RL.REFUND {rest}"), &[("refund_errors", 1)]);
    }
}

#[test]
fn too_few_arguments_count_for_nothing() {
    let server = server_with_keys();
    for call in ["RL.SLIDE k 60s", "RL.SWC k", "RL.PEEK", "RL.REFUND k"] {
        moves(&server, call, &[]);
    }
}

#[test]
fn a_call_that_finds_no_memory_is_an_error_and_a_denial_is_a_denial() {
    let server = server_with_keys();
    server.does("CONFIG SET maxmemory 1");
    for (call, field) in [
        ("RL.SLIDE log 60s 3 AT 1000000", "slide_errors"),
        ("RL.SLIDE log 60s 2 AT 1000000", "slide_denied"),
        ("RL.SLIDE log 60s 3 COST 0 AT 1000000", "slide_admitted"),
        ("RL.SWC counters 60s 3 AT 1000000", "swc_errors"),
        ("RL.SWC counters 60s 2 AT 1000000", "swc_denied"),
    ] {
        moves(&server, call, &[(field, 1)]);
    }
}

#[test]
fn entries_that_are_trimmed_count_one_by_one() {
    let server = Server::start();
    server.plant("k", &["1000 a1+1", "2000 a3+2", "3000 a4+1", "990000 a5+1"]);
    server.does("PEXPIRE k 61000");
    let admitted = ("slide_admitted", 1);
    moves(&server, "RL.SLIDE k 60s 9 AT 1000000", &[admitted, ("entries_trimmed", 3)]);
    assert_eq!(server.entries("k"), ["990000 a5+1", "1000000 a6+1"]);
    moves(&server, "RL.SLIDE k 60s 9 AT 1000001", &[admitted]);
    // The member that a merge replaces has not left.
    moves(&server, "RL.SLIDE k 60s 9 PRECISION 1ms AT 1000001", &[admitted]);
}

#[test]
fn a_backlog_is_trimmed_by_128_a_call() {
    let server = Server::start();
    let stale: Vec<String> = (100..400).map(|i| format!("{} c{i}+1", 1_000 + i)).collect();
    server.plant("k", &stale);
    server.plant("k", &["990000 c400+1"]);
    server.does("PEXPIRE k 61000");
    let admitted = ("slide_admitted", 1);
    for _ in 0..2 {
        moves(&server, "RL.SLIDE k 60s 9 AT 1000000", &[admitted, ("entries_trimmed", 128)]);
    }
    moves(&server, "RL.SLIDE k 60s 9 AT 1000000", &[admitted, ("entries_trimmed", 44)]);
}

#[test]
fn a_log_that_is_dropped_counts_once_and_its_entries_do_not() {
    let server = Server::start();
    let stale: Vec<String> = (100..400).map(|i| format!("{} c{i}+1", 1_000 + i)).collect();
    server.plant("k", &stale);
    server.does("PEXPIRE k 61000");
    moves(&server, "RL.SLIDE k 60s 9 AT 1000000", &[("slide_admitted", 1), ("logs_dropped", 1)]);
    assert_eq!(server.entries("k"), ["1000000 a1+1"]);
}

#[test]
fn a_clock_far_ahead_counts_each_time_it_is_met() {
    let server = Server::start();
    let ahead_ms = server.now() + 3_600_000;
    server.plant("log", &[format!("{ahead_ms} a1+1")]);
    server.plant_counters("counters", &[format!("60000 {} 1 0", ahead_ms - ahead_ms % 60_000)]);
    let ahead = ("clocks_ahead", 1);
    moves(&server, "RL.SLIDE log 60s 0", &[("slide_denied", 1), ahead]);
    moves(&server, "RL.SLIDE log 60s 9", &[("slide_admitted", 1), ahead, ("logs_dropped", 1)]);
    moves(&server, "RL.SLIDE log 60s 9", &[("slide_admitted", 1)]);
    moves(&server, "RL.SWC counters 60s 0", &[("swc_denied", 1), ahead]);
    moves(&server, "RL.SWC counters 60s 9", &[("swc_admitted", 1), ahead]);
    moves(&server, "RL.SWC counters 60s 9", &[("swc_admitted", 1)]);
}

#[test]
fn charges_to_a_log_at_its_bound_count_as_capped() {
    let server = Setup::new().module_arguments("max-log-entries 2").start();
    let admitted = ("slide_admitted", 1);
    let capped = ("logs_capped", 1);
    moves(&server, "RL.SLIDE k 60s 5 AT 1000000", &[admitted]);
    moves(&server, "RL.SLIDE k 60s 5 AT 1000001", &[admitted]);
    moves(&server, "RL.SLIDE k 60s 5 AT 1000002", &[admitted, capped]);
    moves(&server, "RL.SLIDE k 60s 3 AT 1000003", &[("slide_denied", 1)]);
    moves(&server, "RL.PEEK k 60s 9 AT 1000003", &[("peek_admitted", 1)]);
    moves(
        &server,
        "RL.SLIDE k 60s 3 FORCE AT 1000003",
        &[("slide_denied", 1), ("slide_forced", 1), capped],
    );
}

#[test]
fn scripts_and_transactions_count_as_calls_do() {
    let server = Server::start();
    let script = b"for i = 1, 3 do redis.call('RL.SLIDE', KEYS[1], '60s', 2) end";
    server.args::<redis::Value>(&[b"EVAL".as_slice(), script, b"1", b"k"]);
    let mut wire = server.wire();
    for line in ["MULTI", "RL.SLIDE k 60s 3", "RL.SLIDE k 60s 3", "EXEC"] {
        wire.ask(line);
    }
    let found: BTreeMap<String, i64> = counts(&server).into_iter().collect();
    assert_eq!((found["slide_admitted"], found["slide_denied"]), (3, 2));
}

#[test]
fn info_everything_shows_them() {
    let server = Server::start();
    server.slide("k 60s 5");
    let everything: String = server.run("INFO everything");
    assert!(everything.contains("# rl\r\nrl_slide_admitted:1\r\nrl_slide_denied:0\r\n"));
    assert_eq!(server.info("rl_slide_admitted"), "1");
}

#[test]
fn resetting_the_servers_statistics_leaves_them() {
    let server = Server::start();
    server.slide("k 60s 5");
    let before = counts(&server);
    assert!(server.commands_run().contains(&"rl.slide".to_string()));
    server.does("CONFIG RESETSTAT");
    assert!(!server.commands_run().contains(&"rl.slide".to_string()));
    assert_eq!(counts(&server), before);
    assert_eq!(before[0], ("slide_admitted".to_string(), 1));
}

#[test]
fn they_count_from_the_load_on() {
    let server = Server::start();
    server.slide("k 60s 5");
    assert_ne!(counts(&server)[0].1, 0);
    server.does("MODULE UNLOAD rl");
    server.does(&format!("MODULE LOAD {}", module_path()));
    assert_eq!(counts(&server).len(), FIELDS.len());
    assert!(counts(&server).iter().all(|(_, count)| *count == 0));
}
