//! `RL.REFUND` on counters: each window is seen at the time given, then shrinks, the current count
//! before the previous one.

use crate::dataset::leaves_everything;
use crate::harness::{Server, Setup, compact_fields_option};

/// Units used in a minute with nothing to say about limits.
fn used(server: &Server, at: u64) -> i64 {
    1_000 - server.peek(&format!("k 60s 1000 COST 0 AT {at}"))[2]
}

#[test]
fn the_current_count_goes_before_the_previous_one() {
    for most in [512, 0] {
        let server = Setup::new().option(&compact_fields_option(most)).start();
        for (units, taken, left) in [
            (1, 1, "60000 1020000 2 5"),
            (3, 3, "60000 1020000 0 5"),
            (4, 4, "60000 1020000 0 4"),
            (8, 8, "60000 1020000 0 0"),
            (9, 8, "60000 1020000 0 0"),
            (9_007_199_254_740_991_i64, 8, "60000 1020000 0 0"),
        ] {
            server.does("DEL k");
            server.swc("k 60s 10 COST 5 AT 960000");
            server.swc("k 60s 10 COST 3 AT 1020000");
            let expiry = server.expiry("k");
            assert_eq!(server.refund(&format!("k {units} AT 1020000")), taken);
            assert_eq!(server.counters("k"), [left], "{units}");
            assert_eq!(server.expiry("k"), expiry, "{units}: the expiry stays");
        }
        assert_eq!(server.refund("k 1 AT 1020000"), 0);
        assert_eq!(server.swc("k 60s 10 COST 10 AT 1020000")[..3], [1, 10, 0]);
    }
}

#[test]
fn in_the_next_window_it_takes_from_what_is_now_previous() {
    let server = Server::start();
    server.swc("k 60s 10 COST 8 AT 960000");
    assert_eq!(server.refund("k 2 AT 1020000"), 2);
    assert_eq!(used(&server, 1_020_000), 6);
    assert_eq!(used(&server, 1_050_000), 3);
    assert_eq!(server.refund("k 100 AT 1050000"), 6);
    assert_eq!(used(&server, 1_020_000), 0);
    assert_eq!(server.refund("k 1 AT 1050000"), 0);
}

#[test]
fn what_was_previous_before_the_rotation_is_out_of_reach() {
    let server = Server::start();
    let counter = "60000 960000 3 8";
    server.plant_counters("k", &[counter]);
    assert_eq!(server.refund("k 100 AT 1020000"), 3);
    assert_eq!(used(&server, 1_020_000), 0);
    // Two windows on there is nothing at all.
    server.does("DEL k");
    server.plant_counters("k", &[counter]);
    leaves_everything(&server, "a refund of nothing", || {
        assert_eq!(server.refund("k 100 AT 1080000"), 0);
        assert_eq!(server.refund("k 100 AT 9000000"), 0);
    });
    assert_eq!(used(&server, 960_000), 11);
}

#[test]
fn a_late_refund_counts_as_the_stored_start() {
    let server = Server::start();
    server.plant_counters("k", &["60000 960000 3 8"]);
    assert_eq!(server.refund("k 5 AT 1000"), 5);
    assert_eq!(server.counters("k"), ["60000 960000 0 6"]);
}

#[test]
fn each_window_gives_back_and_the_largest_is_told() {
    let server = Server::start();
    server.plant_counters("k", &["60000 1200000 2 1", "600000 1200000 4 9", "900000 900000 0 0"]);
    assert_eq!(server.refund("k 5 AT 1210000"), 5);
    let left = ["60000 1200000 0 0", "600000 1200000 0 8", "900000 900000 0 0"];
    assert_eq!(server.counters("k"), left);
    // The minute has passed, the ten have rotated.
    server.does("DEL k");
    server.plant_counters("k", &["60000 1200000 2 1", "600000 1200000 4 9"]);
    assert_eq!(server.refund("k 100 AT 1800000"), 4);
    assert_eq!(server.peek("k 10m 10 COST 0 AT 1800000")[2], 10);
}

#[test]
fn what_is_given_back_can_be_taken_again() {
    let server = Server::start();
    server.swc("k 60s 5 10m 8 COST 5 AT 1200000");
    assert_eq!(server.swc("k 60s 5 10m 8 AT 1200000")[0], 0);
    assert_eq!(server.refund("k 2 AT 1200000"), 2);
    assert_eq!(server.swc("k 60s 5 10m 8 COST 2 AT 1200000")[..3], [1, 5, 0]);
    assert_eq!(server.swc("k 60s 5 10m 8 AT 1200000")[0], 0);
    assert_eq!(server.counters("k"), ["60000 1200000 5 0", "600000 1200000 5 0"]);
}

#[test]
fn a_window_that_starts_after_a_refund_sees_it() {
    let server = Server::start();
    server.swc("k 60s 10 COST 8 AT 960000");
    assert_eq!(server.refund("k 3 AT 1020000"), 3);
    server.swc("k 60s 10 COST 2 AT 1020000");
    assert_eq!(server.counters("k"), ["60000 1020000 2 5"]);
    assert_eq!(server.refund("k 6 AT 1080000"), 2);
    server.swc("k 60s 10 AT 1080000");
    assert_eq!(server.counters("k"), ["60000 1080000 1 0"]);
}

#[test]
fn counters_from_a_clock_far_ahead_count_as_absent() {
    let server = Server::start();
    let start = (server.now() / 60_000 + 60) * 60_000;
    server.plant_counters("k", &[format!("60000 {start} 3 4")]);
    leaves_everything(&server, "a refund", || {
        assert_eq!(server.refund("k 5"), 0);
        assert_eq!(server.refund(&format!("k 5 AT {}", start - 60_001)), 0);
    });
    assert_eq!(server.refund(&format!("k 5 AT {}", start - 60_000)), 5);
    assert_eq!(server.counters("k"), [format!("60000 {start} 0 2")]);
}

#[test]
fn the_largest_counters_shrink_exactly() {
    let server = Server::start();
    server.plant_counters("k", &["60000 960000 9223372036854775807 9223372036854775807"]);
    assert_eq!(server.refund("k 9007199254740991 AT 960000"), 9_007_199_254_740_991);
    assert_eq!(server.counters("k"), ["60000 960000 9214364837600034816 9223372036854775807"]);
}
