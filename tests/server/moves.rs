//! Limiters that are renamed, copied, moved, dumped and migrated go on where they were; databases that
//! are swapped and flushed take theirs along.

use std::sync::mpsc::{Sender, channel};
use std::thread;

use redis::Value;

use crate::client::six_fields;
use crate::dataset::{contents, dataset, expiries};
use crate::harness::{Server, Setup};

const FULL: [i64; 3] = [0, 3, 0];
const FRESH: [i64; 3] = [1, 3, 3];

/// The two commands, each with a key that says which.
const KINDS: [(&str, &str); 2] = [("SLIDE", "log"), ("SWC", "counters")];

/// A log and counters of three units, all taken.
fn fill(server: &Server) {
    for (command, key) in KINDS {
        assert_eq!(server.verdict(&format!("RL.{command} {key} 1h 3 COST 3"))[..3], [1, 3, 0]);
    }
}

fn state(server: &Server, key: &str) -> [i64; 3] {
    server.peek(&format!("{key} 1h 3"))[..3].try_into().unwrap()
}

/// Another key, of the same slot.
fn beside(key: &str) -> String {
    format!("beside:{{{key}}}")
}

#[test]
fn a_renamed_limiter_goes_on_under_its_new_name() {
    let server = Server::start();
    fill(&server);
    for (_, key) in KINDS {
        let (expiry_ms, new) = (server.expiry(key), beside(key));
        server.does(&format!("RENAME {key} {new}"));
        assert_eq!(server.expiry(&new), expiry_ms);
        assert_eq!(state(&server, key), FRESH);
        assert_eq!(state(&server, &new), FULL);
        // Over another limiter, whose state is gone with that.
        server.does(&format!("RL.SLIDE {key} 1h 3"));
        server.does(&format!("RENAME {new} {key}"));
        assert_eq!(state(&server, key), FULL);
        assert_eq!(server.expiry(key), expiry_ms);
    }
}

#[test]
fn a_copy_is_a_limiter_of_its_own() {
    let server = Server::start();
    fill(&server);
    for (command, key) in KINDS {
        let copy = beside(key);
        server.does(&format!("COPY {key} {copy}"));
        assert_eq!(server.expiry(&copy), server.expiry(key));
        assert_eq!(state(&server, &copy), FULL);
        assert_eq!(server.verdict(&format!("RL.{command} {copy} 1h 5 COST 2"))[..3], [1, 5, 0]);
        assert_eq!(server.peek(&format!("{key} 1h 5"))[..3], [1, 5, 2], "the original stays");
        assert_eq!(server.refund(&format!("{key} 1")), 1);
        assert_eq!(server.peek(&format!("{copy} 1h 5"))[..3], [0, 5, 0]);
    }
}

#[test]
fn a_limiter_moves_to_another_database() {
    let server = Server::start();
    if server.forbids("other databases") {
        return;
    }
    fill(&server);
    for (_, key) in KINDS {
        let expiry_ms = server.expiry(key);
        server.does(&format!("COPY {key} {key} DB 2"));
        server.does(&format!("MOVE {key} 1"));
        assert_eq!(state(&server, key), FRESH);
        for database in [1, 2] {
            server.does(&format!("SELECT {database}"));
            assert_eq!((state(&server, key), server.expiry(key)), (FULL, expiry_ms));
        }
        server.does("SELECT 0");
    }
}

#[test]
fn a_dump_restores_a_limiter() {
    let (server, other) = (Server::start(), Server::start());
    fill(&server);
    let before = contents(&server);
    for (_, key) in KINDS {
        let dump: Vec<u8> = server.args(&["DUMP", key]);
        let expiry = server.expiry(key).to_string();
        for target in [&server, &other] {
            let restore = ["RESTORE", key, &expiry].map(str::as_bytes);
            let options = ["REPLACE", "ABSTTL"].map(str::as_bytes);
            target.args::<()>(&[&restore[..], &[&dump], &options[..]].concat());
            assert_eq!((state(target, key), target.expiry(key)), (FULL, server.expiry(key)));
        }
    }
    assert_eq!(contents(&server), before);
    assert_eq!(contents(&other), before);
    // A copy restored without an expiry is charged as any limiter, and gets one with that.
    let dump: Vec<u8> = server.args(&["DUMP", "log"]);
    server.args::<()>(&["RESTORE".as_bytes(), b"forever", b"0", &dump]);
    assert_eq!(server.expiry("forever"), -1);
    assert_eq!(server.slide("forever 1h 4")[..3], [1, 4, 0]);
    assert!(server.expiry("forever") > server.now());
}

#[test]
fn limiters_migrate_to_a_server_without_the_module_and_back() {
    let server = Setup::new().on_tcp().start();
    let plain = Setup::new().on_tcp().without_module().start();
    fill(&server);
    let before = dataset(&server);
    let migrate = |from: &Server, to: &Server| {
        from.does(&format!("MIGRATE 127.0.0.1 {} log 0 100000", to.port()));
        from.does(&format!("MIGRATE 127.0.0.1 {} counters 0 100000", to.port()));
        assert_eq!(from.run::<i64>("DBSIZE"), 0);
    };
    migrate(&server, &plain);
    assert_eq!(state(&server, "log"), FRESH);
    assert_eq!(plain.run::<i64>("ZCARD log"), 1);
    assert!(plain.error("RL.PEEK log 1h 3").contains("unknown command"));
    migrate(&plain, &server);
    for (_, key) in KINDS {
        assert_eq!(state(&server, key), FULL);
    }
    let after = dataset(&server);
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
}

#[test]
fn swapped_databases_take_their_limiters_along() {
    let server = Server::start();
    if server.forbids("other databases") {
        return;
    }
    fill(&server);
    for _ in 0..2 {
        server.does("SWAPDB 0 1");
        assert_eq!(KINDS.map(|(_, key)| state(&server, key)), [FRESH, FRESH]);
        server.does("SELECT 1");
        assert_eq!(KINDS.map(|(_, key)| state(&server, key)), [FULL, FULL]);
        server.does("SWAPDB 0 1");
        server.does("SELECT 0");
        assert_eq!(KINDS.map(|(_, key)| state(&server, key)), [FULL, FULL]);
    }
}

// --- Under load ------------------------------------------------------------------------------------

const LIMIT: i64 = 1_000_000_000;
const PIPELINED: usize = 50;
const FLUSHES: usize = 20;

/// Charges one limiter again and again: each charge takes one unit more than the last, or is the first
/// of a limiter that was flushed. Tells before each pipeline how often it was, and ends when nobody listens.
fn charge_under_flushes(mut connection: redis::Connection, call: &str, done: &Sender<usize>) {
    let words: Vec<&str> = call.split(' ').collect();
    let mut pipeline = redis::pipe();
    for _ in 0..PIPELINED {
        pipeline.cmd(words[0]).arg(&words[1..]);
    }
    let (mut used, mut fresh) = (0, 0);
    while done.send(fresh).is_ok() {
        let replies: Vec<Value> = pipeline.query(&mut connection).unwrap();
        assert_eq!(replies.len(), PIPELINED);
        for reply in replies {
            let reply = six_fields(reply);
            fresh += usize::from(reply[2] == LIMIT - 1);
            used = if reply[2] == LIMIT - 1 { 1 } else { used + 1 };
            assert_eq!(reply[..4], [1, LIMIT, LIMIT - used, 0], "{call}");
        }
    }
}

#[test]
fn a_flush_under_load_makes_every_limiter_fresh_and_breaks_none() {
    let server = Server::start();
    let calls = [
        // Each has a fixed time, so that all that is charged stays in the window.
        format!("RL.SLIDE log:1 1h {LIMIT} AT 3600000"),
        format!("RL.SLIDE log:2 1h {LIMIT} PRECISION 1s AT 3600000"),
        format!("RL.SWC counters 1h {LIMIT} AT 3600000"),
    ];
    thread::scope(|scope| {
        let loads: Vec<_> = calls
            .iter()
            .map(|call| {
                let (done, progress) = channel();
                let connection = server.plain_connection();
                scope.spawn(move || charge_under_flushes(connection, call, &done));
                progress
            })
            .collect();
        for flush in 0..FLUSHES {
            for progress in &loads {
                // As often fresh as there were flushes, and once at the start.
                let fresh = progress.iter().find(|fresh| *fresh > flush);
                assert_eq!(fresh, Some(flush + 1));
            }
            server.does("FLUSHALL ASYNC");
        }
    });
    assert!(expiries(&server).values().all(|expiry| *expiry > server.now()), "every key expires");
    server.does("FLUSHALL ASYNC");
    for key in ["log:1", "log:2", "counters"] {
        assert_eq!(state(&server, key), FRESH);
    }
    assert_eq!(server.info("rl_panics"), "0");
}
