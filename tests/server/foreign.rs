//! Keys of other types and sorted sets that the module did not write: an error, and left untouched.

use crate::dataset::leaves_everything;
use crate::harness::Server;

/// Calls that would be admitted, denied, forced, merged, or only ask.
const CALLS: [&str; 5] = ["60s 5", "60s 0", "60s 5 FORCE", "60s 5 PRECISION 10s", "60s 5 COST 0"];

/// Every call at `AT 2000000`, and a look at its answer, gets an error that starts with `start`, and
/// nothing is changed.
fn refuses(server: &Server, key: &str, what: &str, start: &str) {
    for (command, call) in CALLS.iter().flat_map(|call| [("RL.SLIDE", call), ("RL.PEEK", call)]) {
        let line = format!("{command} {key} {call} AT 2000000");
        let error = leaves_everything(server, what, || match server.try_run(&line) {
            Err(error) => error,
            Ok(reply) => panic!("{what}: {line} was answered {reply:?}"),
        });
        assert!(error.starts_with(start), "{what}: {line}: {error}");
    }
}

/// A sorted set of these entries, each as `score member`, is refused and left as it is.
fn refuses_set(server: &Server, entries: &[&str]) {
    server.does("DEL k");
    server.plant("k", entries);
    server.does("PEXPIRE k 600000");
    refuses(server, "k", &format!("{entries:?}"), "ERR ");
}

#[test]
fn every_other_type_is_wrong() {
    let server = Server::start();
    for (key, write) in [
        ("string", "SET string a1+1"),
        ("integer", "SET integer 17"),
        ("list", "RPUSH list 1000000 a1+1"),
        ("set", "SADD set a1+1 b10+1"),
        ("intset", "SADD intset 1 2 3"),
        ("stream", "XADD stream 1000000-0 a1+1 1"),
        ("hyperloglog", "PFADD hyperloglog a b c"),
        ("bitmap", "SETBIT bitmap 7 1"),
    ] {
        server.does(write);
        refuses(&server, key, write, "WRONGTYPE");
    }
}

#[test]
fn a_user_s_own_sorted_set_is_refused() {
    let server = Server::start();
    refuses_set(&server, &["10 alice", "20 bob", "30 carol"]);
    refuses_set(&server, &["1990000 1990000-0.123", "1995000 1995000-0.456"]);
    server.does("DEL k");
    server.does("GEOADD k 13.361389 38.115556 Palermo");
    refuses(&server, "k", "a geo set", "ERR ");
}

#[test]
fn members_of_another_form_are_refused() {
    let server = Server::start();
    for member in [
        "a",
        "1",
        "+",
        "a1",
        "a+1",
        "1+1",
        "a1+",
        "+1",
        "a1++1",
        "a1+-1",
        "a-1+1",
        "a1-1",
        "a1+1.0",
        "a1+1e3",
        "a1+1x",
        "xa1+1",
        "a1+1+1",
        "A1+1",
        "u1+1",
        "`1+1",
        "aa1+1",
        "a1+0x1",
        "a\u{661}+1",
        "a1+\u{661}",
        // A letter that is not the number of the digits.
        "a10+1",
        "b1+1",
        "c10+1",
        "t1+1",
        "j123456789+1",
        // Leading zeros.
        "b01+1",
        "b00+1",
        "a1+01",
        "a1+00",
        "c010+10",
        // Out of range.
        "a1+0",
        "a0+0",
        "a1+9223372036854775808",
        "a1+18446744073709551616",
        "a1+99999999999999999999999999",
        "t18446744073709551616+1",
        "t99999999999999999999+1",
        "u184467440737095516150+1",
    ] {
        let entry = format!("1990000 {member}");
        refuses_set(&server, &[&entry]);
    }
}

#[test]
fn members_that_are_no_text_are_refused() {
    let server = Server::start();
    let members: [&[u8]; 7] =
        [b"", b"a1+1\0", b"\0", b"a1+1\n", b"a\x001+1", b"a1+\xff", &[b'a'; 100_000]];
    for member in members {
        server.does("DEL k");
        assert_eq!(server.args::<i64>(&[b"ZADD", b"k".as_slice(), b"1990000", member]), 1);
        refuses(&server, "k", &format!("a member of {} bytes", member.len()), "ERR ");
    }
}

#[test]
fn one_foreign_member_is_found_wherever_it_matters() {
    let server = Server::start();
    // The oldest, long stale.
    refuses_set(&server, &["1000000 alice", "1990000 a1+1", "1999000 a2+1"]);
    // The newest.
    refuses_set(&server, &["1990000 a1+1", "1991000 a2+1", "1999000 alice"]);
    // The first inside the window, with a valid stale one before it.
    refuses_set(&server, &["1000000 a1+1", "1940001 alice", "1999000 a3+1"]);
    // The oldest has the newest's score.
    refuses_set(&server, &["1990000 a1+1", "1990000 alice"]);
    refuses_set(&server, &["1990000 alice", "1990000 b10+1"]);
    // A stale one between stale ones is nobody's business: it is never looked at.
    server.does("DEL k");
    server.plant("k", &["1000000 a1+1", "1000001 alice", "1000002 a3+1", "1990000 a4+1"]);
    assert_eq!(server.slide("k 60s 5 COST 0 AT 2000000"), [1, 5, 4, 0, 50_000, 60_000]);
}

#[test]
fn trimming_stops_before_a_foreign_member() {
    let server = Server::start();
    server.plant("k", &["1000000 a1+1", "1000001 alice", "1000002 a3+1", "1990000 a4+1"]);
    assert_eq!(server.slide("k 60s 5 AT 2000000"), [1, 5, 3, 0, 60_000, 60_000]);
    // It has become the oldest, and the next call finds it.
    assert_eq!(
        server.entries("k"),
        ["1000001 alice", "1000002 a3+1", "1990000 a4+1", "2000000 a5+1"]
    );
    refuses(&server, "k", "a foreign member left by a trim", "ERR ");
}

#[test]
fn the_first_entry_of_each_window_is_checked() {
    let server = Server::start();
    server.plant("k", &["1000000 a1+1", "1990000 alice", "1999999 a3+1"]);
    let ask = |windows: &str| server.try_run(&format!("RL.SLIDE k {windows} COST 0 AT 2000000"));
    assert!(ask("1s 5").is_ok());
    for windows in ["60s 5", "1s 5 60s 5", "60s 5 1s 5", "1s 5 2s 5 60s 5 1h 5"] {
        assert!(ask(windows).unwrap_err().starts_with("ERR "), "{windows}");
    }
}

#[test]
fn an_entry_met_on_the_way_to_the_wait_is_checked() {
    let server = Server::start();
    // 2 units must leave: whether the second entry is enough cannot be told without reading it.
    server.plant("k", &["1950000 a1+1", "1960000 alice", "1970000 a3+1"]);
    let error = leaves_everything(&server, "a denial", || {
        server.error("RL.SLIDE k 60s 3 COST 2 AT 2000000")
    });
    assert!(error.starts_with("ERR "), "{error}");
}

#[test]
fn scores_that_are_no_times_are_refused() {
    let server = Server::start();
    for score in [
        "1990000.5",
        "1e-7",
        "-1",
        "-1990000",
        "-inf",
        "+inf",
        "9007199254740994",
        "1e300",
        "-1e300",
    ] {
        let entry = format!("{score} a2+1");
        refuses_set(&server, &[&entry]);
        // As the oldest or the newest of a log that is well formed otherwise, and with company in between.
        refuses_set(&server, &[&entry, "1990000 a1+1"]);
        refuses_set(&server, &[&entry, "1980000 a1+1", "1990000 a3+1"]);
    }
    refuses_set(&server, &["1000000 a1+1", "1940000.5 a2+1", "1990000 a3+1"]);
}

#[test]
fn a_usage_out_of_range_is_refused() {
    let server = Server::start();
    // 2^63 units, one more than can be.
    refuses_set(&server, &["1980000 a1+1", "1990000 s9223372036854775808+1"]);
    refuses_set(&server, &["1980000 a1+1", "1990000 t18446744073709551615+1"]);
    // Totals that fall: modulo 2^64 that is a usage out of range.
    refuses_set(&server, &["1980000 c100+1", "1990000 a5+1"]);
    // 2^63-1 is the most there can be.
    server.does("DEL k");
    server.plant("k", &["1980000 a1+1", "1990000 s9223372036854775807+1"]);
    assert_eq!(server.slide("k 60s 5 AT 2000000"), [0, 5, 0, 50_000, 50_000, 60_000]);
}

#[test]
fn the_edges_of_the_form_are_ours() {
    let server = Server::start();
    for (entry, used) in [
        ("1990000 a5+7", 7),
        ("1990000 a0+1", 1),
        ("1990000 a0+9", 9),
        ("1990000 a1+1", 1),
        ("1990000 t18446744073709551615+3", 3),
        ("1990000 t10000000000000000000+3", 3),
        ("1990000 s9999999999999999999+3", 3),
    ] {
        server.does("DEL k");
        server.plant("k", &[entry]);
        assert_eq!(
            server.slide("k 60s 10 COST 0 AT 2000000"),
            [1, 10, 10 - used, 0, 50_000, 60_000],
            "{entry}"
        );
    }
    server.does("DEL k");
    server.plant("k", &["1990000 a5+9223372036854775807"]);
    assert_eq!(server.slide("k 60s 10 COST 0 AT 2000000"), [0, 10, 0, 50_000, 50_000, 60_000]);
    server.does("DEL k");
    server.plant("k", &["0 a2+2"]);
    assert_eq!(server.slide("k 60s 10 COST 0 AT 59999"), [1, 10, 8, 0, 1, 60_000]);
    assert_eq!(server.slide("k 60s 10 COST 0 AT 60000"), [1, 10, 10, 0, 0, 60_000]);
}

#[test]
fn the_latest_score_there_can_be_is_only_far_ahead() {
    let server = Server::start();
    server.plant("k", &["9007199254740992 a2+2"]);
    assert_eq!(server.slide("k 60s 10 COST 0 AT 2000000"), [1, 10, 10, 0, 0, 60_000]);
    assert_eq!(server.slide("k 60s 10 AT 2000000"), [1, 10, 9, 0, 60_000, 60_000]);
    assert_eq!(server.entries("k"), ["2000000 a1+1"]);
}

#[test]
fn a_refused_key_works_again_once_it_is_deleted() {
    let server = Server::start();
    server.does("SET k v");
    assert!(server.error("RL.SLIDE k 60s 5").starts_with("WRONGTYPE"));
    server.does("DEL k");
    assert_eq!(server.slide("k 60s 5")[0], 1);
}
