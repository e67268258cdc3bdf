//! `RL.PEEK` may run wherever a read may: on replicas, in read-only scripts, out of memory, for users
//! who may read and nothing else. The commands that write may not.

use crate::client::six_fields;
use crate::dataset::{digest, leaves_everything};
use crate::events::{announcing_server, events};
use crate::harness::{Server, Setup};
use crate::memory::server_out_of_memory;
use crate::replication::{primary, replica_of, wait_for_replicas};
use crate::scripting::eval;
use crate::wire::Wire;

const DENIED_IN_LOG: [i64; 6] = [0, 2, 0, 50_000, 50_000, 60_000];
const DENIED_IN_COUNTERS: [i64; 6] = [0, 2, 0, 50_001, 80_001, 60_000];

/// A log and counters, each full at 2 units.
fn fill(server: &Server) {
    server.slide("rl:log 60s 2 COST 2 AT 960000");
    server.swc("rl:counters 60s 2 COST 2 AT 960000");
    server.does("SET rl:text v");
}

/// As [`fill`] left them.
fn peek_finds_both_full(server: &Server) {
    assert_eq!(server.peek("rl:log 60s 2 AT 970000"), DENIED_IN_LOG);
    assert_eq!(server.peek("rl:counters 60s 2 AT 970000"), DENIED_IN_COUNTERS);
    assert_eq!(server.peek("rl:missing 60s 2 AT 970000"), [1, 2, 2, 0, 0, 60_000]);
}

#[test]
fn a_replica_answers_it_and_refuses_the_rest() {
    let primary = primary();
    let replica = replica_of(&primary, Setup::new());
    fill(&primary);
    wait_for_replicas(&primary, 1);
    peek_finds_both_full(&primary);
    leaves_everything(&replica, "peeks", || peek_finds_both_full(&replica));
    for call in [
        "RL.SWC rl:counters 60s 2 AT 970000",
        "RL.SWC rl:counters 60s 9 AT 970000",
        "RL.SWC rl:counters 60s 9 COST 0",
        "RL.SLIDE rl:log 60s 9 AT 970000",
        "RL.REFUND rl:log 1",
        "RL.REFUND rl:counters 1",
        "RL.REFUND rl:missing 1",
    ] {
        let error = replica.error(call);
        assert!(error.starts_with("READONLY"), "{call}: {error}");
    }
    assert_eq!(digest(&replica), digest(&primary));
}

#[test]
fn a_replica_peeks_at_a_key_that_has_expired() {
    let primary = primary();
    let replica = replica_of(&primary, Setup::new());
    for server in [&primary, &replica] {
        server.does("DEBUG SET-ACTIVE-EXPIRE 0");
    }
    fill(&primary);
    primary.does("PEXPIREAT rl:log 1");
    wait_for_replicas(&primary, 1);
    assert_eq!(replica.peek("rl:log 60s 2 AT 970000"), [1, 2, 2, 0, 0, 60_000]);
}

#[test]
fn a_read_only_script_may_call_it_and_not_the_rest() {
    let server = Server::start();
    if server.lacks("EVAL_RO", "eval_ro") {
        return;
    }
    server.slide("k 60s 2 COST 2 AT 960000");
    let call = |command: &str| format!("return redis.call('{command}', KEYS[1], unpack(ARGV))");
    leaves_everything(&server, "read-only scripts", || {
        let peek = eval(&server, "EVAL_RO", &call("RL.PEEK"), "60s 2 AT 970000");
        assert_eq!(six_fields(peek.unwrap()), DENIED_IN_LOG);
        for (command, arguments) in
            [("RL.SLIDE", "60s 9 COST 0"), ("RL.SWC", "60s 9 COST 0"), ("RL.REFUND", "1")]
        {
            let error = eval(&server, "EVAL_RO", &call(command), arguments).unwrap_err();
            assert!(error.contains("read-only script"), "{command}: {error}");
        }
    });
}

/// A connection of a user with these permissions.
fn user(server: &Server, permissions: &str) -> Wire {
    server.does(&format!("ACL SETUSER u reset on nopass {permissions}"));
    let mut wire = server.wire();
    assert_eq!(wire.ask("AUTH u any"), "+OK\r\n");
    wire
}

#[test]
fn a_user_who_may_read_may_call_it_and_not_the_rest() {
    let server = Server::start();
    if server.lacks("key permissions", "acl|dryrun") {
        return;
    }
    fill(&server);
    let mut reader = user(&server, "%R~rl:* +rl.peek");
    assert!(reader.ask("RL.PEEK rl:log 60s 2 AT 970000").starts_with("*6\r\n:0\r\n"));
    assert!(reader.ask("RL.PEEK rl:counters 60s 2 AT 970000").starts_with("*6\r\n:0\r\n"));
    assert!(reader.ask("RL.PEEK other 60s 2").starts_with("-NOPERM"));
    assert!(reader.ask("RL.SLIDE rl:log 60s 9").starts_with("-NOPERM"));
    // The command is allowed, the key only to be read.
    let mut reader = user(&server, "%R~rl:* +rl.peek +rl.slide +rl.swc +rl.refund");
    for call in ["RL.SLIDE rl:log 60s 9", "RL.SWC rl:counters 60s 9", "RL.REFUND rl:log 1"] {
        let answer = reader.ask(call);
        assert!(answer.starts_with("-NOPERM"), "{call}: {answer}");
    }
    let mut writer = user(&server, "%W~rl:* +rl.peek");
    assert!(writer.ask("RL.PEEK rl:log 60s 2").starts_with("-NOPERM"));
}

#[test]
fn who_may_only_write_may_not_charge_or_refund() {
    let server = Server::start();
    if server.lacks("key permissions", "acl|dryrun") {
        return;
    }
    fill(&server);
    let calls = [
        "RL.SLIDE rl:log 60s 9 AT 970000",
        "RL.SWC rl:counters 60s 9 AT 970000",
        "RL.REFUND rl:log 1",
        "RL.REFUND rl:counters 1 AT 970000",
    ];
    let commands = "+rl.slide +rl.swc +rl.refund";
    let mut writer = user(&server, &format!("%W~rl:* {commands}"));
    for call in calls {
        // Their answers tell what is in the key.
        let answer = leaves_everything(&server, call, || writer.ask(call));
        assert!(answer.starts_with("-NOPERM"), "{call}: {answer}");
    }
    let mut both = user(&server, &format!("%RW~rl:* {commands}"));
    for call in calls {
        let answer = both.ask(call);
        assert!(answer.starts_with('*') || answer == ":1\r\n", "{call}: {answer}");
    }
}

#[test]
fn it_is_answered_when_out_of_memory() {
    let server = server_out_of_memory();
    leaves_everything(&server, "peeks", || {
        for key in ["k", "h"] {
            assert_eq!(server.peek(&format!("{key} 60s 2 AT 1000001"))[..3], [1, 2, 1]);
            assert_eq!(server.peek(&format!("{key} 60s 1 FORCE AT 1000001"))[..3], [0, 1, 0]);
        }
        assert_eq!(server.peek("missing 60s 2")[..3], [1, 2, 2]);
    });
}

#[test]
fn it_announces_nothing() {
    let server = announcing_server();
    fill(&server);
    for call in ["rl:log 60s 2", "rl:log 60s 9", "rl:counters 60s 2 FORCE", "rl:counters 60s 9"] {
        let call = format!("RL.PEEK {call} AT 970000");
        assert!(events(&server, &call).is_empty(), "{call}");
    }
    assert_eq!(events(&server, "RL.PEEK rl:text 60s 5"), Vec::<String>::new());
    assert_eq!(events(&server, "RL.SLIDE rl:log 60s 2 AT 970000"), ["rl.denied rl:log"]);
}

#[test]
fn it_counts_in_the_statistics_as_one_read_at_most() {
    let server = Server::start();
    fill(&server);
    for (key, field) in [
        ("rl:log", "keyspace_hits"),
        ("rl:counters", "keyspace_hits"),
        ("rl:missing", "keyspace_misses"),
    ] {
        let count = |field: &str| server.info(field).parse::<i64>().unwrap();
        let before = (count("keyspace_hits"), count("keyspace_misses"));
        let this = count(field);
        server.peek(&format!("{key} 60s 2 1h 5 AT 970000"));
        let grown = count("keyspace_hits") - before.0 + count("keyspace_misses") - before.1;
        assert!(grown <= 1, "{key}: {grown}");
        assert_eq!(count(field) - this, grown, "{key}");
    }
}
