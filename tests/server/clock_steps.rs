//! A clock that steps, by 1 ms to 10 years, back or forth: what a limiter then answers, until when it
//! denies, and what becomes of its key.

use crate::clock::{Clock, DAY_MS, HOUR_MS, MINUTE_MS, START_MS, TEN_YEARS_MS, assert_wait};
use crate::harness::{Server, wait_until};
use crate::random::Random;

/// Windows, as they are written and in milliseconds.
const WINDOWS: [(&str, i64); 4] =
    [("1s", 1_000), ("1m", MINUTE_MS), ("1h", HOUR_MS), ("1d", DAY_MS)];

/// Steps, for a window of that length: fixed ones, and those on both sides of where an answer changes.
fn steps_ms(window_ms: i64) -> Vec<i64> {
    let fixed = [1, 1_000, HOUR_MS, DAY_MS, TEN_YEARS_MS];
    let halves = (1..=4).flat_map(|halves| {
        let near_ms = halves * window_ms / 2;
        [near_ms - 1, near_ms, near_ms + 1]
    });
    fixed.into_iter().chain(halves).chain([10 * window_ms]).collect()
}

/// Every step with every window.
fn cases() -> impl Iterator<Item = (&'static str, i64, i64)> {
    let steps =
        |(word, window_ms)| steps_ms(window_ms).into_iter().map(move |d| (word, window_ms, d));
    WINDOWS.into_iter().flat_map(steps)
}

/// A limit of 3: one unit was taken half a window before the step, and these when it comes.
fn charge_log(clock: &Clock, server: &Server, window: (&str, i64), units: i64) {
    let (word, window_ms) = window;
    server.does("DEL k");
    clock.freeze_at(START_MS - window_ms / 2);
    server.slide(&format!("k {word} 3"));
    clock.freeze_at(START_MS);
    assert_eq!(server.slide(&format!("k {word} 3 COST {units}"))[0], 1);
}

#[test]
fn after_a_step_back_a_full_log_denies_no_longer_than_step_and_window() {
    let clock = Clock::frozen();
    let server = clock.server();
    let (mut denied, mut fresh) = (0, 0);
    for (word, window_ms, back_ms) in cases() {
        charge_log(&clock, &server, (word, window_ms), 2);
        clock.step_by(-back_ms);
        let call = format!("RL.SLIDE k {word} 3");
        let reply = server.verdict(&call);
        if back_ms > 2 * window_ms {
            assert_eq!(reply, [1, 3, 2, 0, window_ms, window_ms], "{word}, back by {back_ms}");
            fresh += 1;
        } else {
            let (retry_ms, reset_ms) = (back_ms + window_ms / 2, back_ms + window_ms);
            assert_eq!(
                reply,
                [0, 3, 0, retry_ms, reset_ms, window_ms],
                "{word}, back by {back_ms}"
            );
            assert_wait(&clock, &server, &call, retry_ms);
            denied += 1;
        }
    }
    assert_eq!(server.info("rl_clocks_ahead"), fresh.to_string());
    assert!(denied > 20 && fresh > 10, "{denied} denied, {fresh} fresh");
}

#[test]
fn after_a_step_back_a_log_takes_what_room_it_has_and_then_denies_no_longer() {
    let clock = Clock::frozen();
    let server = clock.server();
    for (word, window_ms, back_ms) in cases().filter(|(_, window_ms, d)| *d <= 2 * window_ms) {
        charge_log(&clock, &server, (word, window_ms), 1);
        clock.step_by(-back_ms);
        let call = format!("RL.SLIDE k {word} 3");
        let reset_ms = back_ms + window_ms;
        let context = format!("{word}, back by {back_ms}");
        assert_eq!(server.verdict(&call), [1, 3, 0, 0, reset_ms, window_ms], "{context}");
        // Stamped as the newest: in the order in which they came.
        let stamps = [START_MS - window_ms / 2, START_MS, START_MS];
        let entries: Vec<String> =
            (1..).zip(stamps).map(|(total, stamp_ms)| format!("{stamp_ms} a{total}+1")).collect();
        assert_eq!(server.entries("k"), entries, "{context}");
        assert_eq!(server.refund("k 1"), 1, "{context}");
        assert_eq!(server.verdict(&call)[0], 1, "{context}");
        let retry_ms = back_ms + window_ms / 2;
        assert_eq!(server.verdict(&call), [0, 3, 0, retry_ms, reset_ms, window_ms], "{context}");
        assert_wait(&clock, &server, &call, retry_ms);
    }
}

#[test]
fn after_a_step_forth_a_log_counts_what_has_not_left() {
    let clock = Clock::frozen();
    let server = clock.server();
    for (word, window_ms, forth_ms) in cases() {
        charge_log(&clock, &server, (word, window_ms), 2);
        clock.step_by(forth_ms);
        let expected = match forth_ms {
            _ if forth_ms < window_ms / 2 => {
                [0, 3, 0, window_ms / 2 - forth_ms, window_ms - forth_ms, window_ms]
            }
            _ if forth_ms < window_ms => [1, 3, 0, 0, window_ms, window_ms],
            _ => [1, 3, 2, 0, window_ms, window_ms],
        };
        assert_eq!(server.slide(&format!("k {word} 3")), expected, "{word}, forth by {forth_ms}");
    }
}

/// Units of a limit of 3, taken in the middle of an aligned window.
fn charge_counter(clock: &Clock, server: &Server, window: (&str, i64), units: i64) {
    let (word, window_ms) = window;
    server.does("DEL k");
    clock.freeze_at(START_MS + window_ms / 2);
    assert_eq!(server.swc(&format!("k {word} 3 COST {units}"))[0], 1);
}

#[test]
fn after_a_step_back_a_full_counter_denies_no_longer_than_step_and_window() {
    let clock = Clock::frozen();
    let server = clock.server();
    let (mut denied, mut fresh) = (0, 0);
    for (word, window_ms, back_ms) in cases() {
        charge_counter(&clock, &server, (word, window_ms), 3);
        clock.step_by(-back_ms);
        let now_ms = START_MS + window_ms / 2 - back_ms;
        let call = format!("RL.SWC k {word} 3");
        let reply = server.verdict(&call);
        let context = format!("{word}, back by {back_ms}: {reply:?}");
        // Far ahead is a start more than a window after the time that it is now.
        if START_MS > now_ms + window_ms {
            let reset_ms = window_ms - now_ms % window_ms + 1;
            assert_eq!(reply, [1, 3, 2, 0, reset_ms, window_ms], "{context}");
            fresh += 1;
        } else {
            // 3 are too many until 1 ms into the next window.
            let retry_ms = START_MS + window_ms + 1 - now_ms;
            assert_eq!((reply[0], reply[3]), (0, retry_ms), "{context}");
            assert!(retry_ms <= back_ms + window_ms, "{context}");
            assert_wait(&clock, &server, &call, retry_ms);
            denied += 1;
        }
    }
    assert_eq!(server.info("rl_clocks_ahead"), fresh.to_string());
    assert!(denied > 20 && fresh > 20, "{denied} denied, {fresh} fresh");
}

#[test]
fn after_a_step_back_a_counter_takes_what_room_it_has_and_gives_back_what_it_took() {
    let clock = Clock::frozen();
    let server = clock.server();
    for (word, window_ms, back_ms) in cases() {
        charge_counter(&clock, &server, (word, window_ms), 2);
        clock.step_by(-back_ms);
        let context = format!("{word}, back by {back_ms}");
        let is_far = back_ms > window_ms + window_ms / 2;
        assert_eq!(server.refund("k 1"), i64::from(!is_far), "{context}");
        let swc = || server.swc(&format!("k {word} 3"));
        let admitted: i64 = (0..4).map(|_| swc()[0]).sum();
        assert_eq!(admitted, if is_far { 3 } else { 2 }, "{context}");
    }
}

#[test]
fn after_a_step_forth_a_counter_counts_its_share() {
    let clock = Clock::frozen();
    let server = clock.server();
    for (word, window_ms, forth_ms) in cases() {
        charge_counter(&clock, &server, (word, window_ms), 3);
        clock.step_by(forth_ms);
        let since_ms = window_ms / 2 + forth_ms;
        let usage = match since_ms / window_ms {
            0 => 3,
            1 => 3 * (2 * window_ms - since_ms) / window_ms,
            _ => 0,
        };
        let reply = server.swc(&format!("k {word} 3"));
        let expected = (i64::from(usage < 3), (2 - usage).max(0));
        assert_eq!((reply[0], reply[2]), expected, "{word}, forth by {forth_ms}");
    }
}

/// While the clock only falls behind, a log goes by no other: no stretch of true time as long as the
/// window sees more than the limit.
#[test]
fn no_window_of_true_time_holds_more_than_the_limit_while_the_clock_falls_behind() {
    const LIMIT: i64 = 20;
    let clock = Clock::frozen();
    let server = clock.server();
    let mut random = Random::seeded();
    let (mut true_ms, mut behind_ms, mut steps) = (0, 0, 0);
    let mut admitted: Vec<(i64, i64)> = Vec::new();
    for _ in 0..3_000 {
        true_ms += random.below(4_000) as i64;
        // Farther than two windows behind the newest stamp, the log would count as none of its time.
        let newest_ms = admitted.last().map_or(0, |(at_ms, _)| *at_ms);
        if random.below(40) == 0 && true_ms - newest_ms < MINUTE_MS / 2 {
            behind_ms += random.below(MINUTE_MS as u64) as i64;
            steps += 1;
        }
        clock.freeze_at(START_MS + true_ms - behind_ms);
        let cost = 1 + random.below(3) as i64;
        let reply = server.slide(&format!("k 1m {LIMIT} COST {cost}"));
        if reply[0] == 1 {
            admitted.push((true_ms, cost));
        } else {
            assert!(reply[3] <= 3 * MINUTE_MS, "denied for longer than step and window: {reply:?}");
        }
    }
    assert_eq!(server.info("rl_clocks_ahead"), "0");
    assert!(steps > 30 && admitted.len() > 300, "{steps} steps, {} admitted", admitted.len());
    for (last, (until_ms, _)) in admitted.iter().enumerate() {
        let inside = admitted[..=last].iter().filter(|(at_ms, _)| *at_ms > until_ms - MINUTE_MS);
        let units: i64 = inside.map(|(_, cost)| cost).sum();
        assert!(units <= LIMIT, "{units} units in the minute until {until_ms}");
    }
}

#[test]
fn ten_years_forth_every_limiter_has_expired() {
    let clock = Clock::frozen();
    let server = clock.server();
    for number in 0..50 {
        server.slide(&format!("log:{number} 1d 1"));
        server.swc(&format!("counters:{number} 1d 1"));
    }
    clock.step_by(TEN_YEARS_MS);
    let fresh = [1, 1, 0, 0, DAY_MS, DAY_MS];
    assert_eq!(server.slide("log:0 1d 1"), fresh);
    assert_eq!(server.swc("counters:0 1d 1")[..3], fresh[..3]);
    wait_until("the server to expire the others", || server.run::<i64>("DBSIZE") == 2);
}

/// Keys whose expiry lies ten years ahead, and go on being used: they are kept no bigger and no longer
/// than others.
#[test]
fn ten_years_back_logs_are_trimmed_and_expire_as_before() {
    let clock = Clock::frozen();
    let server = clock.server();
    let keys = ["log", "coarse", "two", "counters"];
    let calls = [
        "RL.SLIDE log 1m 20",
        "RL.SLIDE coarse 1m 20 PRECISION 10s",
        "RL.SLIDE two 1s 2 1m 20",
        "RL.SWC counters 1m 20",
    ];
    let ask = || calls.map(|call| server.verdict(call)[0]);
    for _ in 0..100 {
        ask();
        clock.step_by(500);
    }
    clock.step_by(-TEN_YEARS_MS);
    assert_eq!(ask(), [1; 4], "all start afresh");
    let mut random = Random::seeded();
    let mut admitted = [0; 4];
    let asked_ms = 50 * MINUTE_MS;
    let end_ms = START_MS - TEN_YEARS_MS + asked_ms;
    let mut now_ms = START_MS - TEN_YEARS_MS + MINUTE_MS;
    while now_ms < end_ms {
        now_ms += 500 + random.below(2_500) as i64;
        clock.freeze_at(now_ms);
        for (admitted, allowed) in admitted.iter_mut().zip(ask()) {
            *admitted += allowed;
        }
        let sizes = keys[..3].iter().map(|key| server.run::<i64>(&format!("ZCARD {key}")));
        // A charge removes what has left; while all are denied nothing is added.
        assert!(sizes.max().unwrap() <= 20, "a log has more entries than its window holds");
    }
    for (key, admitted) in keys.iter().zip(admitted) {
        // A precision of 10 s may count a unit 10 s too long.
        let (least, most) = (asked_ms / MINUTE_MS * 16, asked_ms / MINUTE_MS * 21);
        assert!((least..=most).contains(&admitted), "{key}: {admitted} in {asked_ms} ms");
        let left_ms = server.expiry(key) - now_ms;
        assert!((1..=2 * MINUTE_MS).contains(&left_ms), "{key} expires in {left_ms} ms");
    }
    assert_eq!(server.counters("counters").len(), 1);
}
