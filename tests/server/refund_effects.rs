//! What `RL.REFUND` takes, sends to replicas and announces, when it is refused, and that memory, a
//! replica and a restart find it as they find a native command.

use crate::arguments::{refuses_of, server_with_data};
use crate::counter_effects::{inside, set};
use crate::dataset::{contents, digest, expiries, leaves_everything};
use crate::events::{announcing_server, events, sorted_events};
use crate::harness::{Server, Setup};
use crate::memory::server_out_of_memory;
use crate::replication::{primary, replica_of, wait_for_replicas};

#[test]
fn bad_arguments_change_nothing() {
    let server = server_with_data();
    server.swc("h 60s 5 COST 2 AT 1000000");
    for key in ["k", "h", "text", "missing"] {
        for units in [
            "0",
            "-1",
            "+1",
            "01",
            "1.5",
            "1e3",
            "x",
            "1s",
            "AT",
            "9007199254740992",
            "9223372036854775808",
            "18446744073709551617",
            "99999999999999999999999999999999",
        ] {
            refuses_of(&server, "RL.REFUND", &[(&format!("{key} {units}"), "integer")]);
        }
        for (rest, named) in [
            ("1 BANANA", "BANANA"),
            ("1 2", "2"),
            ("1 COST 1", "COST"),
            ("1 FORCE", "FORCE"),
            ("1 AT", "AT"),
            ("1 AT x", "AT"),
            ("1 AT -1", "AT"),
            ("1 AT 9007199254740991", "AT"),
            ("1 AT 1000000 AT 1000000", "AT"),
            ("1 AT 1000000 1", "1"),
            ("1 60s 5", "60s"),
        ] {
            refuses_of(&server, "RL.REFUND", &[(&format!("{key} {rest}"), named)]);
        }
    }
    refuses_of(&server, "RL.REFUND", &[("k", ""), ("", "")]);
    let mut wire = server.wire();
    for junk in [b"".as_slice(), b"1\0", b"\r\n+OK\r\n", b"\xff", b"%s%n", &[b'9'; 100_000]] {
        for call in
            [[b"RL.REFUND".as_slice(), b"k", junk].as_slice(), &[b"RL.REFUND", b"k", b"1", junk]]
        {
            let answer = leaves_everything(&server, "junk", || wire.ask_args(call));
            assert!(answer.starts_with("-ERR ") && answer.len() < 10_000, "{answer}");
            assert_eq!(wire.ask("PING"), "+PONG\r\n");
        }
    }
    assert!(server.error("RL.REFUND text 1").starts_with("WRONGTYPE"));
    assert_eq!(server.refund("k 1 at 1000000"), 1);
}

#[test]
fn a_missing_key_gives_nothing_back_and_stays_missing() {
    let server = server_with_data();
    leaves_everything(&server, "a refund of nothing", || {
        assert_eq!(server.refund("missing 1"), 0);
        assert_eq!(server.refund("missing 9007199254740991 AT 0"), 0);
    });
}

#[test]
fn it_is_propagated_as_native_writes() {
    let server = Setup::new().with_aof().start();
    server.slide("log 60s 99 COST 2 AT 1000000");
    server.slide("log 60s 99 COST 8 AT 1000001");
    server.slide("log 60s 99 COST 5 AT 1000001");
    server.swc("counters 60s 99 10m 99 COST 4 AT 1200000");
    server.swc("counters 60s 99 10m 99 COST 3 AT 1260000");
    let mut journal = server.journal();

    assert_eq!(server.refund("log 1"), 1);
    let shrink = journal.commands();
    // The new one comes first: otherwise the key could go for a moment, and its expiry with it.
    assert_eq!(shrink, ["MULTI", "ZADD log 1000001 b14+4", "ZREM log b15+5", "EXEC"]);
    assert_eq!(server.refund("log 12"), 12);
    let commands = journal.commands();
    assert!(commands.iter().all(|line| !line.to_uppercase().contains("RL.")), "{commands:?}");
    assert_eq!(server.entries("log"), ["1000000 a2+2"]);
    assert_eq!(server.refund("log 5"), 2);
    let commands = journal.commands();
    assert_eq!(commands.len(), 1, "the last entry and the key go by one write: {commands:?}");

    assert_eq!(server.refund("counters 1 AT 1260000"), 1);
    let [minute, ten] = ["HSET counters 60000:current 2", "HSET counters 600000:current 6"];
    assert_eq!(inside(journal.commands()), set([minute, ten]));
    assert_eq!(server.refund("counters 5 AT 1260000"), 5);
    let [current, previous] = ["HSET counters 60000:current 0", "HSET counters 60000:previous 1"];
    let ten = "HSET counters 600000:current 1";
    assert_eq!(inside(journal.commands()), set([current, previous, ten]));
    assert_eq!(server.refund("missing 1"), 0);
    assert!(journal.commands().is_empty());
}

#[test]
fn replicas_and_a_restart_hold_the_same() {
    let primary = primary();
    let with_module = replica_of(&primary, Setup::new());
    let without_module = replica_of(&primary, Setup::new().without_module());
    for (key, units) in [("none", 0), ("one", 1), ("most", 250), ("all", 9_999)] {
        for i in 0..200 {
            primary.slide(&format!("log:{key} 60s 9999 COST 2 AT {}", 1_000_000 + i / 3));
            primary.swc(&format!("counters:{key} 60s 9999 10m 9999 AT {}", 1_190_000 + 300 * i));
        }
        if units > 0 {
            assert!(primary.refund(&format!("log:{key} {units}")) > 0);
            assert!(primary.refund(&format!("counters:{key} {units} AT 1250000")) > 0);
        }
    }
    assert_eq!(primary.run::<i64>("DBSIZE"), 7, "the whole refund took its log");
    wait_for_replicas(&primary, 2);
    for replica in [&with_module, &without_module] {
        assert_eq!(digest(replica), digest(&primary));
        assert_eq!(expiries(replica), expiries(&primary));
    }
}

#[test]
fn an_aof_holds_it() {
    let mut server = Setup::new().with_aof().start();
    for i in 0..200 {
        server.slide(&format!("log 60s 9999 COST 3 AT {}", 1_000_000 + i / 3));
    }
    server.swc("counters 60s 99 COST 9 AT 1200000");
    assert_eq!(server.refund("log 100"), 100);
    assert_eq!(server.refund("counters 4 AT 1260000"), 4);
    let before = contents(&server);
    server.restart(Setup::new().with_aof().without_module());
    assert_eq!(contents(&server), before);
}

#[test]
fn events_are_those_of_the_native_writes() {
    let server = announcing_server();
    server.slide("log 60s 99 COST 2 AT 1000000");
    server.slide("log 60s 99 COST 3 AT 1000001");
    server.slide("log 60s 99 COST 4 AT 1000002");
    assert_eq!(sorted_events(&server, "RL.REFUND log 1"), ["zadd log", "zrem log"]);
    let taken = sorted_events(&server, "RL.REFUND log 6");
    assert_eq!(taken.len(), 1, "{taken:?}");
    assert!(taken[0] == "zremrangebyrank log" || taken[0] == "zrem log", "{taken:?}");
    let all = events(&server, "RL.REFUND log 99");
    assert_eq!(all.last().unwrap(), "del log", "{all:?}");
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(events(&server, "RL.REFUND log 1").is_empty());

    server.swc("counters 60s 9 COST 3 AT 960000");
    server.swc("counters 60s 9 COST 2 AT 1020000");
    assert_eq!(events(&server, "RL.REFUND counters 1 AT 1020000"), ["hset counters"]);
    assert_eq!(events(&server, "RL.REFUND counters 2 AT 1020000"), ["hset counters"; 2]);
    assert!(events(&server, "RL.REFUND counters 1 AT 9000000").is_empty());
    assert!(events(&server, "RL.REFUND counters x").is_empty());
}

#[test]
fn it_is_answered_when_out_of_memory() {
    let server = server_out_of_memory();
    assert_eq!(server.refund("h 1 AT 1000001"), 1);
    assert_eq!(server.refund("missing 1"), 0);
    assert_eq!(server.refund("k 5"), 1);
    assert_eq!(server.run::<i64>("EXISTS k"), 0);
    assert!(server.error("RL.REFUND text 1").starts_with("WRONGTYPE"));
}

#[test]
fn a_shrink_is_answered_when_out_of_memory_too() {
    let server = Server::start();
    server.slide("k 60s 9 COST 5 AT 1000000");
    server.does("CONFIG SET maxmemory 1");
    assert!(server.error("RL.SLIDE k 60s 9 AT 1000000").starts_with("OOM"));
    assert_eq!(server.refund("k 2"), 2);
    assert_eq!(server.entries("k"), ["1000000 a3+3"]);
}

#[test]
fn a_transaction_and_a_script_may_call_it() {
    let server = Setup::new().with_aof().start();
    server.slide("k 60s 9 COST 9 AT 1000000");
    let mut journal = server.journal();
    server.does("MULTI");
    server.does("RL.SLIDE k 60s 9 AT 1000001");
    server.does("RL.REFUND k 4");
    server.does("RL.SLIDE k 60s 9 COST 3 AT 1000001");
    let replies: (Vec<i64>, i64, Vec<i64>) = server.run("EXEC");
    assert_eq!((replies.0[0], replies.1, &replies.2[..3]), (0, 4, [1, 9, 1].as_slice()));
    let writes = ["ZADD k 1000000 a5+5", "ZREM k a9+9", "ZADD k 1000001 a8+3"];
    assert_eq!(journal.commands(), ["MULTI", writes[0], writes[1], writes[2], "EXEC"]);
    let script = "return redis.call('RL.REFUND', KEYS[1], ARGV[1])";
    assert_eq!(server.args::<i64>(&["EVAL", script, "1", "k", "6"]), 6);
    assert_eq!(server.entries("k"), ["1000000 a2+2"]);
}
