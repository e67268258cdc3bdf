//! What a call that changes nothing must leave alone: transactions that watch the key, clients that
//! cache it, the dirty counter, the AOF. Each check is shown to notice an admission.

use crate::harness::{Server, Setup};

/// Calls that change nothing, on a log `k` with 1 unit used at 1000000 and on a text `text`.
const CHANGING_NOTHING: [&str; 9] = [
    "RL.SLIDE k 60s 1 AT 1000001",
    "RL.SLIDE k 60s 5 COST 6 AT 1000001",
    "RL.SLIDE k 60s 1 PRECISION 1s AT 1000001",
    "RL.SLIDE k 60s 0 1h 0 AT 9000000",
    "RL.SLIDE k 60s 5 COST 0 AT 1000001",
    "RL.SLIDE k 60s 5 COST 0 FORCE AT 9000000",
    "RL.SLIDE k 60s 0 COST 0 AT 1000001",
    "RL.SLIDE k 60s 5 COST x",
    "RL.SLIDE text 60s 5",
];

/// Calls that change the log.
const CHANGING: [&str; 3] = [
    "RL.SLIDE k 60s 5 AT 1000001",
    "RL.SLIDE k 60s 0 FORCE AT 1000001",
    "RL.SLIDE k 60s 5 PRECISION 1s AT 1000000",
];

fn server_with_log(setup: Setup) -> Server {
    let server = setup.start();
    renew_log(&server);
    server
}

fn renew_log(server: &Server) {
    server.does("FLUSHALL");
    server.does("SET text v");
    server.slide("k 60s 1 AT 1000000");
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
        watcher.ask("WATCH k text missing");
        let _ = server.try_run(call);
        watcher.ask("MULTI");
        watcher.ask("ECHO done");
        watcher.ask("EXEC")
    };
    for call in CHANGING_NOTHING
        .into_iter()
        .chain(["RL.SLIDE missing 60s 0", "RL.SLIDE missing 60s 5 COST 0"])
    {
        assert_eq!(transaction(call), "*1\r\n$4\r\ndone\r\n", "{call}");
    }
    for call in CHANGING.into_iter().chain(["RL.SLIDE missing 60s 5"]) {
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
        cache.ask("ZCARD k");
        cache.ask("GET text");
        let _ = server.try_run(call);
        // A push would stand before this answer.
        assert_eq!(cache.ask("PING"), "+PONG\r\n", "{call}");
    }
    for call in CHANGING {
        cache.ask("ZCARD k");
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
