//! `AT` that is late, early or in the wrong unit, among calls that go by the server's clock, on the same
//! key: what it does to them, and that it is over within what it was off and a window.

use crate::clock::{Clock, DAY_MS, MINUTE_MS, START_MS, TEN_YEARS_MS, assert_wait};
use crate::harness::Server;

/// The time of the calls without `AT`: 30 s into a minute.
const NOW_MS: i64 = START_MS + MINUTE_MS / 2;

fn start() -> (Clock, Server) {
    let clock = Clock::frozen();
    clock.freeze_at(NOW_MS);
    let server = clock.server();
    (clock, server)
}

/// Denied now with this wait, which is exact.
fn assert_denied(clock: &Clock, server: &Server, call: &str, wait_ms: i64) {
    let denied = server.verdict(call);
    assert_eq!((denied[0], denied[3]), (0, wait_ms), "{call}");
    assert_wait(clock, server, call, wait_ms);
}

#[test]
fn a_late_time_counts_the_whole_log_and_is_stamped_as_the_newest() {
    let (clock, server) = start();
    assert_eq!(server.slide("k 60s 3"), [1, 3, 2, 0, 60_000, 60_000]);
    let late = format!("k 60s 3 AT {}", NOW_MS - 30_000);
    assert_eq!(server.slide(&late), [1, 3, 1, 0, 90_000, 60_000]);
    assert_eq!(server.slide("k 60s 3"), [1, 3, 0, 0, 60_000, 60_000]);
    assert_eq!(server.slide(&late), [0, 3, 0, 90_000, 90_000, 60_000]);
    assert_eq!(server.entries("k"), [1, 2, 3].map(|total| format!("{NOW_MS} a{total}+1")));
    assert_denied(&clock, &server, "RL.SLIDE k 60s 3", 60_000);
}

#[test]
fn an_early_time_within_two_windows_holds_a_log_back_for_that_and_a_window() {
    for early_ms in [1, 30_000, 60_000, 120_000] {
        let (clock, server) = start();
        let early = format!("k 60s 3 AT {}", NOW_MS + early_ms);
        assert_eq!(server.slide(&early), [1, 3, 2, 0, 60_000, 60_000]);
        let reset_ms = early_ms + 60_000;
        assert_eq!(server.slide("k 60s 3"), [1, 3, 1, 0, reset_ms, 60_000]);
        assert_eq!(server.slide("k 60s 3"), [1, 3, 0, 0, reset_ms, 60_000]);
        assert_denied(&clock, &server, "RL.SLIDE k 60s 3", reset_ms);
    }
}

#[test]
fn an_early_time_beyond_two_windows_is_not_believed_of_a_log() {
    for early_ms in [120_001, DAY_MS, TEN_YEARS_MS] {
        let (_clock, server) = start();
        let early = format!("k 60s 3 COST 3 AT {}", NOW_MS + early_ms);
        assert_eq!(server.slide(&early), [1, 3, 0, 0, 60_000, 60_000]);
        assert_eq!(server.slide("k 60s 3"), [1, 3, 2, 0, 60_000, 60_000]);
        assert_eq!(server.entries("k"), [format!("{NOW_MS} a1+1")]);
        assert_eq!(server.info("rl_clocks_ahead"), "1");
        let least_ms = NOW_MS + MINUTE_MS;
        assert!((least_ms..=least_ms + 16_000).contains(&server.expiry("k")));
    }
}

#[test]
fn seconds_count_a_whole_log_and_cost_the_others_no_time() {
    let (clock, server) = start();
    let seconds = NOW_MS / 1_000;
    let wait_ms = NOW_MS + 60_000 - seconds;
    let wrong = format!("k 60s 3 AT {seconds}");
    assert_eq!(server.slide("k 60s 3"), [1, 3, 2, 0, 60_000, 60_000]);
    assert_eq!(server.slide(&wrong), [1, 3, 1, 0, wait_ms, 60_000]);
    assert_eq!(server.slide(&wrong), [1, 3, 0, 0, wait_ms, 60_000]);
    assert_eq!(server.slide(&wrong), [0, 3, 0, wait_ms, wait_ms, 60_000]);
    assert_denied(&clock, &server, "RL.SLIDE k 60s 3", 60_000);
}

#[test]
fn a_late_time_keeps_a_log_no_longer_than_three_windows_and_what_has_left_no_longer_than_two() {
    for late_ms in [MINUTE_MS, 3 * MINUTE_MS, DAY_MS, 365 * DAY_MS, NOW_MS - NOW_MS / 1_000] {
        let (clock, server) = start();
        server.slide("k 60s 300");
        server.slide(&format!("k 60s 300 AT {}", NOW_MS - late_ms));
        assert!(server.expiry("k") <= NOW_MS + 195_000, "{late_ms}");
        for _ in 0..200 {
            clock.step_by(1_000);
            assert_eq!(server.slide("k 60s 300")[0], 1, "{late_ms}");
        }
        assert!(server.run::<i64>("ZCARD k") <= 60, "{late_ms}");
        let least_ms = server.now() + 60_000;
        assert!((least_ms..=least_ms + 15_000).contains(&server.expiry("k")), "{late_ms}");
    }
}

#[test]
fn a_late_time_keeps_counters_no_longer_than_three_windows() {
    for late_ms in [MINUTE_MS, 3 * MINUTE_MS, DAY_MS, NOW_MS - NOW_MS / 1_000] {
        let (_clock, server) = start();
        server.swc("k 60s 300");
        server.swc(&format!("k 60s 300 5m 300 AT {}", NOW_MS - late_ms));
        assert!(server.expiry("k") <= NOW_MS + 15 * MINUTE_MS, "{late_ms}");
    }
}

#[test]
fn seconds_on_a_fresh_log_have_left_for_the_others() {
    let (_clock, server) = start();
    let wrong = format!("k 60s 3 COST 3 AT {}", NOW_MS / 1_000);
    assert_eq!(server.slide(&wrong), [1, 3, 0, 0, 60_000, 60_000]);
    assert_eq!(server.slide(&wrong), [0, 3, 0, 60_000, 60_000, 60_000]);
    assert_eq!(server.slide("k 60s 3"), [1, 3, 2, 0, 60_000, 60_000]);
    assert_eq!(server.entries("k"), [format!("{NOW_MS} a4+1")]);
}

#[test]
fn a_late_time_counts_as_the_start_of_a_counter() {
    let (clock, server) = start();
    assert_eq!(server.swc("k 60s 3")[..4], [1, 3, 2, 0]);
    let late = format!("k 60s 3 AT {}", NOW_MS - 60_000);
    assert_eq!(server.swc(&late), [1, 3, 1, 0, 120_001, 60_000]);
    assert_eq!(server.swc("k 60s 3"), [1, 3, 0, 0, 70_001, 60_000]);
    assert_eq!(server.swc(&late), [0, 3, 0, 90_001, 130_001, 60_000]);
    assert_eq!(server.counters("k"), [format!("60000 {START_MS} 3 0")]);
    assert_denied(&clock, &server, "RL.SWC k 60s 3", 30_001);
}

#[test]
fn an_early_time_whose_window_starts_within_one_holds_counters_back_for_that_and_a_window() {
    for early_ms in [30_000, 60_000, 89_999] {
        let (clock, server) = start();
        let early = format!("k 60s 3 AT {}", NOW_MS + early_ms);
        assert_eq!(server.swc(&early)[..4], [1, 3, 2, 0]);
        assert_eq!(server.swc("k 60s 3")[..4], [1, 3, 1, 0]);
        assert_eq!(server.swc("k 60s 3")[..4], [1, 3, 0, 0]);
        let start_ms = START_MS + 60_000;
        assert_eq!(server.counters("k"), [format!("60000 {start_ms} 3 0")]);
        let wait_ms = start_ms + 60_001 - NOW_MS;
        let denied = server.swc("k 60s 3");
        assert_eq!((denied[0], denied[3]), (0, wait_ms));
        assert!(wait_ms <= early_ms + 60_001);
        clock.step_by(wait_ms);
        assert_eq!(server.swc("k 60s 3")[0], 1);
    }
}

#[test]
fn a_window_that_an_early_time_started_is_kept_until_it_is_over_by_the_clock() {
    let (clock, server) = start();
    clock.freeze_at(START_MS);
    let early = format!("k 60s 3 AT {}", START_MS + 119_999);
    assert_eq!(server.swc(&early)[..3], [1, 3, 2]);
    clock.freeze_at(START_MS + 59_999);
    assert_eq!(server.swc("k 60s 3 COST 2")[..3], [1, 3, 0]);
    assert_eq!(server.expiry("k"), START_MS + 180_000);
    clock.freeze_at(START_MS + 60_002);
    // Until a third of the three units is left of the window before.
    assert_denied(&clock, &server, "RL.SWC k 60s 3 COST 3", 120_000 + 40_001 - 60_002);
}

#[test]
fn an_early_time_whose_window_starts_later_is_not_believed_of_counters() {
    for early_ms in [90_000, DAY_MS, TEN_YEARS_MS] {
        let (_clock, server) = start();
        let early = format!("k 60s 3 COST 3 AT {}", NOW_MS + early_ms);
        assert_eq!(server.swc(&early)[..4], [1, 3, 0, 0]);
        assert_eq!(server.swc("k 60s 3")[..4], [1, 3, 2, 0]);
        assert_eq!(server.counters("k"), [format!("60000 {START_MS} 1 0")]);
        assert_eq!(server.info("rl_clocks_ahead"), "1");
    }
}

#[test]
fn seconds_count_as_the_start_of_a_counter_and_cost_the_others_no_time() {
    let (clock, server) = start();
    let wrong = format!("k 60s 3 AT {}", NOW_MS / 1_000);
    assert_eq!(server.swc("k 60s 3")[..4], [1, 3, 2, 0]);
    assert_eq!(server.swc(&wrong)[..4], [1, 3, 1, 0]);
    assert_eq!(server.swc(&wrong)[..4], [1, 3, 0, 0]);
    let wait_ms = START_MS + 60_001 - NOW_MS / 1_000;
    assert_eq!(server.swc(&wrong)[..4], [0, 3, 0, wait_ms]);
    assert_eq!(server.expiry("k"), START_MS + 120_000);
    assert_denied(&clock, &server, "RL.SWC k 60s 3", 30_001);
}

#[test]
fn seconds_on_fresh_counters_have_passed_for_the_others() {
    let (_clock, server) = start();
    let wrong = format!("k 60s 3 COST 3 AT {}", NOW_MS / 1_000);
    assert_eq!(server.swc(&wrong)[..3], [1, 3, 0]);
    assert_eq!(server.swc(&wrong)[..3], [0, 3, 0]);
    assert_eq!(server.swc("k 60s 3")[..4], [1, 3, 2, 0]);
    assert_eq!(server.counters("k"), [format!("60000 {START_MS} 1 0")]);
    assert_eq!(server.expiry("k"), START_MS + 120_000);
}

#[test]
fn microseconds_and_all_beyond_ten_years_are_errors() {
    let (clock, server) = start();
    server.slide("log 60s 3");
    server.swc("counters 60s 3");
    for now_ms in [NOW_MS, NOW_MS + DAY_MS, NOW_MS - TEN_YEARS_MS] {
        clock.freeze_at(now_ms);
        let latest_ms = now_ms + TEN_YEARS_MS;
        for at in [latest_ms + 1, now_ms * 1_000, now_ms * 1_000_000] {
            for call in ["SLIDE log 60s 3", "SWC counters 60s 3", "PEEK log 60s 3", "REFUND log 1"]
            {
                let error = server.error(&format!("RL.{call} AT {at}"));
                let expected = format!(
                    "ERR AT '{at}' must be Unix milliseconds, \
                     from 0 to 3650 days after the server's clock, {latest_ms}"
                );
                assert_eq!(error, expected, "{call}");
            }
        }
        assert_eq!(server.peek(&format!("missing 60s 3 AT {latest_ms}"))[0], 1);
    }
}
