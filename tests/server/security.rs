//! What callers can do to a server and to each other, and what they cannot. docs/SECURITY.md says which
//! test shows what; these are those that no other file has.

use redis::Value;

use crate::client::Client;
use crate::events::events;
use crate::harness::module_path;
use crate::harness::{Server, Setup, read_log, server_is_at_least, skipped, wait_until};

/// What must not be seen where it is not sent.
const MARK: &str = "INJECTED";

/// A word that would write a line of the server's log, or of the protocol, if it could.
fn hostile_word() -> Vec<u8> {
    let line = "1:M 01 Dec 2026 00:00:00.000 #";
    format!("\r\n{line} {MARK}\r\n+{MARK}\r\n%s%n\x1b[2J\0").into_bytes()
}

/// All that the server has logged.
fn log_of(client: &Client) -> String {
    let [_, dir]: [String; 2] = client.run("CONFIG GET dir");
    read_log(dir.as_ref())
}

// --- Logs, errors, INFO ----------------------------------------------------------------------------

#[test]
fn nothing_that_a_caller_sends_reaches_the_log() {
    let server = Server::start();
    server.does("CONFIG SET loglevel debug");
    let word = hostile_word();
    let word = word.as_slice();
    let mut calls: Vec<Vec<&[u8]>> = vec![
        vec![b"RL.REFUND", word, b"1"],
        vec![b"RL.REFUND", b"k", word],
        vec![b"RL.REFUND", b"k", b"1", word],
        vec![b"RL.DENIED", word],
        vec![b"RL.DENIED", b"COUNT", word],
    ];
    for command in [b"RL.SLIDE".as_slice(), b"RL.SWC", b"RL.PEEK"] {
        calls.push(vec![command, word, b"60s", b"5"]);
        calls.push(vec![command, word, b"60s", b"0"]);
        calls.push(vec![command, b"k", word, b"5"]);
        calls.push(vec![command, b"k", b"60s", word]);
        calls.push(vec![command, b"k", b"60s", b"5", word]);
        for option in [b"COST".as_slice(), b"PRECISION", b"AT"] {
            calls.push(vec![command, b"k", b"60s", b"5", option, word]);
        }
    }
    for call in &calls {
        // Answered or refused: what is logged of it matters.
        let _ = server.try_args(call);
    }
    server.args::<i64>(&[b"ZADD".as_slice(), b"foreign", b"1", word]);
    server.error("RL.SLIDE foreign 60s 5");
    server.args::<i64>(&[b"DEL", word]);
    let ahead = (server.now() + 3_600_000).to_string();
    server.args::<i64>(&[b"ZADD".as_slice(), word, ahead.as_bytes(), b"a1+1"]);
    server.args::<Value>(&[b"RL.SLIDE", word, b"60s", b"5"]);

    let log = log_of(&server);
    assert!(log.contains("a clock far ahead"), "the module does log: {log}");
    assert!(!log.contains(MARK), "{log}");
}

#[test]
fn an_argument_of_the_load_is_logged_on_one_line() {
    let server = Setup::new().without_module().start();
    let word = hostile_word();
    let path = module_path();
    let load: [&[u8]; 4] = [b"MODULE", b"LOAD", path.as_bytes(), &word];
    server.try_args(&load).unwrap_err();
    let log = log_of(&server);
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(MARK)).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains("<rl> unknown module argument '\\r\\n1:M"), "{}", lines[0]);
}

#[test]
fn info_tells_numbers_and_no_names() {
    let server = Server::start();
    for call in ["60s 1", "60s 1", "60s x"] {
        let _ = server.try_run(&format!("RL.SLIDE rl:{MARK} {call}"));
    }
    assert_eq!(server.info("rl_slide_denied"), "1");
    let section: String = server.run("INFO rl");
    let fields: Vec<_> = section.lines().filter_map(|line| line.split_once(':')).collect();
    assert!(fields.len() >= 20, "{section}");
    for (name, value) in fields {
        assert!(value.parse::<u64>().is_ok(), "{name} is {value}");
    }
    assert!(!server.run::<String>("INFO everything").contains(MARK));
}

#[test]
fn an_error_shows_32_bytes_of_an_argument_and_no_name() {
    let server = Server::start();
    server.does(&format!("SET {MARK}:text v"));
    server.does(&format!("ZADD {MARK}:set 1 m"));
    server.does(&format!("HSET {MARK}:hash f v"));
    let long = "x".repeat(33);
    for call in [
        format!("RL.SLIDE {MARK}:text 60s 5"),
        format!("RL.SLIDE {MARK}:set 60s 5"),
        format!("RL.SWC {MARK}:hash 60s 5"),
        format!("RL.REFUND {MARK}:text 1"),
        format!("RL.SLIDE {MARK} {long} 5"),
        format!("RL.SWC {MARK} 60s {long}"),
        format!("RL.PEEK {MARK} 60s 5 {long}"),
        format!("RL.REFUND {MARK} {long}"),
        format!("RL.DENIED {long}"),
    ] {
        let error = server.error(&call);
        assert!(!error.contains(MARK), "{call}: {error}");
        let shown = format!("'{}...'", &long[..32]);
        assert_eq!(error.contains(&shown), call.contains(&long), "{call}: {error}");
        assert!(!error.contains(&long), "{call}: {error}");
    }
}

#[test]
fn events_show_whole_names_to_who_has_the_right_and_only_once_turned_on() {
    let server = Server::start();
    let name = format!("{MARK}{}", "x".repeat(100));
    assert_eq!(server.run::<[String; 2]>("CONFIG GET notify-keyspace-events")[1], "");
    assert!(events(&server, &format!("RL.SLIDE {name} 60s 0")).is_empty());
    server.does("CONFIG SET notify-keyspace-events Ed");
    let heard = events(&server, &format!("RL.SLIDE {name} 60s 0"));
    assert_eq!(heard, [format!("rl.denied {name}")]);

    for (channel, answer) in [("other", "-NOPERM"), ("__keyevent@*__:rl.denied", "*3")] {
        server.does(&format!("ACL SETUSER u reset on nopass resetchannels &{channel} +psubscribe"));
        let mut wire = server.wire();
        assert_eq!(wire.ask("AUTH u any"), "+OK\r\n");
        let told = wire.ask("PSUBSCRIBE __keyevent@*__:rl.denied");
        assert!(told.starts_with(answer), "with the right to {channel}: {told}");
    }
}

// --- Whom a key trusts -----------------------------------------------------------------------------

#[test]
fn who_may_charge_a_key_may_fill_it_and_empty_it() {
    let server = Server::start();
    assert_eq!(server.slide("k 60s 5 COST 9007199254740991 FORCE")[0], 0);
    assert_eq!(server.slide("k 60s 5")[0], 0, "nobody passes");
    let tomorrow = server.now() + 86_400_000;
    assert_eq!(server.slide(&format!("k 60s 5 AT {tomorrow}"))[0], 1);
    assert_eq!(server.slide("k 60s 5")[..3], [1, 5, 4], "the charge is gone");
    assert_eq!(server.slide("k 60s 9007199254740991 COST 1000")[0], 1, "under any limit");
}

#[test]
fn who_may_write_a_key_may_forge_its_limiter() {
    let server = Server::start();
    server.slide("log 60s 5 AT 1000000");
    server.does("ZADD log 1000001 a6+5");
    assert_eq!(server.slide("log 60s 5 AT 1000002")[0], 0, "a charge that nobody made counts");
    server.does("DEL log");
    assert_eq!(server.slide("log 60s 5 AT 1000002")[..3], [1, 5, 4]);

    server.swc("counters 60s 5 AT 1000000");
    server.does("HSET counters 60000:current 5");
    assert_eq!(server.swc("counters 60s 5 AT 1000000")[0], 0);
    server.does("HSET counters 60000:current 0");
    assert_eq!(server.swc("counters 60s 5 AT 1000000")[..3], [1, 5, 4]);
}

#[test]
fn a_server_that_allows_no_module_command_loads_and_unloads_none() {
    if !server_is_at_least(7, 0) {
        return skipped("before 7.0 only the right to MODULE stands in the way");
    }
    let server = Setup::new().option("enable-module-command no").start();
    for command in ["MODULE UNLOAD rl".to_string(), format!("MODULE LOAD {}", module_path())] {
        let error = server.error(&command);
        assert!(error.contains("not allowed"), "{command}: {error}");
    }
    assert_eq!(server.slide("k 60s 5")[0], 1);
}

// --- Names -----------------------------------------------------------------------------------------

#[test]
fn braces_in_a_name_choose_its_slot() {
    let server = Setup::new().on_tcp().option("cluster-enabled yes").start();
    let slots = |name: fn(u32) -> String| {
        let slot = |n| server.run::<i64>(&format!("CLUSTER KEYSLOT {}", name(n)));
        let mut slots: Vec<i64> = (0..1_000).map(slot).collect();
        slots.sort();
        slots.dedup();
        slots.len()
    };
    assert_eq!(slots(|n| format!("rl:{{x}}{n}")), 1, "a user's braces bring all to one node");
    assert_eq!(slots(|n| format!("rl:x}}{n}{{y}}")), 1);
    assert!(slots(|n| format!("rl:{:08x}", n.wrapping_mul(2_654_435_761))) > 900);
}

#[test]
fn a_long_name_is_stored_once_and_expires() {
    let server = Server::start();
    let name = "n".repeat(100_000);
    let held = |command: &str| {
        server.verdict(&format!("{command} {name} 60s 5"));
        let bytes: i64 = server.run(&format!("MEMORY USAGE {name}"));
        let left_ms: i64 = server.run(&format!("PTTL {name}"));
        assert!((1..=150_000).contains(&left_ms), "{command}: {left_ms} ms are left");
        server.does(&format!("DEL {name}"));
        bytes
    };
    // An allocator rounds up, by a quarter at most.
    for command in ["RL.SLIDE", "RL.SWC"] {
        let bytes = held(command);
        assert!((100_000..=126_000).contains(&bytes), "{command}: {bytes} bytes");
    }
}

// --- Memory ----------------------------------------------------------------------------------------

#[test]
fn denials_of_many_names_store_nothing() {
    let server = Server::start();
    let dirty = server.dirty();
    for n in 0..5_000 {
        assert_eq!(server.slide(&format!("rl:{n} 60s 0"))[0], 0);
        assert_eq!(server.peek(&format!("rl:{n} 60s 5"))[0], 1);
    }
    assert_eq!(server.run::<i64>("DBSIZE"), 0);
    assert_eq!(server.dirty(), dirty);
    assert_eq!(server.run::<Vec<Value>>("RL.DENIED COUNT 5000").len(), 512);
}

#[test]
fn whatever_a_caller_asks_the_key_expires() {
    const LONGEST_MS: i64 = 3_650 * 86_400_000;
    let server = Server::start();
    let farthest = server.now() + LONGEST_MS;
    let times = ["".to_string(), "AT 0".into(), format!("AT {farthest}")];
    for command in ["RL.SLIDE", "RL.SWC"] {
        for windows in ["1ms 5", "3650d 5", "1ms 5 3650d 5", "3650d 9007199254740991"] {
            for at in &times {
                let call = format!("{command} k {windows} COST 9007199254740991 FORCE {at}");
                let before = server.now();
                server.verdict(&call);
                let expiry = server.expiry("k");
                let latest = server.now() + 3 * LONGEST_MS + LONGEST_MS / 4;
                // A window of 1 ms may have passed already.
                assert!(expiry == -2 || (before..=latest).contains(&expiry), "{call}: {expiry}");
                server.does("DEL k");
            }
        }
    }
}

#[test]
fn a_large_log_expires_in_the_background_where_the_server_is_told_to() {
    let server = Setup::new().option("lazyfree-lazy-expire yes").start();
    let entries: Vec<String> = (1..=1_000).map(|n| format!("1000000 {}", member(n))).collect();
    server.plant("k", &entries);
    assert_eq!(server.slide("k 60s 1000 AT 1000000")[0], 0, "it is a log");
    let freed = || server.info("lazyfreed_objects").parse::<u64>().unwrap();
    let before = freed();
    server.does("PEXPIREAT k 1");
    assert_eq!(server.run::<i64>("EXISTS k"), 0);
    wait_until("the log to be freed by another thread", || freed() > before);
}

/// The member of the `n`th unit of a log.
fn member(n: u32) -> String {
    let total = n.to_string();
    let letter = char::from(b'a' + total.len() as u8 - 1);
    format!("{letter}{total}+1")
}
