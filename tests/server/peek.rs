//! `RL.PEEK` answers what the real call then answers, with what is left as it is before the charge.
//! That it may run where a read may, and changes nothing, is in `peek_access` and `side_effects`.

use crate::arguments::{refuses_of, server_with_data};
use crate::dataset::leaves_everything;
use crate::harness::Server;
use crate::random::Random;

const WINDOWS: [&str; 5] =
    ["1m 9", "1m 9 10m 30", "10m 25 2m 12", "5m 40 1h 200", "1m 9 2m 9 5m 20"];

/// Peeks, asks what is left by a call of cost 0, charges, and compares the three.
///
/// The answer to the real call, to see that both verdicts came.
fn compare(server: &Server, command: &str, call: &str, cost: i64) -> [i64; 6] {
    let peeked = leaves_everything(server, call, || server.peek(call));
    let ignored = server.peek(&format!("{call} FORCE"));
    assert_eq!(peeked, ignored, "{call}: FORCE changes nothing");
    let [allowed, limit, remaining, retry, reset, window] = peeked;
    let at = call.split_once("AT ").unwrap().1;
    let key = call.split_once(' ').unwrap().0;
    let left = server.verdict(&format!("{command} {key} {window}ms {limit} COST 0 AT {at}"));
    assert_eq!([remaining, reset], [left[2], left[4]], "{call}: peeked {peeked:?}, left {left:?}");
    let real = server.verdict(&format!("{command} {call}"));
    assert_eq!([allowed, limit, retry, window], [real[0], real[1], real[3], real[5]], "{call}");
    assert_eq!(remaining, real[2] + if allowed == 1 { cost } else { 0 }, "{call}");
    real
}

/// A stream of calls on one key, forced ones in between, with pauses of up to `pause_ms`.
fn compare_stream(command: &str, pause_ms: u64) {
    let server = Server::start();
    server.does("SET other v");
    let mut random = Random::seeded();
    let mut at = server.now() as u64;
    let mut admitted = 0;
    for _ in 0..400 {
        at += random.below(pause_ms);
        let late = if random.below(10) == 0 { random.below(40_000) } else { 0 };
        let (windows, cost) = (random.one_of(&WINDOWS), random.below(6));
        let call = format!("k {windows} COST {cost} AT {}", at - late);
        if random.below(4) == 0 {
            let allowed = server.peek(&format!("{call} FORCE"))[0];
            assert_eq!(server.verdict(&format!("{command} {call} FORCE"))[0], allowed, "{call}");
        } else {
            admitted += compare(&server, command, &call, cost as i64)[0];
        }
    }
    assert!((50..250).contains(&admitted), "{admitted} of 400 were admitted");
}

#[test]
fn it_answers_for_a_log_what_the_call_then_answers() {
    compare_stream("RL.SLIDE", 60_000);
}

#[test]
fn it_answers_for_counters_what_the_call_then_answers() {
    // Each window is charged by the calls that name it alone, and so fills more slowly.
    compare_stream("RL.SWC", 12_000);
}

#[test]
fn it_answers_for_any_planted_counter_what_the_call_then_answers() {
    let server = Server::start();
    server.does("SET other v");
    let mut random = Random::seeded();
    let mut admitted = 0;
    for _ in 0..300 {
        server.does("DEL k");
        server.plant_counters(
            "k",
            &[
                format!("60000 1200000 {} {}", random.below(10), random.below(20)),
                format!("600000 1200000 {} {}", random.below(20), random.below(40)),
            ],
        );
        let at = 1_190_000 + random.below(200_000);
        let (first, second, cost) = (random.below(25), random.below(60), random.below(9));
        let call = format!("k 1m {first} 10m {second} COST {cost} AT {at}");
        admitted += compare(&server, "RL.SWC", &call, cost as i64)[0];
    }
    assert!((50..250).contains(&admitted), "{admitted} of 300 were admitted");
}

#[test]
fn what_is_left_is_what_is_left_now() {
    let server = Server::start();
    server.slide("log 60s 10 COST 4 AT 1000000");
    assert_eq!(server.peek("log 60s 10 COST 3 AT 1010000"), [1, 10, 6, 0, 50_000, 60_000]);
    assert_eq!(server.slide("log 60s 10 COST 3 AT 1010000"), [1, 10, 3, 0, 60_000, 60_000]);
    server.swc("counters 60s 10 COST 4 AT 960000");
    assert_eq!(server.peek("counters 60s 10 COST 3 AT 970000"), [1, 10, 6, 0, 95_001, 60_000]);
    assert_eq!(server.swc("counters 60s 10 COST 3 AT 970000"), [1, 10, 3, 0, 101_429, 60_000]);
}

#[test]
fn the_arguments_of_the_real_call_serve() {
    let server = Server::start();
    server.slide("log 60s 10 COST 4 AT 1000000");
    server.swc("counters 60s 10 COST 4 AT 1000000");
    for key in ["log", "counters", "missing"] {
        for (plain, other) in [
            ("60s 10 AT 1000500", "60s 10 FORCE PRECISION 10s AT 1000500"),
            ("60s 3 AT 1000500", "60s 3 force AT 1000500 precision 60s"),
            ("60s 9 COST 9 AT 1000500", "60s 9 PRECISION 1ms COST 9 AT 1000500"),
            ("60s 9 1h 9 COST 10 AT 1000500", "60s 9 1h 9 COST 10 AT 1000500 FORCE"),
        ] {
            leaves_everything(&server, other, || {
                let plain = server.peek(&format!("{key} {plain}"));
                assert_eq!(server.peek(&format!("{key} {other}")), plain, "{key} {other}");
            });
        }
    }
    assert_eq!(server.peek("log 60s 3 FORCE PRECISION 10s AT 1000500")[..4], [0, 3, 0, 59_500]);
}

#[test]
fn a_missing_key_is_a_fresh_limiter() {
    let server = Server::start();
    assert_eq!(server.peek("k 60s 5"), [1, 5, 5, 0, 0, 60_000]);
    assert_eq!(server.peek("k 60s 5 COST 5"), [1, 5, 5, 0, 0, 60_000]);
    assert_eq!(server.peek("k 60s 5 COST 6"), [0, 5, 5, -1, 0, 60_000]);
    assert_eq!(server.peek("k 60s 0"), [0, 0, 0, -1, 0, 60_000]);
    assert_eq!(server.peek("k 60s 0 COST 0"), [1, 0, 0, 0, 0, 60_000]);
    assert_eq!(server.peek("k 1h 9 60s 5 2m 5"), [1, 5, 5, 0, 0, 60_000]);
    assert_eq!(server.peek("k 1h 9 60s 5 2m 4 COST 6"), [0, 5, 5, -1, 0, 60_000]);
    assert_eq!(server.run::<i64>("DBSIZE"), 0);
}

#[test]
fn a_log_that_the_call_would_drop_is_a_fresh_limiter() {
    let server = Server::start();
    server.plant("ahead", &[format!("{} a4+4", server.now() + 3_600_000)]);
    let stale: Vec<String> = (100..400).map(|i| format!("{} c{i}+1", 1_000_000 + i)).collect();
    server.plant("stale", &stale);
    for (key, at) in [("ahead", ""), ("ahead", "AT 1000000"), ("stale", "AT 2000000")] {
        let call = format!("{key} 60s 5 COST 2 {at}");
        let peeked = leaves_everything(&server, &call, || server.peek(&call));
        assert_eq!(peeked, [1, 5, 5, 0, 0, 60_000], "{call}");
    }
    // Within twice the longest window it counts.
    assert_eq!(server.peek("ahead 60s 5 1h 5 COST 2")[..3], [0, 5, 1]);
    assert_eq!(server.slide("stale 60s 5 COST 2 AT 2000000"), [1, 5, 3, 0, 60_000, 60_000]);
    assert_eq!(server.slide("ahead 60s 5 COST 2 AT 1000000"), [1, 5, 3, 0, 60_000, 60_000]);
}

#[test]
fn bad_arguments_are_refused() {
    let server = server_with_data();
    server.swc("h 60s 5 COST 2 AT 1000000");
    for key in ["k", "h", "text", "missing"] {
        for (call, named) in [
            ("60s", ""),
            ("60s -1", "limit"),
            ("60s 5 COST x", "COST"),
            ("60s 5 PRECISION 61s", "PRECISION"),
            ("60s 5 PRECISION", "PRECISION"),
            ("60s 5 FORCE FORCE", "FORCE"),
            ("60s 5 60s 5", "window"),
            ("60s 5 AT -1", "AT"),
            ("60s 5 BANANA", "BANANA"),
        ] {
            refuses_of(&server, "RL.PEEK", &[(&format!("{key} {call}"), named)]);
        }
    }
    assert!(server.error("RL.PEEK text 60s 5").starts_with("WRONGTYPE"));
}

#[test]
fn precision_is_no_option_of_a_counter_or_a_refund() {
    let server = server_with_data();
    for key in ["k", "text", "missing"] {
        let swc = format!("{key} 60s 5 PRECISION 1s");
        refuses_of(
            &server,
            "RL.SWC",
            &[(&swc, "PRECISION"), (&format!("{swc} AT 1000"), "option")],
        );
    }
    refuses_of(&server, "RL.REFUND", &[("k 1 PRECISION 1s", "PRECISION")]);
}
