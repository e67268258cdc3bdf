//! What a call that changes nothing must leave alone: transactions that watch the key, clients that
//! cache it, the dirty counter, the AOF. Each check is shown to notice an admission.

use crate::events::events;
use crate::harness::{Server, Setup};

/// Calls that change nothing, on a log `k` and counters `h` with 1 unit used at 1000000 and on a text `text`.
const CHANGING_NOTHING: [&str; 29] = [
    "RL.SLIDE k 60s 1 AT 1000001",
    "RL.SLIDE k 60s 5 COST 6 AT 1000001",
    "RL.SLIDE k 60s 1 PRECISION 1s AT 1000001",
    "RL.SLIDE k 60s 0 1h 0 AT 9000000",
    "RL.SLIDE k 60s 5 COST 0 AT 1000001",
    "RL.SLIDE k 60s 5 COST 0 FORCE AT 9000000",
    "RL.SLIDE k 60s 0 COST 0 AT 1000001",
    "RL.SLIDE k 60s 5 COST x",
    "RL.SLIDE text 60s 5",
    "RL.SLIDE h 60s 5",
    "RL.SWC h 60s 1 AT 1000001",
    "RL.SWC h 60s 5 COST 6 AT 1000001",
    "RL.SWC h 60s 0 1h 0 AT 9000000",
    "RL.SWC h 60s 5 COST 0 FORCE AT 9000000",
    "RL.SWC h 60s 0 COST 0 AT 1000001",
    "RL.SWC h 60s 5 PRECISION 1s",
    "RL.SWC text 60s 5",
    "RL.SWC k 60s 5",
    "RL.PEEK k 60s 5 AT 1000001",
    "RL.PEEK k 60s 1 FORCE PRECISION 1s AT 1000001",
    "RL.PEEK k 60s 5 AT 9000000",
    "RL.PEEK h 60s 5 AT 1000001",
    "RL.PEEK h 60s 1 1h 9 FORCE AT 1000001",
    "RL.PEEK h 60s 5 AT 9000000",
    "RL.PEEK text 60s 5",
    "RL.REFUND h 1 AT 9000000",
    "RL.REFUND h 0",
    "RL.REFUND k 0",
    "RL.REFUND text 1",
];

/// Calls that change the log or the counters.
const CHANGING: [&str; 8] = [
    "RL.SLIDE k 60s 5 AT 1000001",
    "RL.SLIDE k 60s 0 FORCE AT 1000001",
    "RL.SLIDE k 60s 5 PRECISION 1s AT 1000000",
    "RL.SWC h 60s 5 AT 1000001",
    "RL.SWC h 60s 0 FORCE AT 1000001",
    "RL.SWC h 60s 5 AT 1060000",
    "RL.REFUND k 1",
    "RL.REFUND h 1 AT 1000001",
];

fn server_with_log(setup: Setup) -> Server {
    let server = setup.start();
    renew_log(&server);
    server
}

/// The data set that the calls are about.
fn renew_log(server: &Server) {
    server.does("FLUSHALL");
    server.does("SET text v");
    server.slide("k 60s 1 AT 1000000");
    server.swc("h 60s 1 AT 1000000");
}

#[test]
fn what_changes_nothing_is_not_dirty() {
    let server = server_with_log(Setup::new());
    for call in CHANGING_NOTHING {
        let dirty = server.dirty();
        let _ = server.try_run(call);
        assert_eq!(server.dirty(), dirty, "{call}");
    }
    for call in CHANGING {
        renew_log(&server);
        let dirty = server.dirty();
        server.does(call);
        assert!(server.dirty() > dirty, "{call} is to be saved");
    }
}

#[test]
fn what_changes_nothing_is_not_propagated() {
    let server = server_with_log(Setup::new().with_aof());
    let mut journal = server.journal();
    for call in CHANGING_NOTHING {
        let _ = server.try_run(call);
        assert!(journal.commands().is_empty(), "{call}");
    }
    for call in CHANGING {
        renew_log(&server);
        journal.skip();
        server.does(call);
        assert!(!journal.commands().is_empty(), "{call}");
    }
}

#[test]
fn what_changes_nothing_does_not_abort_a_transaction() {
    let server = server_with_log(Setup::new());
    let mut watcher = server.wire();
    let mut transaction = |call: &str| {
        for key in ["k", "h", "text", "missing"] {
            watcher.ask(&format!("WATCH {key}"));
        }
        let _ = server.try_run(call);
        watcher.ask("MULTI");
        watcher.ask("ECHO done");
        watcher.ask("EXEC")
    };
    for call in CHANGING_NOTHING.into_iter().chain([
        "RL.SLIDE missing 60s 0",
        "RL.SLIDE missing 60s 5 COST 0",
        "RL.SWC missing 60s 0",
        "RL.SWC missing 60s 5 COST 0",
        "RL.PEEK missing 60s 5",
        "RL.REFUND missing 5",
    ]) {
        assert_eq!(transaction(call), "*1\r\n$4\r\ndone\r\n", "{call}");
    }
    for call in CHANGING.into_iter().chain(["RL.SLIDE missing 60s 5", "RL.SWC missing 60s 5"]) {
        renew_log(&server);
        assert_eq!(transaction(call), "*-1\r\n", "{call} aborts the transaction");
    }
}

#[test]
fn what_changes_nothing_does_not_invalidate_client_caches() {
    let server = server_with_log(Setup::new());
    let mut cache = server.wire();
    cache.ask("HELLO 3");
    assert_eq!(cache.ask("CLIENT TRACKING ON"), "+OK\r\n");
    for call in CHANGING_NOTHING {
        for read in ["ZCARD k", "HLEN h", "GET text"] {
            cache.ask(read);
        }
        let _ = server.try_run(call);
        // A push would stand before this answer.
        assert_eq!(cache.ask("PING"), "+PONG\r\n", "{call}");
    }
    for call in CHANGING {
        for read in ["ZCARD k", "HLEN h"] {
            cache.ask(read);
        }
        server.does(call);
        let push = cache.ask("PING");
        assert!(push.starts_with(">2\r\n$10\r\ninvalidate"), "{call}: {push:?}");
        assert_eq!(cache.frame(), "+PONG\r\n");
    }
}

#[test]
fn an_admission_is_saved_like_any_other_write() {
    let server = server_with_log(Setup::new());
    server.does("SAVE");
    assert_eq!(server.dirty(), 0);
    server.slide("k 60s 1 AT 1000001");
    assert_eq!(server.dirty(), 0);
    server.slide("k 60s 5 AT 1000001");
    assert_ne!(server.dirty(), 0);
}

#[test]
fn a_charge_is_neither_a_hit_nor_a_miss() {
    let server = server_with_log(Setup::new().option("notify-keyspace-events Em"));
    let counts = || (server.info("keyspace_hits"), server.info("keyspace_misses"));
    for key in ["k", "h", "missing:k", "missing:h"] {
        let command = if key.ends_with('k') { "RL.SLIDE" } else { "RL.SWC" };
        for rest in ["60s 9 AT 1000001", "60s 0 AT 1000001", "60s 9 AT 9000000"] {
            let (before, call) = (counts(), format!("{command} {key} {rest}"));
            assert_eq!(events(&server, &call), Vec::<String>::new(), "{call}");
            assert_eq!(counts(), before, "{call}");
        }
    }
    let before = counts();
    assert_eq!(events(&server, "GET missing"), ["keymiss missing"]);
    assert_ne!(counts(), before, "a read that misses is noticed");
}
