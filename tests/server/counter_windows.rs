//! Several windows in one hash: which is reported, which stay, which go, and when the key expires.

use crate::dataset::leaves_everything;
use crate::harness::Server;

/// The windows `1m 9` to `<most>m 9`.
fn minutes(most: u32) -> String {
    (1..=most).map(|minutes| format!("{minutes}m 9")).collect::<Vec<_>>().join(" ")
}

/// The lengths of the windows stored, in minutes.
fn stored_minutes(server: &Server) -> Vec<u64> {
    let counters = server.counters("k");
    let length = |counter: &String| counter.split_once(' ').unwrap().0.parse::<u64>().unwrap();
    counters.iter().map(|counter| length(counter) / 60_000).collect()
}

#[test]
fn one_window_denies_for_all_and_none_is_charged() {
    let server = Server::start();
    let swc = |rest: &str| server.swc(&format!("k 60s 3 10m 5 {rest} AT 1200000"));
    // Admitted: the one with the fewest left is reported.
    assert_eq!(swc("COST 2"), [1, 3, 1, 0, 90_001, 60_000]);
    assert_eq!(swc("COST 1"), [1, 3, 0, 0, 100_001, 60_000]);
    // Denied: the one with the longest wait, whether it denied alone or not.
    assert_eq!(swc("COST 1"), [0, 3, 0, 60_001, 100_001, 60_000]);
    assert_eq!(swc("COST 3"), [0, 5, 2, 600_001, 1_000_001, 600_000]);
    // Never is longer than any wait.
    assert_eq!(swc("COST 4"), [0, 3, 0, -1, 100_001, 60_000]);
    assert_eq!(server.counters("k"), ["60000 1200000 3 0", "600000 1200000 3 0"]);
    assert_eq!(swc("COST 4 FORCE"), [0, 3, 0, -1, 60_000 + 51_429, 60_000]);
    assert_eq!(server.counters("k"), ["60000 1200000 7 0", "600000 1200000 7 0"]);
}

#[test]
fn a_tie_goes_to_the_window_written_first() {
    let server = Server::start();
    assert_eq!(server.swc("a 60s 5 10m 5 AT 1200000"), [1, 5, 4, 0, 60_001, 60_000]);
    assert_eq!(server.swc("b 10m 5 60s 5 AT 1200000"), [1, 5, 4, 0, 600_001, 600_000]);
    assert_eq!(server.swc("a 60s 5 10m 5 COST 6 AT 1200000")[5], 60_000);
    assert_eq!(server.swc("a 10m 5 60s 5 COST 6 AT 1200000")[5], 600_000);
}

#[test]
fn windows_are_counted_apart() {
    let server = Server::start();
    server.swc("k 60s 9 10m 9 COST 2 AT 1200000");
    server.swc("k 10m 9 COST 3 AT 1210000");
    server.swc("k 60s 9 10m 9 COST 4 AT 1260000");
    assert_eq!(server.counters("k"), ["60000 1260000 4 2", "600000 1200000 9 0"]);
    assert_eq!(server.swc("k 60s 9 AT 1290000")[..3], [1, 9, 3]);
    assert_eq!(server.swc("k 10m 9 AT 1290000")[..3], [0, 9, 0]);
}

#[test]
fn eight_windows_live_in_one_hash() {
    let server = Server::start();
    let call = format!("k {} AT 1200000", minutes(8));
    assert_eq!(server.swc(&call), [1, 9, 8, 0, 60_001, 60_000]);
    assert_eq!(server.run::<i64>("HLEN k"), 24);
    for remaining in (0..8).rev() {
        assert_eq!(server.swc(&call)[..3], [1, 9, remaining]);
    }
    assert_eq!(server.swc(&call)[0], 0);
    assert_eq!(stored_minutes(&server), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(server.counters("k").iter().all(|counter| counter.ends_with(" 9 0")));
}

#[test]
fn a_window_not_named_stays_until_it_has_passed() {
    let server = Server::start();
    let both = ["60000 1200000 1 0", "600000 1200000 1 0"];
    server.swc("k 60s 5 AT 1200000");
    server.swc("k 10m 9 AT 1200000");
    assert_eq!(server.counters("k"), both);
    server.swc("k 10m 9 AT 1319999");
    assert_eq!(server.counters("k"), [both[0], "600000 1200000 2 0"]);
    leaves_everything(&server, "what writes nothing", || {
        assert_eq!(server.swc("k 10m 0 AT 1320001")[0], 0);
        assert_eq!(server.swc("k 10m 9 COST 0 AT 1320001")[0], 1);
        server.peek("k 10m 9 AT 1320001");
    });
    server.swc("k 10m 9 AT 1320001");
    assert_eq!(server.counters("k"), ["600000 1200000 3 0"]);
}

#[test]
fn several_windows_that_have_passed_go_at_once() {
    let server = Server::start();
    server.swc("k 60s 5 2m 5 1h 5 AT 3600000");
    server.swc("k 3m 5 4m 5 AT 3600000");
    server.swc("k 1h 5 FORCE AT 4500000");
    assert_eq!(server.counters("k"), ["3600000 3600000 2 0"]);
}

#[test]
fn a_ninth_window_displaces_the_one_that_ends_first() {
    let server = Server::start();
    server.swc(&format!("k {} AT 1200000", minutes(8)));
    leaves_everything(&server, "a denial", || {
        assert_eq!(server.swc("k 9m 0 AT 1210000")[0], 0);
    });
    // The first minute ends at 1320000, the next ones at 1440000.
    assert_eq!(server.swc("k 9m 9 AT 1210000")[..3], [1, 9, 8]);
    assert_eq!(stored_minutes(&server), [2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(server.run::<i64>("HLEN k"), 24);
}

#[test]
fn the_one_that_ends_first_need_not_be_the_shortest() {
    let server = Server::start();
    server.plant_counters("k", &["3600000 0 5 5"]);
    // The hour ends at 7200000; a minute that starts now ends later.
    server.swc(&format!("k {} AT 7199000", minutes(7)));
    assert_eq!(stored_minutes(&server), [1, 2, 3, 4, 5, 6, 7, 60]);
    server.swc("k 8m 9 AT 7199000");
    assert_eq!(stored_minutes(&server), [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn new_windows_displace_none_that_the_call_names() {
    let server = Server::start();
    server.swc(&format!("k {} AT 1200000", minutes(8)));
    // Two are new, so two must go: of those not named, 2m and 3m end first.
    assert_eq!(server.swc("k 9m 9 1m 9 10m 9 AT 1210000")[..3], [1, 9, 7]);
    assert_eq!(stored_minutes(&server), [1, 4, 5, 6, 7, 8, 9, 10]);
    let eight = (21..=28).map(|minutes| format!("{minutes}m 9")).collect::<Vec<_>>().join(" ");
    assert_eq!(server.swc(&format!("k {eight} AT 1210000"))[..3], [1, 9, 8]);
    assert_eq!(stored_minutes(&server), (21..=28).collect::<Vec<_>>());
}

/// The key's expiry after a call, less the server's clock around it, lies where the documentation says.
fn expires_after(server: &Server, call: &str, left_ms: i64) {
    let before = server.now();
    server.swc(call);
    let after = server.now();
    let expiry = server.expiry(call.split_once(' ').unwrap().0);
    let bounds = before + left_ms..=after + left_ms;
    assert!(bounds.contains(&expiry), "{call}: expires at {expiry}, not in {bounds:?}");
}

#[test]
fn a_key_expires_when_its_latest_window_has_passed() {
    let server = Server::start();
    expires_after(&server, "a 60s 5 AT 1000000", 80_000);
    expires_after(&server, "b 60s 5 AT 960000", 120_000);
    expires_after(&server, "c 60s 5 AT 1019999", 60_001);
    expires_after(&server, "d 60s 5 1h 5 2m 5 AT 1000000", 6_200_000);
    expires_after(&server, "e 3650d 5 AT 0", 630_720_000_000);
    expires_after(&server, "f 60s 0 FORCE AT 1000000", 80_000);
    let ahead = (server.now() / 60_000 + 10) * 60_000;
    expires_after(&server, &format!("g 60s 5 AT {}", ahead + 100), 119_900);
}

#[test]
fn a_time_of_its_own_that_runs_slower_moves_the_expiry_when_a_window_is_left() {
    let server = Server::start();
    server.swc("k 60s 50 AT 960000");
    server.does("PEXPIRE k 30000");
    expires_after(&server, "k 60s 50 AT 970000", 110_000);
    // Late in the window less than a window is needed.
    server.does("PEXPIRE k 61000");
    let expiry = server.expiry("k");
    server.swc("k 60s 50 AT 1019999");
    assert_eq!(server.expiry("k"), expiry);
}

#[test]
fn an_expiry_that_others_took_or_brought_forward_is_set_right() {
    let server = Server::start();
    server.swc("k 3650d 50");
    let expiry = server.expiry("k");
    for meddling in ["PEXPIRE k 30000", "PERSIST k"] {
        server.does(meddling);
        assert_eq!(server.swc("k 3650d 50")[0], 1);
        assert_eq!(server.expiry("k"), expiry, "{meddling}");
    }
}

#[test]
fn only_a_window_that_starts_moves_the_expiry() {
    let server = Server::start();
    server.swc("k 60s 5 AT 960000");
    for ms in [100_000, 5_000_000] {
        server.does(&format!("PEXPIRE k {ms}"));
        let expiry = server.expiry("k");
        assert_eq!(server.swc("k 60s 50 AT 970000")[0], 1);
        assert_eq!(server.swc("k 60s 0 FORCE AT 1019999")[0], 0);
        assert_eq!(server.swc("k 60s 50 AT 900000")[0], 1);
        assert_eq!(server.expiry("k"), expiry);
        // Denials and questions of a later window do not start it.
        assert_eq!(server.swc("k 60s 0 AT 1020000")[0], 0);
        assert_eq!(server.swc("k 60s 50 COST 0 AT 1020000")[0], 1);
        assert_eq!(server.expiry("k"), expiry);
    }
    expires_after(&server, "k 60s 50 AT 1030000", 110_000);
    expires_after(&server, "k 60s 50 AT 1990000", 110_000);
}

#[test]
fn a_longer_window_not_named_keeps_the_key() {
    let server = Server::start();
    expires_after(&server, "k 1h 5 AT 3600000", 7_200_000);
    expires_after(&server, "k 60s 5 AT 3700000", 7_100_000);
    expires_after(&server, "k 60s 5 AT 3720000", 7_080_000);
    // It has passed: nothing keeps the key for it.
    expires_after(&server, "k 60s 5 AT 10800001", 119_999);
    assert_eq!(stored_minutes(&server), [1]);
}

#[test]
fn a_late_request_expires_the_key_after_the_latest_window_all_the_same() {
    let server = Server::start();
    server.swc("k 60s 5 AT 1200000");
    // The stored minute runs until 1320000, the ten that start for this call until 1800000.
    expires_after(&server, "k 60s 5 10m 5 AT 1100000", 700_000);
    server.swc("late 5m 5 AT 1200000");
    expires_after(&server, "late 60s 5 AT 1100000", 700_000);
}
