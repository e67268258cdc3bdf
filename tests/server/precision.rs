//! `PRECISION`: stamps rounded up to ticks, requests of one tick in one member, memory bounded, and
//! no window ever over its limit.

use crate::harness::Server;

#[test]
fn stamps_are_rounded_up_and_merge_within_a_tick() {
    let server = Server::start();
    let slide = |rest: &str| server.slide(&format!("k 60s 10 PRECISION 10s {rest}"));
    // Stamped 1010000, so it counts 9999 ms longer than a minute.
    assert_eq!(slide("AT 1000001"), [1, 10, 9, 0, 69_999, 60_000]);
    assert_eq!(server.entries("k"), ["1010000 a1+1"]);
    assert_eq!(slide("COST 3 AT 1009999"), [1, 10, 6, 0, 60_001, 60_000]);
    assert_eq!(server.entries("k"), ["1010000 a4+4"]);
    // A time on the tick is its own stamp.
    assert_eq!(slide("AT 1010000"), [1, 10, 5, 0, 60_000, 60_000]);
    assert_eq!(server.entries("k"), ["1010000 a5+5"]);
    assert_eq!(slide("AT 1010001"), [1, 10, 4, 0, 69_999, 60_000]);
    assert_eq!(server.entries("k"), ["1010000 a5+5", "1020000 a6+1"]);
    // Waits are exact for these stamps.
    assert_eq!(slide("COST 10 AT 1069999"), [0, 10, 4, 10_001, 10_001, 60_000]);
    assert_eq!(slide("COST 9 AT 1069999"), [0, 10, 4, 1, 10_001, 60_000]);
    assert_eq!(slide("COST 9 AT 1070000"), [1, 10, 0, 0, 60_000, 60_000]);
}

#[test]
fn a_denial_with_precision_leaves_the_log_alone() {
    let server = Server::start();
    server.slide("k 60s 2 COST 2 PRECISION 10s AT 1000001");
    assert_eq!(server.slide("k 60s 2 PRECISION 10s AT 1000002"), [0, 2, 0, 69_998, 69_998, 60_000]);
    assert_eq!(server.slide("k 60s 2 AT 1069999"), [0, 2, 0, 1, 1, 60_000]);
    assert_eq!(server.entries("k"), ["1010000 a2+2"]);
}

#[test]
fn ticks_are_aligned_to_the_epoch() {
    let server = Server::start();
    for (at, precision, stamp) in [
        (1_000_000, "1s", 1_000_000),
        (1_000_001, "1s", 1_001_000),
        (1_000_000, "7ms", 1_000_006),
        (1_000_006, "7ms", 1_000_006),
        (1_000_007, "7ms", 1_000_013),
        (1_000_007, "1ms", 1_000_007),
        (1_000_001, "60s", 1_020_000),
        (0, "60s", 0),
        (1, "60s", 60_000),
    ] {
        server.does("DEL k");
        server.slide(&format!("k 60s 5 PRECISION {precision} AT {at}"));
        assert_eq!(server.entries("k"), [format!("{stamp} a1+1")], "AT {at} PRECISION {precision}");
    }
}

#[test]
fn a_newer_entry_gives_the_stamp_and_takes_the_cost() {
    let server = Server::start();
    server.slide("k 60s 9 AT 1014999");
    server.slide("k 60s 9 AT 1015000");
    // Its own tick, 1010000, is earlier than the newest entry.
    server.slide("k 60s 9 COST 2 PRECISION 10s AT 1009000");
    assert_eq!(server.entries("k"), ["1014999 a1+1", "1015000 a4+3"]);
    // Without PRECISION nothing merges.
    server.slide("k 60s 9 AT 1009000");
    assert_eq!(server.entries("k"), ["1014999 a1+1", "1015000 a4+3", "1015000 a5+1"]);
}

#[test]
fn a_merge_keeps_the_count_over_a_change_of_letter() {
    let server = Server::start();
    server.slide("k 60s 100 COST 9 PRECISION 1s AT 1000000");
    assert_eq!(server.slide("k 60s 100 COST 1 PRECISION 1s AT 1000000")[2], 90);
    assert_eq!(server.entries("k"), ["1000000 b10+10"]);
    assert_eq!(server.slide("k 60s 100 COST 90 PRECISION 1s AT 1000000")[2], 0);
    assert_eq!(server.entries("k"), ["1000000 c100+100"]);
}

#[test]
fn members_inside_the_window_are_bounded() {
    let server = Server::start();
    // A window of 60 s in ticks of 7 s: at most ceil(60 / 7) + 1 = 10 members.
    let mut most_members = 0;
    for at in (1_000_000..1_200_000).step_by(250) {
        assert_eq!(server.slide(&format!("k 60s 100000 PRECISION 7s AT {at}"))[0], 1);
        let members: i64 = server.run(&format!("ZCOUNT k ({} +inf", at - 60_000));
        most_members = most_members.max(members);
    }
    assert!((9..=10).contains(&most_members), "{most_members} members");
    assert!(server.run::<i64>("ZCARD k") <= 10, "stale members are trimmed");
}

#[test]
fn no_window_ever_holds_more_than_the_limit() {
    let server = Server::start();
    let mut admitted: Vec<i64> = Vec::new();
    for at in (1_000_000..1_400_000).step_by(730) {
        if server.slide(&format!("k 60s 20 PRECISION 13s AT {at}"))[0] == 1 {
            admitted.push(at);
        }
    }
    for (i, end) in admitted.iter().enumerate() {
        let inside = admitted[..=i].iter().filter(|at| **at > end - 60_000).count();
        assert!(inside <= 20, "{inside} admitted in the minute to {end}");
    }
    assert!(admitted.len() >= 80, "{} admitted: nearly the whole limit is used", admitted.len());
}
