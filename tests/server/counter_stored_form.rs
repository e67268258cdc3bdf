//! The stored form of a counter: three plain fields a window, rotated as time goes on, cut where the
//! numbers end, and not believed when a clock far ahead wrote them.

use std::collections::BTreeMap;

use crate::harness::{Server, Setup, compact_encoding, compact_fields_option, module_path};

#[test]
fn a_window_is_three_fields() {
    let server = Server::start();
    server.swc("k 60s 9 COST 2 AT 970000");
    server.swc("k 60s 9 COST 3 AT 980000");
    server.swc("k 60s 9 COST 5 AT 980000");
    let fields: BTreeMap<String, String> = server.run("HGETALL k");
    let expected = [("60000:start", "960000"), ("60000:current", "5"), ("60000:previous", "0")];
    let expected: BTreeMap<_, _> =
        expected.into_iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    assert_eq!(fields, expected, "the last was denied");
    assert_eq!(server.run::<String>("TYPE k"), "hash");
}

#[test]
fn windows_are_named_by_their_milliseconds_and_aligned_to_the_epoch() {
    let server = Server::start();
    for (window, at, counter) in [
        ("61001ms", 1_000_000, "61001 976016 1 0"),
        ("7m", 1_000_000, "420000 840000 1 0"),
        ("1h", 1_000_000, "3600000 0 1 0"),
        ("7d", 604_800_000, "604800000 604800000 1 0"),
        ("3650d", 1_796_037_190_903_i64, "315360000000 1576800000000 1 0"),
    ] {
        server.swc(&format!("{window} {window} 9 AT {at}"));
        assert_eq!(server.counters(window), [counter]);
    }
}

#[test]
fn a_window_on_the_current_count_becomes_the_previous_one() {
    let server = Server::start();
    for (at, counter) in [
        (1_019_999, "60000 960000 6 8"),
        (1_020_000, "60000 1020000 3 3"),
        (1_079_999, "60000 1020000 3 3"),
        (1_080_000, "60000 1080000 3 0"),
        (1_140_000, "60000 1140000 3 0"),
        (9_000_000, "60000 9000000 3 0"),
        // A late one counts as the start.
        (959_999, "60000 960000 6 8"),
        (0, "60000 960000 6 8"),
    ] {
        server.does("DEL k");
        server.plant_counters("k", &["60000 960000 3 8"]);
        assert_eq!(server.swc(&format!("k 60s 100 COST 3 AT {at}"))[0], 1);
        assert_eq!(server.counters("k"), [counter], "at {at}");
    }
}

/// The start of a minute some way ahead of the server's clock.
fn minute_ahead(server: &Server) -> i64 {
    (server.now() / 60_000 + 30) * 60_000
}

#[test]
fn a_start_later_than_one_window_ahead_counts_as_absent() {
    let server = Server::start();
    let at = minute_ahead(&server);
    let start = at + 60_000;
    let fresh_start = at - 60_000;
    for (at, remaining, counter) in [
        // Exactly one window ahead it counts.
        (at, 10 - 7 - 1, format!("60000 {start} 4 4")),
        (at + 1, 10 - 7 - 1, format!("60000 {start} 4 4")),
        (at - 1, 9, format!("60000 {fresh_start} 1 0")),
    ] {
        server.does("DEL k");
        server.plant_counters("k", &[format!("60000 {start} 3 4")]);
        let peeked = server.peek(&format!("k 60s 10 AT {at}"));
        assert_eq!(peeked[..3], [1, 10, remaining + 1], "at {at}");
        assert_eq!(server.swc(&format!("k 60s 10 AT {at}"))[..3], [1, 10, remaining], "at {at}");
        assert_eq!(server.counters("k"), [counter], "at {at}");
    }
}

#[test]
fn the_server_s_clock_counts_where_it_is_later() {
    let server = Server::start();
    let hour = server.now() / 3_600_000 * 3_600_000;
    for (start, remaining) in [(hour, 3), (hour + 3_600_000, 3), (hour + 3 * 3_600_000, 10)] {
        server.does("DEL k");
        server.plant_counters("k", &[format!("3600000 {start} 3 4")]);
        assert_eq!(server.peek("k 1h 10 AT 3600000")[..3], [1, 10, remaining], "{start}");
        assert_eq!(server.swc("k 1h 10 COST 3 AT 3600000")[..3], [1, 10, remaining - 3], "{start}");
    }
    assert_eq!(server.counters("k"), ["3600000 3600000 3 0"]);
    assert!(server.expiry("k") > 0, "a counter that starts afresh expires");
}

#[test]
fn a_denial_leaves_what_is_far_ahead() {
    let server = Server::start();
    let start = minute_ahead(&server) + 60_000_000;
    let counter = format!("60000 {start} 3 4");
    server.plant_counters("k", &[&counter]);
    assert_eq!(server.swc("k 60s 5 COST 6"), [0, 5, 5, -1, 0, 60_000]);
    assert_eq!(server.counters("k"), [counter]);
    assert_eq!(server.swc("k 60s 5 COST 6 FORCE AT 960000")[..4], [0, 5, 0, -1]);
    assert_eq!(server.counters("k"), ["60000 960000 6 0"]);
}

#[test]
fn one_window_far_ahead_does_not_touch_another() {
    let server = Server::start();
    let start = minute_ahead(&server) + 60_000_000;
    server.plant_counters("k", &[format!("60000 {start} 9 9"), "600000 600000 2 0".into()]);
    assert_eq!(server.swc("k 60s 9 10m 9 AT 960000")[..3], [1, 9, 6]);
    assert_eq!(server.counters("k"), ["60000 960000 1 0", "600000 600000 3 0"]);
}

#[test]
fn forced_charges_are_cut_to_fit() {
    let server = Server::start();
    server.plant_counters("k", &["60000 960000 9223372036854775000 0"]);
    let force = |cost: u32| server.swc(&format!("k 60s 5 COST {cost} FORCE AT 970000"));
    assert_eq!(force(1000), [0, 5, 0, -1, 110_000, 60_000]);
    let full = "60000 960000 9223372036854775807 0";
    assert_eq!(server.counters("k"), [full]);
    // Cut to 0 it writes nothing.
    let dirty = server.dirty();
    assert_eq!(force(5), [0, 5, 0, 110_000, 110_000, 60_000]);
    assert_eq!(server.counters("k"), [full]);
    assert_eq!(server.dirty(), dirty);
    // The next window has room again.
    assert_eq!(server.swc("k 60s 5 COST 5 FORCE AT 1020000")[..4], [0, 5, 0, 108_001]);
    assert_eq!(server.counters("k"), ["60000 1020000 5 9223372036854775807"]);
}

#[test]
fn a_full_counter_beside_one_with_room() {
    let server = Server::start();
    let full = "60000 960000 9223372036854775807 9223372036854775807";
    server.plant_counters("k", &[full, "600000 600000 1 0"]);
    // Both counters full are almost 2^64 units: usage does not wrap into room.
    let most = 9_007_199_254_740_991_i64;
    assert_eq!(
        server.swc(&format!("k 60s {most} COST 0 AT 960000"))[..3],
        [0, most, 0],
        "nothing wraps"
    );
    assert_eq!(server.swc("k 60s 5 10m 5 COST 2 FORCE AT 960000")[..3], [0, 5, 0]);
    assert_eq!(server.counters("k"), [full, "600000 600000 3 0"]);
}

#[test]
fn both_encodings_hold_and_answer_the_same() {
    let tell = |most: u32| {
        let server = Setup::new().option(&compact_fields_option(most)).start();
        let mut told = Vec::new();
        for i in 0..400_u64 {
            let at = 1_200_000 + 1_997 * i + 130_000 * (i / 100);
            let windows = ["60s 20", "60s 20 2m 35", "10m 100", "10s 6 60s 25"][i as usize % 4];
            let force = if i % 7 == 0 { "FORCE" } else { "" };
            let cost = i * i % 7;
            let reply = server.swc(&format!("k {windows} COST {cost} {force} AT {at}"));
            let refunded = if i % 5 == 0 { server.refund(&format!("k 3 AT {at}")) } else { 0 };
            told.push((reply, refunded, server.counters("k")));
        }
        (told, server.run::<String>("OBJECT ENCODING k"))
    };
    let [compact, table] = [512, 0].map(tell);
    assert_eq!(compact.1, compact_encoding());
    assert_eq!(table.1, "hashtable");
    let admitted = compact.0.iter().filter(|(reply, ..)| reply[0] == 1).count();
    assert!((40..360).contains(&admitted), "{admitted} of 400 admitted: both verdicts are common");
    assert_eq!(compact.0, table.0);
}

#[test]
fn what_the_module_wrote_is_read_without_it_and_again_with_it() {
    let server = Server::start();
    let elsewhere = Setup::new().without_module().start();
    server.swc("k 60s 9 COST 2 AT 970000");
    let payload: Vec<u8> = server.run("DUMP k");
    elsewhere.args::<()>(&[b"RESTORE".as_slice(), b"k", b"60000", &payload]);
    assert_eq!(elsewhere.counters("k"), ["60000 960000 2 0"]);
    elsewhere.does(&format!("MODULE LOAD {}", module_path()));
    assert_eq!(elsewhere.swc("k 60s 9 AT 980000")[..3], [1, 9, 6]);
}
