//! What `RL.SWC` sends to replicas and the AOF, what it announces, and that transactions, scripts,
//! short memory, restarts and a reload of the module find it as they find a native command.

use std::collections::BTreeSet;

use crate::client::six_fields;
use crate::dataset::{dataset, leaves_everything};
use crate::events::{announcing_server, events, sorted_events};
use crate::harness::{Server, Setup, module_path};
use crate::memory::server_out_of_memory;
use crate::scripting::eval;

const CALL_SWC: &str = "return redis.call('RL.SWC', KEYS[1], unpack(ARGV))";

/// The commands inside one transaction, whose order is not promised.
pub fn inside(commands: Vec<String>) -> BTreeSet<String> {
    let [first, inside @ .., last] = &commands[..] else { panic!("no transaction: {commands:?}") };
    assert_eq!([first, last], ["MULTI", "EXEC"], "{commands:?}");
    let set: BTreeSet<String> = inside.iter().cloned().collect();
    assert_eq!(set.len(), inside.len(), "no command twice: {commands:?}");
    set
}

/// Commands to compare with those of [`inside`].
pub fn set<const N: usize>(commands: [&str; N]) -> BTreeSet<String> {
    commands.map(String::from).into()
}

#[test]
fn an_ordinary_call_is_one_hset() {
    let server = Setup::new().with_aof().start();
    server.swc("k 60s 9 AT 960000");
    let mut journal = server.journal();
    server.swc("k 60s 9 AT 970000");
    assert_eq!(journal.commands(), ["HSET k 60000:current 2"]);
    server.swc("k 60s 9 COST 3 AT 1019999");
    assert_eq!(journal.commands(), ["HSET k 60000:current 5"]);
    server.swc("k 60s 0 COST 9 FORCE AT 970000");
    assert_eq!(journal.commands(), ["HSET k 60000:current 14"]);
    server.swc("k 60s 99 AT 0");
    assert_eq!(journal.commands(), ["HSET k 60000:current 15"]);
    for nothing in ["k 60s 0 AT 970000", "k 60s 99 COST 0 AT 970000", "k 60s 0 AT 1020000"] {
        server.swc(nothing);
        assert!(journal.commands().is_empty(), "{nothing}");
    }
}

#[test]
fn a_window_that_starts_is_one_hset_and_an_expiry() {
    let server = Setup::new().with_aof().start();
    let mut journal = server.journal();
    for (call, hset) in [
        ("COST 2 AT 970000", "HSET k 60000:start 960000 60000:current 2 60000:previous 0"),
        ("COST 3 AT 1030000", "HSET k 60000:start 1020000 60000:current 3 60000:previous 2"),
        ("COST 4 AT 1140000", "HSET k 60000:start 1140000 60000:current 4 60000:previous 0"),
    ] {
        server.swc(&format!("k 60s 9 {call}"));
        let expiry = format!("PEXPIREAT k {}", server.expiry("k"));
        assert_eq!(inside(journal.commands()), set([hset, &expiry]));
    }
}

#[test]
fn each_window_is_written_by_itself() {
    let server = Setup::new().with_aof().start();
    server.swc("k 60s 9 10m 9 AT 1200000");
    let mut journal = server.journal();
    server.swc("k 60s 9 10m 9 COST 2 AT 1210000");
    let [minute, ten] = ["HSET k 60000:current 3", "HSET k 600000:current 3"];
    assert_eq!(inside(journal.commands()), set([minute, ten]));
    server.swc("k 60s 9 10m 9 COST 2 AT 1260000");
    let start = "HSET k 60000:start 1260000 60000:current 2 60000:previous 3";
    let expiry = format!("PEXPIREAT k {}", server.expiry("k"));
    assert_eq!(inside(journal.commands()), set([start, "HSET k 600000:current 5", &expiry]));
    // The minute has passed and is not named.
    server.swc("k 10m 9 COST 2 AT 1390000");
    let gone = "HDEL k 60000:start 60000:current 60000:previous";
    assert_eq!(inside(journal.commands()), set(["HSET k 600000:current 7", gone]));
}

#[test]
fn a_cut_charge_is_sent_as_cut() {
    let server = Setup::new().with_aof().start();
    server.plant_counters("k", &["60000 960000 9223372036854775800 0", "600000 600000 0 0"]);
    server.does("EXPIRE k 1000");
    let mut journal = server.journal();
    server.swc("k 60s 9 COST 100 FORCE AT 970000");
    assert_eq!(journal.commands(), ["HSET k 60000:current 9223372036854775807"]);
    // One has no room left, the other has.
    server.swc("k 60s 9 10m 9 COST 100 FORCE AT 970000");
    assert_eq!(journal.commands(), ["HSET k 600000:current 100"]);
    server.swc("k 60s 9 COST 100 FORCE AT 970000");
    assert!(journal.commands().is_empty());
}

#[test]
fn events_are_those_of_the_native_writes() {
    let server = announcing_server();
    let mut first = sorted_events(&server, "RL.SWC k 60s 5 AT 1200000");
    first.retain(|event| event != "new k");
    assert_eq!(first, ["expire k", "hset k"]);
    assert_eq!(events(&server, "RL.SWC k 60s 5 AT 1210000"), ["hset k"]);
    assert_eq!(sorted_events(&server, "RL.SWC k 60s 5 AT 1260000"), ["expire k", "hset k"]);
    assert_eq!(sorted_events(&server, "RL.SWC k 10m 5 AT 1260000"), ["expire k", "hset k"]);
    assert_eq!(sorted_events(&server, "RL.SWC k 10m 5 AT 1390000"), ["hdel k", "hset k"]);
}

#[test]
fn a_denial_announces_only_that() {
    let server = announcing_server();
    server.swc("k 60s 1 AT 970000");
    for denied in ["k 60s 1 AT 970000", "k 60s 0 COST 0 AT 970000", "missing 60s 0"] {
        let key = denied.split_once(' ').unwrap().0;
        assert_eq!(events(&server, &format!("RL.SWC {denied}")), [format!("rl.denied {key}")]);
    }
    assert_eq!(sorted_events(&server, "RL.SWC k 60s 1 FORCE AT 970000"), ["hset k", "rl.denied k"]);
    for silent in ["k 60s 9 COST 0 AT 970000", "missing 60s 5 COST 0", "k 60s x"] {
        assert!(events(&server, &format!("RL.SWC {silent}")).is_empty(), "{silent}");
    }
}

#[test]
fn a_transaction_answers_call_by_call_and_is_propagated_as_one() {
    let server = Setup::new().with_aof().start();
    server.swc("k 60s 3 AT 960000");
    let mut journal = server.journal();
    server.does("MULTI");
    for call in ["RL.SWC k 60s 3", "RL.SWC k 60s 0", "RL.PEEK k 60s 3", "RL.SWC k 60s 3"] {
        assert_eq!(server.run::<String>(&format!("{call} AT 970000")), "QUEUED");
    }
    let replies: Vec<Vec<i64>> = server.run("EXEC");
    let heads: Vec<&[i64]> = replies.iter().map(|reply| &reply[..4]).collect();
    assert_eq!(heads, [[1, 3, 1, 0], [0, 0, 0, -1], [1, 3, 1, 0], [1, 3, 0, 0]]);
    let writes = ["HSET k 60000:current 2", "HSET k 60000:current 3"];
    assert_eq!(journal.commands(), ["MULTI", writes[0], writes[1], "EXEC"]);
}

#[test]
fn a_script_may_call_it_and_is_propagated_as_its_writes() {
    let server = Setup::new().with_aof().start();
    let run = |arguments: &str| eval(&server, "EVAL", CALL_SWC, arguments);
    assert_eq!(six_fields(run("60s 2 AT 960000").unwrap()), [1, 2, 1, 0, 60_001, 60_000]);
    let mut journal = server.journal();
    assert_eq!(six_fields(run("60s 2 AT 970000").unwrap())[..3], [1, 2, 0]);
    assert_eq!(journal.commands(), ["HSET k 60000:current 2"]);
    assert_eq!(six_fields(run("60s 2 AT 970000").unwrap())[..3], [0, 2, 0]);
    assert!(journal.commands().is_empty());
    if !server.lacks("EVAL_RO", "eval_ro") {
        let error = eval(&server, "EVAL_RO", CALL_SWC, "60s 0").unwrap_err();
        assert!(error.contains("read-only script"), "{error}");
    }
    server.does("SET k v");
    assert!(run("60s 2").unwrap_err().contains("WRONGTYPE"));
}

#[test]
fn out_of_memory_only_what_must_add_is_refused() {
    let server = server_out_of_memory();
    leaves_everything(&server, "what adds nothing", || {
        assert_eq!(server.swc("h 60s 1 AT 1000001")[..3], [0, 1, 0]);
        assert_eq!(server.swc("h 60s 2 COST 0 AT 1000001")[..3], [1, 2, 1]);
        assert_eq!(server.swc("missing 60s 0")[..4], [0, 0, 0, -1]);
        assert_eq!(server.swc("missing 60s 2 COST 0 FORCE")[..3], [1, 2, 2]);
    });
    for call in [
        "h 60s 2 AT 1000001",
        "h 60s 1 FORCE AT 1000001",
        "h 60s 2 AT 9000000",
        "h 1h 2 AT 1000001",
        "missing 60s 2",
        "missing 60s 0 FORCE",
    ] {
        let error = leaves_everything(&server, call, || server.error(&format!("RL.SWC {call}")));
        assert!(error.starts_with("OOM"), "{call}: {error}");
    }
    assert!(server.error("RL.SWC h 60s x").starts_with("ERR "));
    assert!(server.error("RL.SWC text 60s 5").starts_with("WRONGTYPE"));
    server.does("CONFIG SET maxmemory 0");
    assert_eq!(server.swc("h 60s 2 AT 1000001")[..3], [1, 2, 0]);
}

#[test]
fn limits_go_on_over_an_unload_and_a_restart() {
    let mut server = Setup::new().with_aof().start();
    server.swc("k 60s 3 AT 960000");
    server.swc("k 60s 3 10m 9 COST 2 AT 970000");
    let before = dataset(&server);
    let denied = [0, 3, 0, 40_001, 80_001, 60_000];
    leaves_everything(&server, "unloading and loading", || {
        server.does("MODULE UNLOAD rl");
        for command in ["RL.SWC", "RL.PEEK", "RL.REFUND"] {
            assert!(server.error(&format!("{command} k 60s 3")).contains("unknown command"));
        }
        assert_eq!(server.counters("k"), ["60000 960000 3 0", "600000 600000 2 0"]);
        server.does(&format!("MODULE LOAD {}", module_path()));
        assert_eq!(server.swc("k 60s 3 AT 980000"), denied);
    });
    server.restart(Setup::new().with_aof());
    assert!(dataset(&server) == before);
    assert_eq!(server.swc("k 60s 3 AT 980000"), denied);
}

#[test]
fn a_key_may_be_any_bytes() {
    let server = Server::start();
    let all_bytes: Vec<u8> = (0..=255).collect();
    let keys: [&[u8]; 7] = [b"", b"\0", b"\r\n+OK\r\n", b"%s%n", b"\xff\xfe", b"60s", &all_bytes];
    for key in keys {
        let ask = |command: &[u8]| {
            let args: [&[u8]; 6] = [command, key, b"60s", b"1", b"AT", b"960000"];
            six_fields(server.try_args(&args).unwrap())
        };
        assert_eq!(ask(b"RL.PEEK"), [1, 1, 1, 0, 0, 60_000]);
        assert_eq!(ask(b"RL.SWC"), [1, 1, 0, 0, 60_001, 60_000]);
        assert_eq!(ask(b"RL.PEEK"), [0, 1, 0, 60_001, 60_001, 60_000]);
        assert_eq!(server.args::<i64>(&[b"HLEN", key]), 3);
        let refund: [&[u8]; 5] = [b"RL.REFUND", key, b"1", b"AT", b"960000"];
        assert_eq!(server.args::<i64>(&refund), 1);
        assert_eq!(ask(b"RL.SWC")[0], 1);
    }
    assert_eq!(server.run::<usize>("DBSIZE"), keys.len());
    let call = "user:7 60s 10 1h 100 COST 2 AT 1000000";
    for command in ["RL.SWC", "RL.PEEK"] {
        let keys: Vec<String> = server.run(&format!("COMMAND GETKEYS {command} {call}"));
        assert_eq!(keys, ["user:7"], "{command}");
    }
    assert_eq!(server.run::<Vec<String>>("COMMAND GETKEYS RL.REFUND user:7 5"), ["user:7"]);
}
