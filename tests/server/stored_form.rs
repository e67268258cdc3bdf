//! The stored form: one member a request, its score, its running total, and what happens where the
//! total's digits grow, where it wraps, and where forced charges reach the end of the numbers.

use crate::harness::{Server, Setup, compact_encoding, compact_entries_option};

#[test]
fn one_admitted_request_is_one_member() {
    let server = Server::start();
    server.slide("k 60s 20 AT 1000000");
    server.slide("k 60s 20 AT 1000000");
    server.slide("k 60s 20 COST 5 AT 1000514");
    server.slide("k 60s 20 COST 3 AT 1001097");
    server.slide("k 60s 20 COST 11 AT 1001098");
    let log = ["1000000 a1+1", "1000000 a2+1", "1000514 a7+5", "1001097 b10+3"];
    assert_eq!(server.entries("k"), log, "the last was denied");
    assert_eq!(server.run::<String>("TYPE k"), "zset");
    assert_eq!(server.run::<i64>("ZCARD k"), 4);
}

#[test]
fn members_of_one_millisecond_stay_in_the_order_of_their_totals() {
    for option in encodings() {
        let server = Setup::new().option(&option).start();
        for _ in 0..101 {
            server.slide("k 60s 200 AT 1000000");
        }
        let expected: Vec<String> =
            (1..=101).map(|total| format!("1000000 {}", member(total, 1))).collect();
        assert_eq!(server.entries("k"), expected, "{option}");
    }
}

#[test]
fn the_letter_counts_the_digits_of_the_total() {
    let server = Server::start();
    for digits in 1..=19 {
        let total = 10_u64.pow(digits) - 1;
        server.does("DEL k");
        server.plant("k", &[format!("1000000 {}", member(total, 1))]);
        assert_eq!(server.slide("k 60s 9 AT 1000000"), [1, 9, 7, 0, 60_000, 60_000]);
        let expected = [total, total + 1].map(|total| format!("1000000 {}", member(total, 1)));
        assert_eq!(server.entries("k"), expected);
    }
}

#[test]
fn a_total_that_wraps_is_stamped_after_the_newest() {
    let server = Server::start();
    let newest = "1000000 t18446744073709551610+5";
    for (at, stamp) in [
        (1_000_000, 1_000_001),
        (999_000, 1_000_001),
        (1_000_001, 1_000_001),
        (1_000_700, 1_000_700),
    ] {
        server.does("DEL k");
        server.plant("k", &[newest]);
        let reply = server.slide(&format!("k 60s 20 COST 10 AT {at}"));
        assert_eq!(reply, [1, 20, 5, 0, stamp + 60_000 - at, 60_000]);
        assert_eq!(server.entries("k"), [newest.to_string(), format!("{stamp} a4+10")]);
    }
    // The count goes on over the wrap.
    assert_eq!(server.slide("k 60s 20 COST 6 AT 1000700"), [0, 20, 5, 59_300, 60_000, 60_000]);
    assert_eq!(server.slide("k 60s 20 COST 5 AT 1000700"), [1, 20, 0, 0, 60_000, 60_000]);
    assert_eq!(server.slide("k 60s 20 COST 6 AT 1000700"), [0, 20, 0, 60_000, 60_000, 60_000]);
    assert_eq!(server.slide("k 60s 20 COST 5 AT 1060000"), [1, 20, 0, 0, 60_000, 60_000]);
}

#[test]
fn a_wrap_without_wrapping_is_no_wrap() {
    let server = Server::start();
    server.plant("k", &["1000000 t18446744073709551610+5"]);
    server.slide("k 60s 20 COST 5 AT 1000000");
    assert_eq!(server.entries("k")[1], "1000000 t18446744073709551615+5");
    // The next total is 0, a valid one.
    server.slide("k 60s 20 COST 1 AT 1000000");
    assert_eq!(server.entries("k")[2], "1000001 a0+1");
    server.slide("k 60s 20 COST 3 AT 1000000");
    assert_eq!(server.entries("k")[3], "1000001 a3+3");
    assert_eq!(server.slide("k 60s 20 COST 0 AT 1000001"), [1, 20, 6, 0, 60_000, 60_000]);
}

#[test]
fn a_wrap_with_precision_is_stamped_after_the_newest_too() {
    let server = Server::start();
    server.plant("k", &["1010000 t18446744073709551610+5"]);
    assert_eq!(server.slide("k 60s 20 COST 10 PRECISION 10s AT 1009000")[..3], [1, 20, 5]);
    let log = server.entries("k");
    let (stamp, newest) = log.last().unwrap().split_once(' ').unwrap();
    let stamp: i64 = stamp.parse().unwrap();
    assert!((1_010_001..=1_020_000).contains(&stamp), "{log:?}");
    assert!(newest.starts_with("a4+"), "{log:?}");
    // However the two are stored, 15 units are used while both count.
    assert_eq!(server.slide("k 60s 15 COST 0 AT 1010000")[..3], [1, 15, 0]);
    assert_eq!(server.slide("k 60s 14 COST 0 AT 1010000")[0], 0);
    assert_eq!(server.slide("k 60s 20 COST 2 PRECISION 10s AT 1010000")[..3], [1, 20, 3]);
    assert!(server.expiry("k") > server.now());
}

#[test]
fn forced_charges_are_cut_to_fit() {
    let server = Server::start();
    let log = ["1000000 a7+7", "1010000 s9223372036854775000+9223372036854774993"];
    server.plant("k", &log);
    assert_eq!(server.slide("k 60s 5 COST 1000 FORCE AT 1020000"), [0, 5, 0, -1, 60_000, 60_000]);
    let cut = "1020000 s9223372036854775807+807".to_string();
    assert_eq!(server.entries("k"), [log[0].into(), log[1].into(), cut.clone()]);
    // All units are in use: the next charge is cut to 0 and writes nothing.
    let dirty = server.dirty();
    assert_eq!(server.slide("k 60s 5 COST 5 FORCE AT 1030000"), [0, 5, 0, 50_000, 50_000, 60_000]);
    assert_eq!(server.entries("k"), [log[0].into(), log[1].into(), cut]);
    assert_eq!(server.dirty(), dirty);
}

#[test]
fn forced_charges_fit_beside_stale_units_still_stored() {
    let server = Server::start();
    server.plant(
        "k",
        &["1000000 s9223372036854775800+9223372036854775800", "1060000 s9223372036854775801+1"],
    );
    // The first entry has left the window; one unit is used.
    assert_eq!(server.slide("k 60s 5 COST 0 AT 1070000"), [1, 5, 4, 0, 50_000, 60_000]);
    assert_eq!(server.slide("k 60s 5 COST 9 FORCE AT 1070000"), [0, 5, 0, -1, 60_000, 60_000]);
    assert_eq!(server.entries("k").last().unwrap(), "1070000 s9223372036854775807+6");
}

#[test]
fn a_cut_charge_merges_with_precision() {
    let server = Server::start();
    server.plant("k", &["1000000 s9223372036854775800+9223372036854775800"]);
    server.slide("k 60s 5 COST 100 FORCE PRECISION 1s AT 999500");
    assert_eq!(server.entries("k"), ["1000000 s9223372036854775807+9223372036854775807"]);
    let dirty = server.dirty();
    server.slide("k 60s 5 COST 100 FORCE PRECISION 1s AT 999500");
    assert_eq!(server.dirty(), dirty, "a charge of nothing writes nothing");
}

#[test]
fn both_encodings_hold_and_answer_the_same() {
    let tell = |option: &str| {
        let server = Setup::new().option(option).start();
        let mut replies = Vec::new();
        let mut logs = Vec::new();
        for i in 0..300_u64 {
            // Steps and costs without a pattern that the limit shares; every 50th step empties the window.
            let at = 1_000_000 + 997 * i + 61_000 * (i / 50);
            let (cost, limit) = (i * i % 7, 40 + i % 5);
            let options = ["", "FORCE", "PRECISION 3s", "PRECISION 500ms FORCE"][i as usize % 4];
            let call = format!("k 60s {limit} 10s 31 COST {cost} {options} AT {at}");
            replies.push(server.slide(&call));
            logs.push(server.entries("k"));
        }
        (replies, logs, server.run::<String>("OBJECT ENCODING k"))
    };
    let [compact, skiplist] = encodings().map(|option| tell(&option));
    assert_eq!(compact.2, compact_encoding());
    assert_eq!(skiplist.2, "skiplist");
    let admitted = compact.0.iter().filter(|reply| reply[0] == 1).count();
    assert!((30..270).contains(&admitted), "{admitted} of 300 admitted: both verdicts are common");
    assert_eq!(compact.0, skiplist.0);
    assert_eq!(compact.1, skiplist.1);
}

#[test]
fn a_log_outgrows_the_compact_encoding() {
    let server = Server::start();
    for i in 0..200 {
        let reply = server.slide(&format!("k 60s 200 AT {}", 1_000_000 + i));
        assert_eq!(reply[..3], [1, 200, 199 - i]);
    }
    assert_eq!(server.run::<String>("OBJECT ENCODING k"), "skiplist");
    assert_eq!(server.slide("k 60s 200 AT 1000200"), [0, 200, 0, 59_800, 59_999, 60_000]);
    assert_eq!(server.slide("k 60s 200 COST 150 AT 1000200"), [0, 200, 0, 59_949, 59_999, 60_000]);
}

/// The options for the compact encoding and for the skiplist.
fn encodings() -> [String; 2] {
    [128, 0].map(compact_entries_option)
}

fn member(total: u64, cost: u64) -> String {
    let digits = total.to_string();
    let letter = (b'a' + digits.len() as u8 - 1) as char;
    format!("{letter}{digits}+{cost}")
}
