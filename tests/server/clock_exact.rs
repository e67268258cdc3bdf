//! On the server's own clock every field is exact to the millisecond: it stands still and is moved by
//! just so much, so that no test has to wait or to allow for time that passes.

use redis::Value;

use crate::client::six_fields;
use crate::clock::{Clock, START_MS, assert_wait};
use crate::harness::{Server, server_is_at_least};
use crate::random::Random;

#[test]
fn a_log() {
    let clock = Clock::frozen();
    let server = clock.server();
    let slide = || server.slide("k 10s 2 60s 3");
    assert_eq!(slide(), [1, 2, 1, 0, 10_000, 10_000]);
    clock.step_by(4_000);
    assert_eq!(slide(), [1, 2, 0, 0, 10_000, 10_000]);
    clock.step_by(5_999);
    assert_eq!(slide(), [0, 2, 0, 1, 4_001, 10_000]);
    clock.step_by(1);
    assert_eq!(slide(), [1, 2, 0, 0, 10_000, 10_000]);
    clock.step_by(10_000);
    assert_eq!(slide(), [0, 3, 0, 40_000, 50_000, 60_000]);
    clock.step_by(39_999);
    assert_eq!(slide(), [0, 3, 0, 1, 10_001, 60_000]);
    clock.step_by(1);
    assert_eq!(slide(), [1, 3, 0, 0, 60_000, 60_000]);
    let entries = [(4_000, "a2+1"), (10_000, "a3+1"), (60_000, "a4+1")];
    let entries = entries.map(|(since_ms, member)| format!("{} {member}", START_MS + since_ms));
    assert_eq!(server.entries("k"), entries);
    let least_ms = START_MS + 120_000;
    assert!((least_ms..=least_ms + 16_000).contains(&server.expiry("k")));
}

#[test]
fn a_log_with_a_precision() {
    let clock = Clock::frozen();
    let server = clock.server();
    let slide = || server.slide("k 10s 3 PRECISION 4s");
    // Stamped with the next tick, 3 s from now.
    clock.step_by(1_000);
    assert_eq!(slide(), [1, 3, 2, 0, 13_000, 10_000]);
    clock.step_by(3_000);
    assert_eq!(slide(), [1, 3, 1, 0, 10_000, 10_000]);
    clock.step_by(1);
    assert_eq!(slide(), [1, 3, 0, 0, 13_999, 10_000]);
    assert_eq!(slide(), [0, 3, 0, 9_999, 13_999, 10_000]);
    let (first_ms, second_ms) = (START_MS + 4_000, START_MS + 8_000);
    assert_eq!(server.entries("k"), [format!("{first_ms} a2+2"), format!("{second_ms} a3+1")]);
}

#[test]
fn counters() {
    let clock = Clock::frozen();
    let server = clock.server();
    let swc = |cost: i64| server.swc(&format!("k 60s 10 COST {cost}"));
    assert_eq!(swc(8), [1, 10, 2, 0, 112_501, 60_000]);
    // 30 s into the next window: half of 8 and 3.
    clock.step_by(90_000);
    assert_eq!(swc(3), [1, 10, 3, 0, 70_001, 60_000]);
    assert_eq!(swc(4), [0, 10, 3, 1, 70_001, 60_000]);
    clock.step_by(1);
    assert_eq!(swc(4), [1, 10, 0, 0, 81_428, 60_000]);
    assert_eq!(server.counters("k"), [format!("60000 {} 7 8", START_MS + 60_000)]);
    assert_eq!(server.expiry("k"), START_MS + 180_000);
}

#[test]
fn refunds_of_counters_follow_the_clock() {
    let clock = Clock::frozen();
    let server = clock.server();
    server.swc("k 60s 10 COST 8");
    clock.step_by(60_000);
    assert_eq!(server.refund("k 3"), 3);
    assert_eq!(server.peek("k 60s 10"), [1, 10, 5, 0, 48_001, 60_000]);
    // Two windows on nothing is left to give back, but that the key has not expired yet.
    clock.step_by(60_000);
    assert_eq!(server.refund("k 3"), 0);
}

#[test]
fn a_transaction() {
    let clock = Clock::frozen();
    let server = clock.server();
    server.slide("log 60s 3");
    server.swc("counters 60s 3");
    clock.step_by(15_000);
    server.does("MULTI");
    for call in [
        "RL.SLIDE log 60s 3",
        "RL.SLIDE log 60s 3 COST 2",
        "RL.SLIDE log 60s 3",
        "RL.PEEK log 60s 3",
        "RL.SWC counters 60s 3 COST 2",
        "RL.SWC counters 60s 3",
        "RL.PEEK counters 60s 3",
    ] {
        assert_eq!(server.run::<String>(call), "QUEUED");
    }
    let replies: Vec<Vec<i64>> = server.run("EXEC");
    assert_eq!(
        replies,
        [
            [1, 3, 1, 0, 60_000, 60_000],
            [0, 3, 1, 45_000, 60_000, 60_000],
            [1, 3, 0, 0, 60_000, 60_000],
            [0, 3, 0, 45_000, 60_000, 60_000],
            [1, 3, 0, 0, 85_001, 60_000],
            [0, 3, 0, 45_001, 85_001, 60_000],
            [0, 3, 0, 45_001, 85_001, 60_000],
        ]
    );
}

#[test]
fn a_script() {
    let clock = Clock::frozen();
    let server = clock.server();
    server.slide("k 60s 300 COST 100");
    clock.step_by(20_000);
    let script = "local last
        for i = 1, 1000 do last = redis.call('RL.SLIDE', KEYS[1], '60s', 300) end
        return last";
    let last: Value = server.args(&["EVAL", script, "1", "k"]);
    assert_eq!(six_fields(last), [0, 300, 0, 40_000, 60_000, 60_000]);
    assert_eq!(server.run::<i64>("ZCARD k"), 201);
}

/// Whether time stands still in a script and a transaction, as it does for what expires.
fn stands_still(server: &Server) -> bool {
    let stamps = server.entries("k");
    let stamps =
        stamps.iter().map(|entry| entry.split(' ').next().unwrap().parse::<i64>().unwrap());
    let stamps: Vec<i64> = stamps.collect();
    let [first, second] = stamps[..] else { panic!("two calls were admitted: {stamps:?}") };
    assert!(first == second || second - first >= 20, "{stamps:?}");
    first == second
}

#[test]
fn in_a_transaction_that_takes_long_time_stands_still_from_7_2_on() {
    let server = Server::start();
    server.does("MULTI");
    for line in ["RL.SLIDE k 60s 3", "DEBUG SLEEP 0.05", "RL.SLIDE k 60s 3"] {
        assert_eq!(server.run::<String>(line), "QUEUED");
    }
    server.does("EXEC");
    assert_eq!(stands_still(&server), server_is_at_least(7, 2));
}

#[test]
fn in_a_script_that_takes_long_time_stands_still_from_7_2_on() {
    let server = Server::start();
    let script = "redis.call('RL.SLIDE', KEYS[1], '60s', 3)
        for i = 1, 20000000 do end
        return redis.call('RL.SLIDE', KEYS[1], '60s', 3)";
    let _: Value = server.args(&["EVAL", script, "1", "k"]);
    assert_eq!(stands_still(&server), server_is_at_least(7, 2));
}

#[test]
fn waits_of_logs() {
    for words in [
        "10s 3",
        "60s 5 COST 2",
        "1h 10 COST 10",
        "1d 1",
        "10s 2 60s 5 1h 40",
        "60s 20 40s 13 COST 3",
        "60s 9 PRECISION 7s",
        "10s 4 1h 200 PRECISION 9999ms COST 2",
    ] {
        waits_are_exact("RL.SLIDE", words);
    }
}

#[test]
fn waits_of_counters() {
    for words in [
        "10s 3",
        "60s 5 COST 2",
        "1h 10 COST 10",
        "1d 1",
        "10s 2 60s 5 1h 40",
        "60s 20 40s 13 COST 3",
        "1h 400 COST 77",
    ] {
        waits_are_exact("RL.SWC", words);
    }
}

/// Asks in bursts, with pauses of up to the window between, and after each denial when its wait is over.
fn waits_are_exact(command: &str, words: &str) {
    let clock = Clock::frozen();
    let server = clock.server();
    let mut random = Random::seeded();
    let call = format!("{command} k {words}");
    let (mut window_ms, mut waits) = (1_000, 0);
    for _ in 0..150 {
        let pause_ms = if random.below(8) == 0 { window_ms } else { window_ms / 100 };
        clock.step_by(random.below(pause_ms) as i64);
        let reply = server.verdict(&call);
        window_ms = reply[5] as u64;
        if reply[0] == 1 {
            continue;
        }
        assert_eq!(server.peek(&format!("k {words}")), reply, "{call}");
        assert_wait(&clock, &server, &call, reply[3]);
        waits += 1;
    }
    assert!(waits > 20, "{call}: {waits} of 150 had to wait");
}

#[test]
fn a_clock_far_ahead_is_counted_each_time_and_logged_once_a_second() {
    let clock = Clock::frozen();
    let server = clock.server();
    server.slide("log 60s 5");
    server.swc("counters 60s 5");
    clock.step_by(-3_600_000);
    let denied = |call: &str| assert_eq!(server.verdict(&format!("{call} 60s 0"))[0], 0, "{call}");
    let seen = |server: &Server| (server.info("rl_clocks_ahead"), server.module_log().len());
    let before = server.module_log().len();
    for _ in 0..5 {
        denied("RL.SLIDE log");
        denied("RL.SWC counters");
        denied("RL.PEEK log");
    }
    assert_eq!(seen(&server), ("10".to_string(), before + 1));
    assert!(server.module_log().last().unwrap().contains("clock far ahead"));
    for (by_ms, calls, lines) in [(999, 11, 1), (1, 12, 2), (0, 13, 2), (-999, 14, 2), (-1, 15, 3)]
    {
        clock.step_by(by_ms);
        denied("RL.SLIDE log");
        assert_eq!(seen(&server), (calls.to_string(), before + lines), "{by_ms}");
    }
}
