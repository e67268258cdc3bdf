//! What the server puts before every command: too few replicas, a data set that is being loaded, a
//! pause. Reads pass where the server lets reads pass; what is refused changes nothing.

use std::thread;

use crate::dataset::leaves_everything;
use crate::harness::{Server, Setup, server_is_at_least, skipped, wait_until};
use crate::replication::{primary, replica_of, wait_for_replicas};

const DENIED_IN_LOG: [i64; 3] = [0, 2, 0];

/// Calls that would charge, calls that are denied, calls that take back: each is a write to the server.
const WRITES: [&str; 8] = [
    "RL.SLIDE log 30d 9",
    "RL.SLIDE log 30d 2",
    "RL.SLIDE log 30d 9 COST 0",
    "RL.SLIDE missing 30d 0",
    "RL.SWC counters 30d 9",
    "RL.SWC counters 30d 2",
    "RL.REFUND log 1",
    "RL.REFUND missing 1",
];

/// A log and counters, each full at 2 units, of a window that hardly ends while a test lasts.
pub fn fill(server: &Server) {
    server.slide("log 30d 2 COST 2");
    server.swc("counters 30d 2 COST 2");
}

/// The server refuses every write with an error of this code, denials among them, and changes nothing.
pub fn refuses_writes(server: &Server, code: &str) {
    leaves_everything(server, code, || {
        for call in WRITES {
            let error = server.error(call);
            assert!(error.starts_with(code), "{call}: {error}");
        }
    });
}

pub fn answers_peeks(server: &Server) {
    for key in ["log", "counters"] {
        assert_eq!(server.peek(&format!("{key} 30d 2"))[..3], DENIED_IN_LOG);
    }
    assert_eq!(server.peek("missing 30d 2")[..3], [1, 2, 2]);
}

#[test]
fn with_too_few_replicas_writes_are_refused_and_peeks_answered() {
    let server = primary();
    fill(&server);
    server.does("CONFIG SET min-replicas-to-write 1");
    refuses_writes(&server, "NOREPLICAS");
    answers_peeks(&server);
    let replica = replica_of(&server, Setup::new());
    wait_until("a replica that is good", || server.try_run("RL.SLIDE log 30d 2").is_ok());
    assert_eq!(server.slide("log 30d 3")[..3], [1, 3, 0]);
    wait_for_replicas(&server, 1);
    assert_eq!(replica.peek("log 30d 3")[..3], [0, 3, 0]);
}

#[test]
fn a_replica_refuses_writes_and_answers_peeks() {
    let primary = primary();
    fill(&primary);
    let replica = replica_of(&primary, Setup::new());
    refuses_writes(&replica, "READONLY");
    answers_peeks(&replica);
}

#[test]
fn while_the_data_set_is_loaded_no_limiter_is_asked() {
    if !server_is_at_least(7, 0) {
        return skipped("loading that listens often needs 7.0");
    }
    let server = Server::start();
    fill(&server);
    for number in 0..3_000 {
        server.does(&format!("SET filler:{number} value"));
    }
    server.does("CONFIG SET loading-process-events-interval-bytes 1024");
    // A minute for all keys, unless it is set to nothing meanwhile.
    server.does("CONFIG SET key-load-delay 20000");
    let mut wire = server.wire();
    thread::scope(|scope| {
        let reload = scope.spawn(|| wire.ask("DEBUG RELOAD"));
        wait_until("the loading", || server.info("loading") == "1");
        for call in WRITES.into_iter().chain(["RL.PEEK log 30d 2", "RL.PEEK missing 30d 2"]) {
            let error = server.error(call);
            assert!(error.starts_with("LOADING"), "{call}: {error}");
        }
        let denied: Vec<redis::Value> = server.run("RL.DENIED");
        assert!(denied.is_empty(), "it needs no data set, and nothing was denied");
        server.does("CONFIG SET key-load-delay 0");
        assert_eq!(reload.join().unwrap(), "+OK\r\n");
    });
    answers_peeks(&server);
    assert_eq!(server.slide("log 30d 3")[..3], [1, 3, 0]);
}

#[test]
fn a_pause_of_writes_holds_them_back_and_lets_peeks_pass() {
    let server = Server::start();
    fill(&server);
    for (call, answer) in [
        ("RL.SLIDE log 30d 3", "*6\r\n:1\r\n:3\r\n:0\r\n"),
        ("RL.SLIDE log 30d 3", "*6\r\n:0\r\n:3\r\n:0\r\n"),
        ("RL.SWC counters 30d 3", "*6\r\n:1\r\n:3\r\n:0\r\n"),
        ("RL.REFUND log 1", ":1\r\n"),
    ] {
        let mut wire = server.wire();
        server.does("CLIENT PAUSE 1000000000 WRITE");
        thread::scope(|scope| {
            let paused = scope.spawn(|| wire.ask(call));
            leaves_everything(&server, call, || {
                wait_until("the call to be held back", || {
                    server.run::<String>("CLIENT LIST").contains(" flags=bU ")
                });
                assert_eq!(server.peek("missing 30d 2")[..3], [1, 2, 2]);
                server.peek("log 30d 3");
            });
            server.does("CLIENT UNPAUSE");
            let answered = paused.join().unwrap();
            assert!(answered.starts_with(answer), "{call}: {answered}");
        });
    }
    assert_eq!(server.peek("log 30d 3")[..3], [1, 3, 1]);
}
