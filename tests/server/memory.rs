//! Out of memory: what must add answers `OOM` and writes nothing; what adds nothing is answered.

use crate::dataset::leaves_everything;
use crate::harness::Server;

/// A server that holds a log `k`, counters `h`, a text, and has no memory left.
pub fn server_out_of_memory() -> Server {
    let server = Server::start();
    server.slide("k 60s 2 AT 1000000");
    server.swc("h 60s 2 AT 1000000");
    server.does("SET text v");
    server.does("CONFIG SET maxmemory 1");
    assert!(server.error("SET other v").starts_with("OOM"), "the server is out of memory");
    server
}

#[test]
fn a_denial_is_answered_as_always() {
    let server = server_out_of_memory();
    leaves_everything(&server, "a denial", || {
        assert_eq!(server.slide("k 60s 1 AT 1000001"), [0, 1, 0, 59_999, 59_999, 60_000]);
        assert_eq!(server.slide("k 60s 2 COST 3 AT 1000001"), [0, 2, 1, -1, 59_999, 60_000]);
        assert_eq!(server.slide("missing 60s 0"), [0, 0, 0, -1, 0, 60_000]);
        assert_eq!(
            server.slide("k 60s 1 PRECISION 1s AT 1000001"),
            [0, 1, 0, 59_999, 59_999, 60_000]
        );
    });
}

#[test]
fn cost_0_is_answered_as_always() {
    let server = server_out_of_memory();
    leaves_everything(&server, "COST 0", || {
        assert_eq!(server.slide("k 60s 2 COST 0 AT 1000001"), [1, 2, 1, 0, 59_999, 60_000]);
        assert_eq!(server.slide("k 60s 2 COST 0 FORCE AT 1000001"), [1, 2, 1, 0, 59_999, 60_000]);
        assert_eq!(server.slide("missing 60s 2 COST 0"), [1, 2, 2, 0, 0, 60_000]);
    });
}

#[test]
fn what_must_add_is_refused_and_writes_nothing() {
    let server = server_out_of_memory();
    for call in [
        "k 60s 2 AT 1000001",
        "k 60s 2 FORCE AT 1000001",
        "k 60s 1 FORCE AT 1000001",
        "k 60s 2 PRECISION 1s AT 1000000",
        "k 60s 2 AT 9000000",
        "missing 60s 2",
        "missing 60s 0 FORCE",
    ] {
        let error = leaves_everything(&server, call, || server.error(&format!("RL.SLIDE {call}")));
        assert!(error.starts_with("OOM"), "{call}: {error}");
    }
    server.does("CONFIG SET maxmemory 0");
    assert_eq!(server.slide("k 60s 2 AT 1000001"), [1, 2, 0, 0, 60_000, 60_000]);
    assert_eq!(server.slide("missing 60s 2")[0], 1);
}

#[test]
fn a_log_that_would_be_dropped_stays() {
    let server = Server::start();
    server.plant("ahead", &[format!("{} a1+1", server.now() + 3_600_000)]);
    server.does("CONFIG SET maxmemory 1");
    let error = leaves_everything(&server, "a restart", || server.error("RL.SLIDE ahead 60s 5"));
    assert!(error.starts_with("OOM"), "{error}");
}

#[test]
fn other_errors_come_as_always() {
    let server = server_out_of_memory();
    assert!(server.error("RL.SLIDE k 60s x").starts_with("ERR "));
    assert!(server.error("RL.SLIDE text 60s 5").starts_with("WRONGTYPE"));
}

#[test]
fn a_transaction_sees_the_same() {
    let server = Server::start();
    server.slide("k 60s 2 AT 1000000");
    let mut wire = server.wire();
    // Queued in time: without memory the server itself queues nothing.
    for line in ["MULTI", "RL.SLIDE k 60s 1 AT 1000001", "RL.SLIDE k 60s 2 AT 1000001"] {
        assert!(wire.ask(line).starts_with('+'));
    }
    server.does("CONFIG SET maxmemory 1");
    let answer = leaves_everything(&server, "a transaction", || wire.ask("EXEC"));
    assert!(answer.starts_with("*2\r\n*6\r\n:0\r\n"), "{answer}");
    assert!(answer.contains(":60000\r\n-OOM"), "{answer}");
}

#[test]
fn a_script_sees_the_same() {
    let server = server_out_of_memory();
    let mut wire = server.wire();
    leaves_everything(&server, "a script", || {
        let script = "return redis.pcall('RL.SLIDE', KEYS[1], '60s', ARGV[1], 'AT', '1000001')";
        let denied = wire.ask_args(&["EVAL", script, "1", "k", "1"]);
        assert!(denied.starts_with("*6\r\n:0\r\n"), "{denied}");
        let refused = wire.ask_args(&["EVAL", script, "1", "k", "2"]);
        assert!(refused.starts_with("-OOM"), "{refused}");
    });
}

#[test]
fn where_there_is_something_to_evict_requests_are_admitted() {
    let server = Server::start();
    let value = "v".repeat(100_000);
    for i in 0..50 {
        server.does(&format!("SET filler{i} {value}"));
    }
    let used: i64 = server.info("used_memory").parse().unwrap();
    server.does("CONFIG SET maxmemory-policy allkeys-random");
    // It may take its time: else a server that is slow goes on to the command before it is done.
    server.does("CONFIG SET maxmemory-eviction-tenacity 100");
    server.does(&format!("CONFIG SET maxmemory {}", used - 1_000_000));
    for i in 0..100 {
        server.does(&format!("SET more{i} {value}"));
        assert_eq!(server.slide(&format!("k{i} 60s 5"))[..3], [1, 5, 4]);
    }
    assert_ne!(server.info("evicted_keys"), "0");
}
