//! Entries that have left are removed a bounded number at a time; a log that is all stale and large,
//! or that comes from a clock far ahead, is dropped whole. Counting never depends on any of it.

use std::time::Instant;

use crate::harness::{Server, Setup, compact_entries_option};

/// Entries of cost 1 with the totals 1 to `count`, one a millisecond from 1000001 on.
fn entries(count: usize) -> Vec<String> {
    let entry = |total: usize| {
        let digits = total.to_string();
        format!("{} {}{digits}+1", 1_000_000 + total, (b'a' + digits.len() as u8 - 1) as char)
    };
    (1..=count).map(entry).collect()
}

/// Plants entries under an expiry such as calls with a window of 60 s would have set.
fn plant(server: &Server, key: &str, planted: &[String]) {
    server.plant(key, planted);
    server.does(&format!("PEXPIRE {key} 65000"));
}

#[test]
fn an_admission_removes_at_most_128_stale_entries() {
    for option in [0, 4096].map(compact_entries_option) {
        let server = Setup::new().option(&option).start();
        let mut planted = entries(500);
        planted.push("1990000 c501+1".into());
        plant(&server, "k", &planted);
        for (i, (members, oldest)) in [
            (374, "1000129 c129+1"),
            (247, "1000257 c257+1"),
            (120, "1000385 c385+1"),
            (5, "1990000 c501+1"),
        ]
        .into_iter()
        .enumerate()
        {
            // Only the fresh entry and the admitted ones count, however many stale ones are stored.
            let reply = server.slide("k 60s 9 AT 2000000");
            assert_eq!(reply, [1, 9, 7 - i as i64, 0, 60_000, 60_000]);
            assert_eq!(server.run::<i64>("ZCARD k"), members);
            assert_eq!(server.entries("k")[0], oldest);
        }
        assert_eq!(server.entries("k").last().unwrap(), "2000000 c505+1");
    }
}

#[test]
fn only_what_has_left_the_longest_window_is_removed() {
    let server = Server::start();
    let planted =
        ["1000000 a1+1", "1040000 a2+1", "1040001 a3+1", "1099999 a4+1"].map(String::from);
    plant(&server, "k", &planted);
    assert_eq!(server.slide("k 60s 9 1s 1 AT 1100000"), [0, 1, 0, 999, 999, 1_000]);
    assert_eq!(server.entries("k"), planted);
    assert_eq!(server.slide("k 1s 9 60s 9 AT 1100000"), [1, 9, 6, 0, 60_000, 60_000]);
    assert_eq!(server.entries("k"), ["1040001 a3+1", "1099999 a4+1", "1100000 a5+1"]);
}

#[test]
fn a_denial_and_cost_0_remove_nothing() {
    let server = Server::start();
    let mut planted = entries(300);
    planted.push("1990000 c301+1".into());
    plant(&server, "k", &planted);
    assert_eq!(server.slide("k 60s 1 AT 2000000"), [0, 1, 0, 50_000, 50_000, 60_000]);
    assert_eq!(server.slide("k 60s 1 COST 0 AT 2000000"), [1, 1, 0, 0, 50_000, 60_000]);
    assert_eq!(server.entries("k"), planted);
    server.slide("k 60s 1 FORCE AT 2000000");
    assert_eq!(server.run::<i64>("ZCARD k"), 302 - 128, "a forced charge trims");
}

#[test]
fn a_large_log_whose_newest_has_left_is_dropped_whole() {
    let server = Setup::new().with_aof().start();
    plant(&server, "k", &entries(129));
    let mut journal = server.journal();
    assert_eq!(server.slide("k 60s 9 COST 10 AT 2000000"), [0, 9, 9, -1, 0, 60_000]);
    assert_eq!(server.run::<i64>("ZCARD k"), 129);
    assert!(journal.commands().is_empty(), "a denial drops nothing");

    assert_eq!(server.slide("k 60s 9 COST 2 AT 2000000"), [1, 9, 7, 0, 60_000, 60_000]);
    assert_eq!(server.entries("k"), ["2000000 a2+2"]);
    let expiry = format!("PEXPIREAT k {}", server.expiry("k"));
    assert_eq!(journal.commands(), ["MULTI", "UNLINK k", "ZADD k 2000000 a2+2", &expiry, "EXEC"]);
}

#[test]
fn a_log_is_dropped_in_the_millisecond_in_which_its_newest_leaves() {
    let server = Server::start();
    for (at, first) in [(1_060_128, "1000129 c129+1"), (1_060_129, "1060129 a1+1")] {
        server.does("DEL k");
        plant(&server, "k", &entries(129));
        assert_eq!(server.slide(&format!("k 60s 9 AT {at}"))[0], 1);
        assert_eq!(server.entries("k")[0], first, "AT {at}");
    }
}

#[test]
fn a_small_log_whose_newest_has_left_is_added_to_then_trimmed() {
    let server = Setup::new().with_aof().start();
    plant(&server, "k", &entries(128));
    let expiry = server.expiry("k");
    let mut journal = server.journal();
    assert_eq!(server.slide("k 60s 9 AT 2000000"), [1, 9, 8, 0, 60_000, 60_000]);
    assert_eq!(server.entries("k"), ["2000000 c129+1"]);
    assert_eq!(
        journal.commands(),
        ["MULTI", "ZADD k 2000000 c129+1", "ZREMRANGEBYRANK k 0 127", "EXEC"]
    );
    assert_eq!(server.expiry("k"), expiry, "the key was never gone");
}

#[test]
fn a_longer_window_in_use_stops_trimming() {
    let server = Server::start();
    let old = ["1000000 a1+1", "1000001 a2+1"].map(String::from);
    plant(&server, "k", &old);
    assert_eq!(server.slide("k 10h 9 AT 1000001"), [1, 9, 6, 0, 36_000_000, 36_000_000]);
    let long = server.expiry("k");
    server.slide("k 60s 9 AT 9000000");
    assert_eq!(server.run::<i64>("ZCARD k"), 4, "the long window still counts all");
    assert_eq!(server.expiry("k"), long);
    // As if the long window had not been used for its own length.
    server.does("PEXPIRE k 70000");
    server.slide("k 60s 9 AT 9000001");
    assert_eq!(server.entries("k"), ["9000000 a4+1", "9000001 a5+1"]);
}

#[test]
fn a_longer_window_in_use_stops_dropping() {
    let server = Server::start();
    plant(&server, "k", &entries(300));
    assert_eq!(server.slide("k 10h 1000 AT 1000300")[2], 699);
    assert_eq!(server.slide("k 60s 9 AT 9000000"), [1, 9, 8, 0, 60_000, 60_000]);
    assert_eq!(server.run::<i64>("ZCARD k"), 302);
    assert_eq!(server.slide("k 10h 1000 AT 9000000")[2], 697);
}

#[test]
fn an_admission_drops_a_log_from_far_ahead() {
    let server = Setup::new().with_aof().start();
    let ahead = server.now() + 3_600_000;
    plant(&server, "k", &[format!("{} a6+6", ahead - 1), format!("{ahead} a7+1")]);
    let mut journal = server.journal();
    // Exactly twice the window ahead of the time given is not far: the log counts, the request waits.
    let at = ahead - 120_000;
    assert_eq!(server.slide(&format!("k 60s 7 AT {at}")), [0, 7, 0, 179_999, 180_000, 60_000]);
    // One millisecond further: a denial answers as if there were no log, and leaves it.
    let at = at - 1;
    assert_eq!(server.slide(&format!("k 60s 7 COST 8 AT {at}")), [0, 7, 7, -1, 0, 60_000]);
    assert_eq!(server.slide(&format!("k 60s 7 COST 0 AT {at}")), [1, 7, 7, 0, 0, 60_000]);
    assert_eq!(server.run::<i64>("ZCARD k"), 2);
    assert!(journal.commands().is_empty());
    // An admission starts afresh, with a total of its own.
    assert_eq!(server.slide(&format!("k 60s 7 COST 3 AT {at}")), [1, 7, 4, 0, 60_000, 60_000]);
    assert_eq!(server.entries("k"), [format!("{at} a3+3")]);
    let expected = [format!("ZADD k {at} a3+3"), format!("PEXPIREAT k {}", server.expiry("k"))];
    let commands = journal.commands();
    assert_eq!(commands[2..4], expected, "{commands:?}");
    assert!(["UNLINK k", "DEL k"].contains(&commands[1].as_str()), "{commands:?}");
}

#[test]
fn the_longest_window_and_the_later_clock_tell_what_is_far_ahead() {
    let server = Server::start();
    let now = server.now();
    let planted = format!("{} a1+1", now + 100_000);
    server.plant("k", &[planted]);
    server.does("PEXPIRE k 12000");
    // Late requests compare with the server's clock: 100 s ahead of it is within twice 60 s.
    assert_eq!(server.slide("k 60s 1 AT 1000000")[..3], [0, 1, 0]);
    assert_eq!(server.slide("k 60s 1 1s 1 AT 1000000")[..3], [0, 1, 0]);
    // It is not within twice 10 s.
    assert_eq!(server.slide("k 10s 1 COST 0 AT 1000000"), [1, 1, 1, 0, 0, 10_000]);
    assert_eq!(server.slide("k 10s 1 AT 1000000"), [1, 1, 0, 0, 10_000, 10_000]);
    assert_eq!(server.entries("k"), ["1000000 a1+1"]);
}

#[test]
fn a_log_is_not_far_ahead_of_a_longer_window_in_use() {
    let server = Server::start();
    let ahead = server.now() + 3_600_000;
    // An hour ahead is not far for ten hours, whatever shorter windows share the key.
    server.slide(&format!("k 10h 3 COST 2 AT {ahead}"));
    let expiry = server.expiry("k");
    assert_eq!(server.slide("k 60s 5")[..3], [1, 5, 2]);
    assert_eq!(server.slide("k 60s 1 COST 0")[..3], [0, 1, 0]);
    assert_eq!(server.entries("k"), [format!("{ahead} a2+2"), format!("{ahead} a3+1")]);
    assert_eq!(server.expiry("k"), expiry);
}

#[test]
fn force_drops_a_log_from_far_ahead_too() {
    let server = Server::start();
    plant(&server, "k", &[format!("{} a7+7", server.now() + 3_600_000)]);
    assert_eq!(server.slide("k 60s 5 COST 6 FORCE AT 1000000"), [0, 5, 0, -1, 60_000, 60_000]);
    assert_eq!(server.entries("k"), ["1000000 a6+6"]);
}

#[test]
fn logs_from_far_ahead_are_logged_at_most_once_a_second() {
    let server = Server::start();
    let silent = server.module_log().len();
    server.slide("ordinary 60s 5");
    assert_eq!(server.module_log().len(), silent, "an ordinary call logs nothing");

    let ahead = server.now() + 3_600_000;
    let start = Instant::now();
    for i in 0..200 {
        plant(&server, &format!("k{i}"), &[format!("{ahead} a1+1")]);
        assert_eq!(server.slide(&format!("k{i} 60s 5")), [1, 5, 4, 0, 60_000, 60_000]);
    }
    let seconds = start.elapsed().as_secs() as usize;
    let lines = server.module_log().len() - silent;
    assert!((1..=seconds + 1).contains(&lines), "{lines} lines in {seconds} s");
    assert!(lines < 100, "far fewer lines than calls");
}
