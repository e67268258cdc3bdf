//! `RL.SWC` answers as the weighted average of two aligned windows says: worked timelines on one
//! window, exact waits, and the documented worst case. Several windows are in `counter_windows`.

use crate::dataset::leaves_everything;
use crate::harness::Server;
use crate::random::Random;

/// The window that holds the times used here starts at 960000 and ends at 1020000.
const WORKED_EXAMPLE: &str = "60000 960000 3 8";

#[test]
fn a_window_fills_denies_and_fades() {
    let server = Server::start();
    let swc = |at: u32| server.swc(&format!("k 60s 3 AT {at}"));
    // One unit floors to 0 a millisecond after the next window has begun.
    assert_eq!(swc(960_000), [1, 3, 2, 0, 60_001, 60_000]);
    assert_eq!(swc(970_000), [1, 3, 1, 0, 80_001, 60_000]);
    assert_eq!(swc(970_000), [1, 3, 0, 0, 90_001, 60_000]);
    assert_eq!(swc(980_000), [0, 3, 0, 40_001, 80_001, 60_000]);
    // The next window begins with all of the one before.
    assert_eq!(swc(1_020_000), [0, 3, 0, 1, 40_001, 60_000]);
    assert_eq!(swc(1_020_001), [1, 3, 0, 0, 60_000, 60_000]);
    assert_eq!(swc(1_020_001), [0, 3, 0, 20_000, 60_000, 60_000]);
    assert_eq!(swc(1_040_000), [0, 3, 0, 1, 40_001, 60_000]);
    assert_eq!(swc(1_040_001), [1, 3, 0, 0, 70_000, 60_000]);
    assert_eq!(server.counters("k"), ["60000 1020000 2 3"]);
}

#[test]
fn the_worked_example() {
    let server = Server::start();
    server.plant_counters("k", &[WORKED_EXAMPLE]);
    let at_half = |rest: &str| server.swc(&format!("k 60s {rest} AT 990000"));
    // 8 / 2 + 3 = 7 of 10.
    assert_eq!(at_half("10 COST 0"), [1, 10, 3, 0, 70_001, 60_000]);
    assert_eq!(at_half("10 COST 4"), [0, 10, 3, 1, 70_001, 60_000]);
    assert_eq!(at_half("10 COST 7"), [0, 10, 3, 22_501, 70_001, 60_000]);
    // More than 10 beside the 3 of this window: only the next one has room.
    assert_eq!(at_half("10 COST 8"), [0, 10, 3, 30_001, 70_001, 60_000]);
    assert_eq!(at_half("10 COST 10"), [0, 10, 3, 70_001, 70_001, 60_000]);
    assert_eq!(at_half("10 COST 11"), [0, 10, 3, -1, 70_001, 60_000]);
    assert_eq!(server.counters("k"), [WORKED_EXAMPLE], "denials change nothing");
    assert_eq!(at_half("10 COST 3"), [1, 10, 0, 0, 80_001, 60_000]);
    assert_eq!(server.counters("k"), ["60000 960000 6 8"]);
}

#[test]
fn cost_0_asks_and_never_writes() {
    let server = Server::start();
    assert_eq!(server.swc("missing 60s 10 COST 0"), [1, 10, 10, 0, 0, 60_000]);
    assert_eq!(server.swc("missing 60s 10 COST 0 FORCE"), [1, 10, 10, 0, 0, 60_000]);
    server.plant_counters("k", &[WORKED_EXAMPLE]);
    leaves_everything(&server, "COST 0", || {
        let ask = |limit: &str| server.swc(&format!("k 60s {limit} COST 0 AT 990000"));
        assert_eq!(ask("7"), [1, 7, 0, 0, 70_001, 60_000]);
        // Over the limit it is denied until usage is back at it.
        assert_eq!(ask("6"), [0, 6, 0, 1, 70_001, 60_000]);
        assert_eq!(ask("2"), [0, 2, 0, 30_001, 70_001, 60_000]);
        assert_eq!(ask("0"), [0, 0, 0, 70_001, 70_001, 60_000]);
        // In a later window too, which therefore does not start.
        assert_eq!(server.swc("k 60s 9 COST 0 FORCE AT 1050000"), [1, 9, 8, 0, 10_001, 60_000]);
    });
    assert_eq!(server.run::<i64>("EXISTS missing"), 0);
}

#[test]
fn a_limit_of_0_denies_all() {
    let server = Server::start();
    assert_eq!(server.swc("k 60s 0"), [0, 0, 0, -1, 0, 60_000]);
    assert_eq!(server.swc("k 60s 0 COST 0"), [1, 0, 0, 0, 0, 60_000]);
    assert_eq!(server.run::<i64>("EXISTS k"), 0);
    assert_eq!(server.swc("k 60s 0 FORCE AT 960000"), [0, 0, 0, -1, 60_001, 60_000]);
    assert_eq!(server.counters("k"), ["60000 960000 1 0"]);
}

#[test]
fn force_charges_whatever_the_verdict() {
    let server = Server::start();
    let force = |rest: &str| server.swc(&format!("k 60s 3 FORCE {rest}"));
    assert_eq!(force("COST 2 AT 960000"), [1, 3, 1, 0, 90_001, 60_000]);
    // Denied and charged: 4 are used, and 2 more fit when no more than 1 of them is left.
    assert_eq!(force("COST 2 AT 970000"), [0, 3, 0, 80_001, 95_001, 60_000]);
    assert_eq!(server.swc("k 60s 3 COST 2 AT 970000"), [0, 3, 0, 80_001, 95_001, 60_000]);
    assert_eq!(force("COST 5 AT 980000"), [0, 3, 0, -1, 93_334, 60_000]);
    assert_eq!(server.counters("k"), ["60000 960000 9 0"]);
}

#[test]
fn the_limit_may_change_from_call_to_call() {
    let server = Server::start();
    server.plant_counters("k", &["60000 960000 4 0"]);
    assert_eq!(server.swc("k 60s 4 AT 970000")[..3], [0, 4, 0]);
    assert_eq!(server.swc("k 60s 6 AT 970000")[..3], [1, 6, 1]);
    assert_eq!(server.swc("k 60s 2 AT 970000")[..3], [0, 2, 0]);
}

/// A random counter whose current window starts at 1200000, and a time inside it.
fn random_counter(random: &mut Random) -> (String, u64) {
    let window_ms = [60_000, 100_000, 400_000][random.below(3) as usize];
    let (current, previous) = (random.below(30), random.below(60));
    let at = 1_200_000 + random.below(window_ms);
    (format!("{window_ms} 1200000 {current} {previous}"), at)
}

#[test]
fn the_wait_is_exact() {
    let server = Server::start();
    let mut random = Random::seeded();
    let mut denied = 0;
    for _ in 0..400 {
        let (counter, at) = random_counter(&mut random);
        let window_ms = counter.split_once(' ').unwrap().0;
        let (limit, cost) = (random.below(40), random.below(12));
        server.does("DEL k");
        server.plant_counters("k", &[&counter]);
        let ask = |at: u64| server.swc(&format!("k {window_ms} {limit} COST {cost} AT {at}"));
        let context = format!("{counter} at {at}, limit {limit}, cost {cost}");
        let [allowed, _, _, wait, _, _] = ask(at);
        if allowed == 1 {
            assert_eq!(wait, 0, "{context}");
            continue;
        }
        denied += 1;
        if cost > limit {
            assert_eq!(wait, -1, "{context}");
            continue;
        }
        assert!(wait > 0, "{context}");
        assert_eq!(ask(at + wait as u64 - 1)[0], 0, "{context}: 1 ms before {wait} are over");
        assert_eq!(ask(at + wait as u64)[0], 1, "{context}: after {wait}");
    }
    assert!((50..350).contains(&denied), "{denied} of 400 were denied");
}

#[test]
fn the_time_until_empty_is_exact() {
    let server = Server::start();
    let mut random = Random::seeded();
    for _ in 0..200 {
        let (counter, at) = random_counter(&mut random);
        let window_ms = counter.split_once(' ').unwrap().0;
        server.does("DEL k");
        server.plant_counters("k", &[&counter]);
        // Admitted at limit 0 and cost 0 is: nothing is counted.
        let ask = |at: u64| server.swc(&format!("k {window_ms} 0 COST 0 AT {at}"));
        let [empty, _, _, wait, reset, _] = ask(at);
        assert_eq!(wait, reset, "{counter} at {at}");
        if empty == 1 {
            assert_eq!(reset, 0, "{counter} at {at}");
            continue;
        }
        assert_eq!(ask(at + reset as u64 - 1)[0], 0, "{counter} at {at}: 1 ms before {reset}");
        assert_eq!(ask(at + reset as u64)[..5], [1, 0, 0, 0, 0], "{counter} at {at}: {reset}");
    }
}

#[test]
fn up_to_twice_the_limit_may_pass_inside_one_window() {
    let server = Server::start();
    // Two requests 2 ms apart at a limit of 1 a minute.
    assert_eq!(server.swc("k 60s 1 AT 1019999"), [1, 1, 0, 0, 2, 60_000]);
    assert_eq!(server.swc("k 60s 1 AT 1020000"), [0, 1, 0, 1, 1, 60_000]);
    assert_eq!(server.swc("k 60s 1 AT 1020001"), [1, 1, 0, 0, 60_000, 60_000]);
    // The log keeps its word on the same requests.
    assert_eq!(server.slide("log 60s 1 AT 1019999")[0], 1);
    assert_eq!(server.slide("log 60s 1 AT 1020001")[0], 0);
}

#[test]
fn a_late_request_counts_as_the_stored_start() {
    let server = Server::start();
    server.plant_counters("k", &["60000 1200000 2 4"]);
    for at in ["1190000", "1199999"] {
        assert_eq!(server.swc(&format!("k 60s 10 COST 0 AT {at}"))[..3], [1, 10, 4]);
    }
    assert_eq!(server.swc("k 60s 6 AT 1190000"), [0, 6, 0, 10_001, 100_001, 60_000]);
    assert_eq!(server.swc("k 60s 6 AT 0"), [0, 6, 0, 1_200_001, 1_290_001, 60_000]);
    assert_eq!(server.swc("k 60s 10 AT 1190000"), [1, 10, 3, 0, 110_001, 60_000]);
    assert_eq!(server.counters("k"), ["60000 1200000 3 4"]);
}

#[test]
fn the_server_s_clock_is_used_without_at() {
    let server = Server::start();
    let before = server.now();
    let [allowed, limit, remaining, retry, reset, _] = server.swc("k 1h 5");
    let after = server.now();
    assert_eq!([allowed, limit, remaining, retry], [1, 5, 4, 0]);
    let counters = server.counters("k");
    let [_, start, "1", "0"] = counters[0].split(' ').collect::<Vec<_>>()[..] else {
        panic!("{counters:?}")
    };
    let start: i64 = start.parse().unwrap();
    assert_eq!(start % 3_600_000, 0);
    assert!((before - 3_600_000 + 1..=after).contains(&start), "{start} is the start of {before}");
    let now = start + 3_600_001 - reset;
    assert!((before..=after).contains(&now), "{before} <= {now} <= {after}");
}

#[test]
fn options_come_in_any_order_and_any_case() {
    let server = Server::start();
    for call in [
        "RL.SWC k 60s 10 COST 3 FORCE AT 960000",
        "rl.swc k 60s 10 at 960000 force cost 3",
        "Rl.Swc k 60000 10 Force Cost 3 At 960000",
    ] {
        server.does("DEL k");
        assert_eq!(server.verdict(call), [1, 10, 7, 0, 100_001, 60_000], "{call}");
        assert_eq!(server.counters("k"), ["60000 960000 3 0"], "{call}");
    }
}

#[test]
fn the_largest_numbers_stay_exact() {
    let server = Server::start();
    let most = 9_007_199_254_740_991_i64;
    let swc = |cost: i64| server.swc(&format!("k 60s {most} COST {cost} AT 960000"));
    assert_eq!(swc(1), [1, most, most - 1, 0, 60_001, 60_000]);
    // All of it fits as soon as the 1 has faded.
    assert_eq!(swc(most), [0, most, most - 1, 60_001, 60_001, 60_000]);
    assert_eq!(swc(most - 1), [1, most, 0, 0, 120_000, 60_000]);
    assert_eq!(swc(1), [0, most, 0, 60_001, 120_000, 60_000]);
    assert_eq!(server.counters("k"), [format!("60000 960000 {most} 0")]);
}

#[test]
fn resp2_and_resp3_answer_the_same_bytes() {
    let server = Server::start();
    let mut wire = server.wire();
    for (key, hello) in [("two", None), ("three", Some("HELLO 3"))] {
        hello.inspect(|hello| assert!(wire.ask(hello).starts_with('%'), "RESP3 is spoken now"));
        let mut ask = |call: &str| wire.ask(&format!("{call} AT 960000"));
        let admitted = "*6\r\n:1\r\n:5\r\n:4\r\n:0\r\n:60001\r\n:60000\r\n";
        let denied = "*6\r\n:0\r\n:0\r\n:0\r\n:-1\r\n:60001\r\n:60000\r\n";
        assert_eq!(ask(&format!("RL.SWC {key} 60s 5")), admitted);
        assert_eq!(ask(&format!("RL.SWC {key} 60s 0")), denied);
        assert_eq!(ask(&format!("RL.PEEK {key} 60s 5")), admitted);
        assert_eq!(ask(&format!("RL.PEEK {key} 60s 0")), denied);
        assert_eq!(ask(&format!("RL.REFUND {key} 5")), ":1\r\n");
    }
}
