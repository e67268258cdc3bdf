//! `RL.DENIED`: which denials it counts, what it shows of them, and that it leaves no other trace.

use redis::Value;

use crate::client::Client;
use crate::dataset::leaves_everything;
use crate::events::{announcing_server, events};
use crate::harness::{Server, Setup, module_path};
use crate::replication::{primary, replica_of, wait_for_replicas};

/// One key of the list: its name, how often it was denied, by how much that may be too high.
type Line = (Vec<u8>, i64, i64);

fn ask(client: &Client, words: &str) -> Vec<Line> {
    client.run(&format!("RL.DENIED {words}"))
}

/// The list as text, each key as `name count`. Without more than 512 keys all counts are exact.
fn denied(client: &Client) -> Vec<String> {
    let lines = ask(client, "COUNT 1000").into_iter().map(|(name, count, error)| {
        assert_eq!(error, 0, "no count has been taken over");
        format!("{} {count}", String::from_utf8(name).unwrap())
    });
    lines.collect()
}

/// Denies a key so many times.
fn deny(client: &Client, key: impl AsRef<[u8]>, times: usize) {
    for _ in 0..times {
        let args: [&[u8]; 4] = [b"RL.SLIDE", key.as_ref(), b"60s", b"0"];
        let [allowed, ..]: [i64; 6] = client.args(&args);
        assert_eq!(allowed, 0);
    }
}

// --- What counts -----------------------------------------------------------------------------------

#[test]
fn the_key_denied_most_often_comes_first() {
    let server = Server::start();
    assert!(denied(&server).is_empty());
    for (key, times) in [("a", 2), ("b", 5), ("c", 1), ("b", 1), ("c", 2)] {
        deny(&server, key, times);
    }
    assert_eq!(denied(&server), ["b 6", "c 3", "a 2"]);
}

#[test]
fn denials_of_both_limiters_count_and_nothing_else_does() {
    let server = Server::start();
    server.does("SET text v");
    for (call, allowed) in [
        ("RL.SLIDE log 60s 1 AT 1000000", 1),
        ("RL.SLIDE log 60s 1 AT 1000000", 0),
        ("RL.SLIDE log 60s 1 FORCE AT 1000000", 0),
        ("RL.SLIDE log 60s 9 FORCE AT 1000000", 1),
        ("RL.SLIDE log 60s 9 COST 10 AT 1000000", 0),
        ("RL.SLIDE log 60s 1 COST 0 AT 1000000", 0),
        ("RL.SLIDE log 60s 9 COST 0 AT 1000000", 1),
        ("RL.SWC counters 60s 1 AT 1000000", 1),
        ("RL.SWC counters 60s 1 AT 1000000", 0),
        ("RL.SWC counters 60s 1 FORCE AT 1000000", 0),
        ("RL.PEEK log 60s 1 AT 1000000", 0),
        ("RL.PEEK counters 60s 1 AT 1000000", 0),
        ("RL.PEEK peeked 60s 0", 0),
    ] {
        assert_eq!(server.verdict(call)[0], allowed, "{call}");
    }
    for call in ["RL.SLIDE text 60s 0", "RL.SWC text 60s 0", "RL.SLIDE bad 60 0"] {
        server.error(call);
    }
    assert_eq!(server.refund("nothing 5"), 0);
    assert_eq!(denied(&server), ["log 4", "counters 2"]);
}

#[test]
fn what_finds_no_memory_was_not_denied() {
    let server = Server::start();
    server.slide("k 60s 1 AT 1000000");
    server.does("CONFIG SET maxmemory 1");
    assert!(server.error("RL.SLIDE k 60s 2 AT 1000000").starts_with("OOM"));
    assert!(server.error("RL.SLIDE k 60s 1 FORCE AT 1000000").starts_with("OOM"));
    assert!(denied(&server).is_empty());
    deny(&server, "k", 3);
    assert_eq!(denied(&server), ["k 3"], "it is answered without memory, too");
}

#[test]
fn several_windows_are_one_denial() {
    let server = Server::start();
    assert_eq!(server.slide("k 1s 0 60s 0 1h 0")[0], 0);
    assert_eq!(denied(&server), ["k 1"]);
}

#[test]
fn scripts_and_transactions_count() {
    let server = Server::start();
    let script = b"for i = 1, 3 do redis.call('RL.SLIDE', KEYS[1], '60s', 0) end";
    server.args::<Value>(&[b"EVAL".as_slice(), script, b"1", b"script"]);
    let mut wire = server.wire();
    for line in ["MULTI", "RL.SWC transaction 60s 0", "RL.SWC transaction 60s 0", "EXEC"] {
        wire.ask(line);
    }
    assert_eq!(denied(&server), ["script 3", "transaction 2"]);
}

#[test]
fn all_databases_are_one() {
    let server = Server::start();
    if server.forbids("other databases") {
        return;
    }
    deny(&server, "k", 2);
    server.does("SELECT 5");
    deny(&server, "k", 1);
    deny(&server, "other", 1);
    assert_eq!(denied(&server), ["k 3", "other 1"]);
    server.does("FLUSHALL");
    assert_eq!(denied(&server), ["k 3", "other 1"], "it tells of denials, not of keys");
}

// --- What is shown ---------------------------------------------------------------------------------

#[test]
fn ten_are_shown_unless_count_says_otherwise() {
    let server = Server::start();
    for i in 1..=12 {
        deny(&server, format!("k{i}"), i);
    }
    let top: Vec<Line> = (1..=12).rev().map(|i| (format!("k{i}").into(), i, 0)).collect();
    assert_eq!(ask(&server, ""), top[..10]);
    for (count, shown) in [("1", 1), ("3", 3), ("12", 12), ("13", 12), ("9007199254740991", 12)] {
        assert_eq!(ask(&server, &format!("COUNT {count}")), top[..shown], "COUNT {count}");
    }
    assert_eq!(ask(&server, "count 2"), top[..2]);
}

#[test]
fn a_key_is_shown_as_its_bytes() {
    let server = Server::start();
    let keys: [&[u8]; 6] = [b"", b"\0", b"\r\n+OK\r\n", b"%s%n", b"\xff\xfe", &[b'a'; 64]];
    for (index, key) in keys.iter().enumerate() {
        deny(&server, key, keys.len() - index);
    }
    let expected: Vec<Line> =
        keys.iter().zip((1..=6).rev()).map(|(k, n)| (k.to_vec(), n, 0)).collect();
    assert_eq!(ask(&server, ""), expected);
}

#[test]
fn a_long_name_is_cut_and_marked_and_still_counts_for_itself() {
    let server = Server::start();
    let start = "n".repeat(64);
    for (end, times) in [("", 4), ("x", 3), ("y", 2), (&"z".repeat(100_000), 1)] {
        deny(&server, format!("{start}{end}"), times);
    }
    let cut = format!("{start}...");
    assert_eq!(
        denied(&server),
        [format!("{start} 4"), format!("{cut} 3"), format!("{cut} 2"), format!("{cut} 1")]
    );
}

#[test]
fn the_reply_is_an_array_of_arrays_of_three() {
    let server = Server::start();
    deny(&server, "k", 2);
    let reply = "*1\r\n*3\r\n$1\r\nk\r\n:2\r\n:0\r\n";
    let mut wire = server.wire();
    assert_eq!(wire.ask("RL.DENIED"), reply);
    assert!(wire.ask("HELLO 3").starts_with('%'));
    assert_eq!(wire.ask("RL.DENIED"), reply);
    assert_eq!(wire.ask("RL.DENIED RESET"), "+OK\r\n");
    assert_eq!(wire.ask("RL.DENIED"), "*0\r\n");
}

#[test]
fn among_very_many_keys_those_denied_most_are_found_within_their_bounds() {
    let server = Server::start();
    // 40 keys of 50 denials among 2000 keys of one: 50 of 4000 is more than one in 512.
    let mut denials = 0;
    for round in 0..50 {
        for heavy in 0..40 {
            deny(&server, format!("heavy{heavy}"), 1);
            deny(&server, format!("light{}", round * 40 + heavy), 1);
            denials += 2;
        }
    }
    let listed = ask(&server, "COUNT 1000");
    assert_eq!(listed.len(), 512, "the summary is full");
    assert!(listed.windows(2).all(|pair| pair[0].1 >= pair[1].1), "the most denied come first");
    for (name, count, error) in &listed {
        let truly = if name.starts_with(b"heavy") { 50 } else { 1 };
        let bounds = count - error..=*count;
        assert!(bounds.contains(&truly), "{}: {bounds:?}", String::from_utf8_lossy(name));
        assert!(*error <= denials / 512, "{error}");
    }
    assert!(listed[..40].iter().all(|(name, ..)| name.starts_with(b"heavy")), "{listed:?}");
}

// --- Resets and errors -----------------------------------------------------------------------------

#[test]
fn a_reset_forgets_and_counting_begins_anew() {
    let server = Server::start();
    deny(&server, "a", 3);
    assert_eq!(server.run::<String>("RL.DENIED RESET"), "OK");
    assert!(denied(&server).is_empty());
    deny(&server, "b", 1);
    deny(&server, "a", 2);
    assert_eq!(denied(&server), ["a 2", "b 1"]);
    assert_eq!(server.run::<String>("RL.DENIED reset"), "OK");
    assert_eq!(server.run::<String>("RL.DENIED RESET"), "OK");
    assert!(denied(&server).is_empty());
}

#[test]
fn a_bad_call_is_refused_and_forgets_nothing() {
    let server = Server::start();
    deny(&server, "k", 2);
    for (words, named) in [
        ("COUNT", "COUNT needs a value"),
        ("COUNT 0", "COUNT '0'"),
        ("COUNT -1", "COUNT '-1'"),
        ("COUNT 01", "COUNT '01'"),
        ("COUNT x", "COUNT 'x'"),
        ("COUNT 9007199254740992", "from 1 to 9007199254740991"),
        ("COUNT 5 COUNT 5", "'COUNT'"),
        ("COUNT 5 RESET", "'RESET'"),
        ("RESET COUNT 5", "'COUNT'"),
        ("RESET RESET", "'RESET'"),
        ("5", "'5'"),
        ("k", "'k'"),
    ] {
        let error = server.error(&format!("RL.DENIED {words}"));
        assert!(error.starts_with("ERR ") && error.contains(named), "{words}: {error}");
    }
    assert_eq!(denied(&server), ["k 2"]);
}

// --- What it leaves alone --------------------------------------------------------------------------

#[test]
fn it_writes_and_announces_nothing() {
    let server = announcing_server();
    server.slide("k 60s 1 AT 1000000");
    deny(&server, "k", 1);
    leaves_everything(&server, "RL.DENIED", || {
        assert_eq!(denied(&server), ["k 1"]);
        server.does("RL.DENIED RESET");
    });
    assert!(events(&server, "RL.DENIED").is_empty());
    assert!(events(&server, "RL.DENIED RESET").is_empty());
    assert_eq!(events(&server, "RL.SLIDE k 60s 0"), ["rl.denied k"]);
}

#[test]
fn it_is_not_replicated_and_a_replica_answers_of_itself() {
    let primary = primary();
    let replica = replica_of(&primary, Setup::new());
    deny(&primary, "k", 3);
    primary.slide("admitted 60s 1");
    primary.slide("admitted 60s 1 FORCE");
    wait_for_replicas(&primary, 1);
    assert_eq!(replica.run::<i64>("EXISTS admitted"), 1, "the replica follows");
    assert!(denied(&replica).is_empty());
    replica.does("RL.DENIED RESET");
    assert_eq!(denied(&primary), ["k 3", "admitted 1"]);
}

#[test]
fn it_is_not_persisted() {
    let mut server = Setup::new().with_aof().start();
    server.slide("k 1h 1");
    deny(&server, "k", 3);
    assert_eq!(denied(&server), ["k 3"]);
    server.restart(Setup::new().with_aof());
    assert_eq!(server.run::<i64>("EXISTS k"), 1, "the data set is there");
    assert!(denied(&server).is_empty());
}

#[test]
fn it_is_gone_with_the_module() {
    let server = Server::start();
    deny(&server, "k", 3);
    for _ in 0..3 {
        server.does("MODULE UNLOAD rl");
        assert!(server.error("RL.DENIED").contains("unknown command"));
        server.does(&format!("MODULE LOAD {}", module_path()));
        assert!(denied(&server).is_empty());
        deny(&server, "k", 1);
        assert_eq!(denied(&server), ["k 1"]);
    }
}

#[test]
fn a_read_only_script_may_look() {
    let server = Server::start();
    if server.lacks("EVAL_RO", "eval_ro") {
        return;
    }
    deny(&server, "k", 3);
    let script = b"return redis.call('RL.DENIED')[1][2]";
    assert_eq!(server.args::<i64>(&[b"EVAL_RO".as_slice(), script, b"0"]), 3);
}
