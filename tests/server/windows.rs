//! Several windows: admitted by all or charged by none, and which of them is reported. Also what
//! calls with different windows on one key do to each other.

use crate::harness::Server;

#[test]
fn every_window_must_admit() {
    let server = Server::start();
    let slide = |at: u32| server.slide(&format!("k 60s 2 1h 3 AT {at}"));
    assert_eq!(slide(1_000_000), [1, 2, 1, 0, 60_000, 60_000]);
    assert_eq!(slide(1_001_000), [1, 2, 0, 0, 60_000, 60_000]);
    // Only the minute denies; the hour is not charged either.
    assert_eq!(slide(1_002_000), [0, 2, 0, 58_000, 59_000, 60_000]);
    assert_eq!(server.run::<i64>("ZCARD k"), 2);
    // The third fits both and leaves 0 in both: the first written is reported.
    assert_eq!(slide(1_060_000), [1, 2, 0, 0, 60_000, 60_000]);
    // Both deny: the hour has the longer wait.
    assert_eq!(slide(1_060_001), [0, 3, 0, 3_539_999, 3_599_999, 3_600_000]);
    // Only the hour denies.
    assert_eq!(slide(1_200_000), [0, 3, 0, 3_400_000, 3_460_000, 3_600_000]);
    assert_eq!(slide(4_599_999), [0, 3, 0, 1, 60_001, 3_600_000]);
    assert_eq!(slide(4_600_000), [1, 3, 0, 0, 3_600_000, 3_600_000]);
}

#[test]
fn an_admission_reports_the_window_with_the_fewest_left() {
    let server = Server::start();
    assert_eq!(server.slide("a 60s 10 1h 5 AT 1000000"), [1, 5, 4, 0, 3_600_000, 3_600_000]);
    assert_eq!(server.slide("b 1h 10 60s 5 AT 1000000"), [1, 5, 4, 0, 60_000, 60_000]);
    assert_eq!(server.slide("c 60s 10 1h 5 COST 0"), [1, 5, 5, 0, 0, 3_600_000]);
}

#[test]
fn a_tie_goes_to_the_window_written_first() {
    let server = Server::start();
    assert_eq!(server.slide("a 60s 5 1h 5 AT 1000000"), [1, 5, 4, 0, 60_000, 60_000]);
    assert_eq!(server.slide("b 1h 5 60s 5 AT 1000000"), [1, 5, 4, 0, 3_600_000, 3_600_000]);

    // Both windows open at 1120000: one waits for the entry of 1060000, the other for that of 1000000.
    server.plant("c", &["1000000 a1+1", "1060000 a2+1"]);
    assert_eq!(server.slide("c 60s 1 120s 2 AT 1061000"), [0, 1, 0, 59_000, 59_000, 60_000]);
    assert_eq!(server.slide("c 120s 2 60s 1 AT 1061000"), [0, 2, 0, 59_000, 119_000, 120_000]);

    assert_eq!(server.slide("d 60s 1 1h 2 COST 3"), [0, 1, 1, -1, 0, 60_000]);
    assert_eq!(server.slide("d 1h 2 60s 1 COST 3"), [0, 2, 2, -1, 0, 3_600_000]);
}

#[test]
fn never_is_the_longest_wait() {
    let server = Server::start();
    server.plant("k", &["1000000 a9+9"]);
    assert_eq!(
        server.slide("k 1h 10 60s 10 COST 2 AT 1000000"),
        [0, 10, 1, 3_600_000, 3_600_000, 3_600_000]
    );
    assert_eq!(server.slide("k 1h 10 60s 1 COST 2 AT 1000000"), [0, 1, 0, -1, 60_000, 60_000]);
    assert_eq!(server.slide("k 60s 1 1h 10 COST 2 AT 1000000"), [0, 1, 0, -1, 60_000, 60_000]);
}

#[test]
fn windows_need_not_be_in_order() {
    let server = Server::start();
    server.plant("k", &["1000000 a1+1", "4000000 a2+1", "4590000 a3+1"]);
    // The hour has just lost its first entry and holds 2; both must leave.
    for windows in ["10m 1 60s 1 1h 1", "1h 1 60s 1 10m 1", "60s 1 10m 1 1h 1"] {
        let reply = server.slide(&format!("k {windows} AT 4600000"));
        assert_eq!(reply, [0, 1, 0, 3_590_000, 3_590_000, 3_600_000], "{windows}");
    }
    // One millisecond sooner it held 3.
    let reply = server.slide("k 10m 1 60s 1 1h 1 COST 0 AT 4599999");
    assert_eq!(reply, [0, 1, 0, 3_000_001, 3_590_001, 3_600_000]);
}

#[test]
fn eight_windows_work_together() {
    let server = Server::start();
    let windows = "1m 8 2m 9 3m 10 4m 11 5m 12 6m 13 7m 14 8m 7";
    assert_eq!(server.slide(&format!("k {windows} AT 1000000")), [1, 7, 6, 0, 480_000, 480_000]);
    let windows = "8m 15 7m 14 6m 13 5m 12 4m 11 3m 10 2m 9 1m 8";
    let slide = |rest: &str| server.slide(&format!("k {windows} {rest}"));
    assert_eq!(slide("COST 7 AT 1000000"), [1, 8, 0, 0, 60_000, 60_000]);
    assert_eq!(slide("COST 1 AT 1000000"), [0, 8, 0, 60_000, 60_000, 60_000]);
    // Once the minute is over, the two minutes have the least room.
    assert_eq!(slide("COST 2 AT 1060000"), [0, 9, 1, 60_000, 60_000, 120_000]);
    assert_eq!(slide("COST 1 AT 1060000"), [1, 9, 0, 0, 120_000, 120_000]);
}

#[test]
fn force_reports_the_window_that_waits_longest_after_the_charge() {
    let server = Server::start();
    let slide = |rest: &str| server.slide(&format!("k 60s 2 1h 3 {rest}"));
    assert_eq!(slide("COST 2 FORCE AT 1000000"), [1, 2, 0, 0, 60_000, 60_000]);
    // Only the minute denies; but once 1 more is charged, the hour would wait longer for the next.
    assert_eq!(slide("COST 1 FORCE AT 1010000"), [0, 3, 0, 3_590_000, 3_600_000, 3_600_000]);
    assert_eq!(slide("COST 1 AT 1010000"), [0, 3, 0, 3_590_000, 3_600_000, 3_600_000]);
    assert_eq!(server.entries("k"), ["1000000 a2+2", "1010000 a3+1"]);
}

#[test]
fn calls_with_a_long_and_a_short_window_both_count_what_they_should() {
    let server = Server::start();
    assert_eq!(server.slide("k 10h 3 AT 1000000"), [1, 3, 2, 0, 36_000_000, 36_000_000]);
    assert_eq!(server.slide("k 60s 1 AT 19000000"), [1, 1, 0, 0, 60_000, 60_000]);
    assert_eq!(server.slide("k 60s 1 AT 19060000"), [1, 1, 0, 0, 60_000, 60_000]);
    // The short window's calls count in the long one, and the long one's entry is still there.
    assert_eq!(server.slide("k 10h 3 AT 19100000"), [0, 3, 0, 17_900_000, 35_960_000, 36_000_000]);
    assert_eq!(server.entries("k"), ["1000000 a1+1", "19000000 a2+1", "19060000 a3+1"]);
}
