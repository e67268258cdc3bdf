//! The six fields of the reply, over worked timelines on one window: what is allowed, what is left,
//! how long to wait. Several windows are in `windows`, `PRECISION` in `precision`.

use crate::harness::Server;

#[test]
fn a_window_fills_denies_and_slides() {
    let server = Server::start();
    let slide = |at: u32| server.slide(&format!("k 60s 3 AT {at}"));
    assert_eq!(slide(1_000_000), [1, 3, 2, 0, 60_000, 60_000]);
    assert_eq!(slide(1_010_000), [1, 3, 1, 0, 60_000, 60_000]);
    assert_eq!(slide(1_010_000), [1, 3, 0, 0, 60_000, 60_000]);
    assert_eq!(slide(1_020_000), [0, 3, 0, 40_000, 50_000, 60_000]);
    // The first entry counts until the very millisecond at which it is as old as the window.
    assert_eq!(slide(1_059_999), [0, 3, 0, 1, 10_001, 60_000]);
    assert_eq!(slide(1_060_000), [1, 3, 0, 0, 60_000, 60_000]);
    assert_eq!(slide(1_060_000), [0, 3, 0, 10_000, 60_000, 60_000]);
}

#[test]
fn the_server_s_clock_is_used_without_at() {
    let server = Server::start();
    let before = server.now();
    assert_eq!(server.slide("k 60s 1"), [1, 1, 0, 0, 60_000, 60_000]);
    let after = server.now();
    let entries = server.entries("k");
    let stamp: i64 = entries[0].split_once(' ').unwrap().0.parse().unwrap();
    assert!((before..=after).contains(&stamp), "{before} <= {stamp} <= {after}");

    let [allowed, limit, remaining, retry_after, reset_after, window] = server.slide("k 60s 1");
    assert_eq!([allowed, limit, remaining, window], [0, 1, 0, 60_000]);
    assert_eq!(retry_after, reset_after);
    let left = stamp + 60_000 - retry_after;
    assert!((after..=server.now()).contains(&left), "the wait ends when the entry leaves");
}

#[test]
fn a_cost_is_taken_whole_or_not_at_all() {
    let server = Server::start();
    let slide = |call: &str| server.slide(&format!("k 60s 10 {call}"));
    assert_eq!(slide("COST 4 AT 1000000"), [1, 10, 6, 0, 60_000, 60_000]);
    assert_eq!(slide("COST 3 AT 1010000"), [1, 10, 3, 0, 60_000, 60_000]);
    // 2 units too many: the first entry leaves at 1060000 and is enough.
    assert_eq!(slide("COST 5 AT 1020000"), [0, 10, 3, 40_000, 50_000, 60_000]);
    // 4 too many: the first entry is just enough. 5 too many: the second must leave too.
    assert_eq!(slide("COST 7 AT 1020000"), [0, 10, 3, 40_000, 50_000, 60_000]);
    assert_eq!(slide("COST 8 AT 1020000"), [0, 10, 3, 50_000, 50_000, 60_000]);
    assert_eq!(slide("COST 10 AT 1020000"), [0, 10, 3, 50_000, 50_000, 60_000]);
    // More than the limit can never pass.
    assert_eq!(slide("COST 11 AT 1020000"), [0, 10, 3, -1, 50_000, 60_000]);
    assert_eq!(slide("COST 9007199254740991 AT 1020000"), [0, 10, 3, -1, 50_000, 60_000]);
    // What is left can still be taken, to the last unit.
    assert_eq!(slide("COST 3 AT 1020000"), [1, 10, 0, 0, 60_000, 60_000]);
    assert_eq!(slide("COST 1 AT 1020000"), [0, 10, 0, 40_000, 60_000, 60_000]);
}

#[test]
fn the_wait_is_exact_for_every_cost() {
    let server = Server::start();
    let costs = [3, 1, 4, 1, 5, 9, 2, 6];
    for (i, cost) in costs.iter().enumerate() {
        let at = 1_000_000 + 7_001 * i;
        assert_eq!(server.slide(&format!("log 60s 31 COST {cost} AT {at}"))[0], 1);
    }
    let asked_at = 1_050_000;
    let mut waits = Vec::new();
    for cost in 1..=31 {
        let ask = |at: i64| server.slide(&format!("probe:{{log}} 60s 31 COST {cost} AT {at}"));
        server.does("COPY log probe:{log} REPLACE");
        let [allowed, _, _, wait, _, _] = ask(asked_at);
        assert_eq!(allowed, 0, "31 of 31 are taken");
        assert_eq!(
            ask(asked_at + wait - 1)[0],
            0,
            "cost {cost}: denied 1 ms before its wait of {wait} is over"
        );
        assert_eq!(ask(asked_at + wait)[0], 1, "cost {cost}: admitted after its wait of {wait}");
        waits.push(wait);
    }
    waits.dedup();
    assert_eq!(waits.len(), costs.len(), "each entry ends some wait");
}

#[test]
fn a_limit_of_0_denies_all() {
    let server = Server::start();
    assert_eq!(server.slide("k 60s 0"), [0, 0, 0, -1, 0, 60_000]);
    assert_eq!(server.slide("k 60s 0 COST 5"), [0, 0, 0, -1, 0, 60_000]);
    assert_eq!(server.run::<i64>("EXISTS k"), 0);
    // A cost of 0 exceeds no limit.
    assert_eq!(server.slide("k 60s 0 COST 0"), [1, 0, 0, 0, 0, 60_000]);
}

#[test]
fn cost_0_asks_and_never_writes() {
    let server = Server::start();
    assert_eq!(server.slide("k 60s 10 COST 0"), [1, 10, 10, 0, 0, 60_000]);
    assert_eq!(server.slide("k 60s 10 COST 0 FORCE PRECISION 1s"), [1, 10, 10, 0, 0, 60_000]);
    assert_eq!(server.run::<i64>("EXISTS k"), 0);

    server.slide("k 60s 10 COST 4 AT 1000000");
    assert_eq!(server.slide("k 60s 10 COST 0 AT 1010000"), [1, 10, 6, 0, 50_000, 60_000]);
    assert_eq!(server.slide("k 60s 4 COST 0 AT 1010000"), [1, 4, 0, 0, 50_000, 60_000]);
    // Over the limit it is denied until usage is back at it.
    assert_eq!(server.slide("k 60s 3 COST 0 AT 1010000"), [0, 3, 0, 50_000, 50_000, 60_000]);
    assert_eq!(server.slide("k 60s 3 COST 0 AT 1059999"), [0, 3, 0, 1, 1, 60_000]);
    assert_eq!(server.slide("k 60s 3 COST 0 AT 1060000"), [1, 3, 3, 0, 0, 60_000]);
    assert_eq!(server.slide("k 60s 3 COST 0 FORCE AT 1010000"), [0, 3, 0, 50_000, 50_000, 60_000]);
    assert_eq!(server.entries("k"), ["1000000 a4+4"]);
}

#[test]
fn a_denial_does_not_prolong_itself() {
    let server = Server::start();
    server.slide("k 60s 1 AT 1000000");
    for at in (1_000_000..1_060_000).step_by(500) {
        let left = 1_060_000 - at;
        assert_eq!(server.slide(&format!("k 60s 1 AT {at}")), [0, 1, 0, left, left, 60_000]);
    }
    assert_eq!(server.slide("k 60s 1 AT 1060000"), [1, 1, 0, 0, 60_000, 60_000]);
}

#[test]
fn force_charges_whatever_the_verdict() {
    let server = Server::start();
    assert_eq!(server.slide("k 60s 3 COST 2 FORCE AT 1000000"), [1, 3, 1, 0, 60_000, 60_000]);
    // Denied and charged: 4 units are used, and for 2 more 3 must leave: the second entry's time.
    assert_eq!(server.slide("k 60s 3 COST 2 FORCE AT 1010000"), [0, 3, 0, 60_000, 60_000, 60_000]);
    assert_eq!(server.entries("k"), ["1000000 a2+2", "1010000 a4+2"]);
    // Without FORCE the same request waits as long as that said.
    assert_eq!(server.slide("k 60s 3 COST 2 AT 1010000"), [0, 3, 0, 60_000, 60_000, 60_000]);
    // For 1 more unit, 2 must leave: the first entry.
    assert_eq!(server.slide("k 60s 3 COST 1 AT 1010000"), [0, 3, 0, 50_000, 60_000, 60_000]);
    // More than the limit: charged too, and it could never have been admitted.
    assert_eq!(server.slide("k 60s 3 COST 5 FORCE AT 1020000"), [0, 3, 0, -1, 60_000, 60_000]);
    assert_eq!(server.entries("k")[2], "1020000 a9+5");
    // Unforced calls feel the charge: 5 units stay until 1080000.
    assert_eq!(server.slide("k 60s 3 COST 1 AT 1079999"), [0, 3, 0, 1, 1, 60_000]);
    assert_eq!(server.slide("k 60s 3 COST 1 AT 1080000"), [1, 3, 2, 0, 60_000, 60_000]);
}

#[test]
fn the_limit_may_change_from_call_to_call() {
    let server = Server::start();
    server.slide("k 60s 2 AT 1000000");
    server.slide("k 60s 2 AT 1010000");
    assert_eq!(server.slide("k 60s 2 AT 1020000"), [0, 2, 0, 40_000, 50_000, 60_000]);
    assert_eq!(server.slide("k 60s 4 AT 1020000"), [1, 4, 1, 0, 60_000, 60_000]);
    // Lowered to 1: 3 are used, so all 3 must leave before another passes.
    assert_eq!(server.slide("k 60s 1 AT 1030000"), [0, 1, 0, 50_000, 50_000, 60_000]);
    // Lowered to 2: 2 of the 3 must leave.
    assert_eq!(server.slide("k 60s 2 AT 1030000"), [0, 2, 0, 40_000, 50_000, 60_000]);
    assert_eq!(server.slide("k 60s 3 AT 1060000"), [1, 3, 0, 0, 60_000, 60_000]);
}

#[test]
fn the_window_may_change_from_call_to_call() {
    let server = Server::start();
    server.slide("k 60s 2 AT 1000000");
    server.slide("k 60s 2 AT 1050000");
    assert_eq!(server.slide("k 120s 2 AT 1060000"), [0, 2, 0, 60_000, 110_000, 120_000]);
    assert_eq!(server.slide("k 10s 1 AT 1060000"), [1, 1, 0, 0, 10_000, 10_000]);
    assert_eq!(server.slide("k 120s 2 AT 1060000"), [0, 2, 0, 110_000, 120_000, 120_000]);
}

#[test]
fn a_late_request_counts_the_whole_log() {
    let server = Server::start();
    server.slide("k 60s 3 AT 1000000");
    server.slide("k 60s 3 AT 1030000");
    // As if the clock had stepped back by 80 s: both entries lie ahead, both count.
    assert_eq!(server.slide("k 60s 3 AT 950000"), [1, 3, 0, 0, 140_000, 60_000]);
    assert_eq!(server.entries("k"), ["1000000 a1+1", "1030000 a2+1", "1030000 a3+1"]);
    assert_eq!(server.slide("k 60s 3 AT 950000"), [0, 3, 0, 110_000, 140_000, 60_000]);
    assert_eq!(server.slide("k 60s 3 AT 0"), [0, 3, 0, 1_060_000, 1_090_000, 60_000]);
    assert_eq!(server.slide("k 60s 3 COST 2 AT 950000"), [0, 3, 0, 140_000, 140_000, 60_000]);
    assert_eq!(server.slide("k 60s 3 AT 1059999")[0], 0);
    assert_eq!(server.slide("k 60s 3 AT 1060000"), [1, 3, 0, 0, 60_000, 60_000]);
}

#[test]
fn an_early_request_is_stamped_with_its_own_time() {
    let server = Server::start();
    let t = server.now() + 3_600_000;
    assert_eq!(server.slide(&format!("k 60s 2 AT {t}")), [1, 2, 1, 0, 60_000, 60_000]);
    assert_eq!(server.entries("k"), [format!("{t} a1+1")]);
    assert_eq!(server.slide(&format!("k 60s 1 AT {}", t + 59_999)), [0, 1, 0, 1, 1, 60_000]);
    assert_eq!(server.slide(&format!("k 60s 1 AT {}", t + 60_000)), [1, 1, 0, 0, 60_000, 60_000]);
}

#[test]
fn options_come_in_any_order_and_any_case() {
    let server = Server::start();
    let calls = [
        "RL.SLIDE k 60s 10 COST 3 FORCE PRECISION 1s AT 1000500",
        "rl.slide k 60s 10 at 1000500 precision 1s force cost 3",
        "Rl.Slide k 60s 10 Force Cost 3 At 1000500 Precision 1s",
        "RL.SLIDE k 60s 10 PRECISION 1000 AT 1000500 COST 3 fORCE",
        "RL.SLIDE k 60000 10 COST 3 FORCE PRECISION 1000ms AT 1000500",
    ];
    for call in calls {
        server.does("DEL k");
        let reply = server.run::<Vec<i64>>(call);
        assert_eq!(reply, [1, 10, 7, 0, 60_500, 60_000], "{call}");
        assert_eq!(server.entries("k"), ["1001000 a3+3"], "{call}");
    }
}

#[test]
fn the_largest_numbers_stay_exact() {
    let server = Server::start();
    let most = 9_007_199_254_740_991_i64;
    let slide = |cost: i64| server.slide(&format!("k 60s {most} COST {cost} AT 1000000"));
    assert_eq!(slide(1), [1, most, most - 1, 0, 60_000, 60_000]);
    assert_eq!(slide(most), [0, most, most - 1, 60_000, 60_000, 60_000]);
    assert_eq!(slide(most - 1), [1, most, 0, 0, 60_000, 60_000]);
    assert_eq!(slide(1), [0, most, 0, 60_000, 60_000, 60_000]);
    assert_eq!(server.entries("k"), ["1000000 a1+1", &format!("1000000 p{most}+{}", most - 1)]);
}

#[test]
fn resp2_and_resp3_answer_the_same_bytes() {
    let server = Server::start();
    let mut wire = server.wire();
    let admitted = "*6\r\n:1\r\n:5\r\n:4\r\n:0\r\n:60000\r\n:60000\r\n";
    let denied = "*6\r\n:0\r\n:0\r\n:0\r\n:-1\r\n:60000\r\n:60000\r\n";
    assert_eq!(wire.ask("RL.SLIDE two 60s 5 AT 1000000"), admitted);
    assert_eq!(wire.ask("RL.SLIDE two 60s 0 AT 1000000"), denied);
    assert!(wire.ask("HELLO 3").starts_with('%'), "the connection speaks RESP3 now");
    assert_eq!(wire.ask("RL.SLIDE three 60s 5 AT 1000000"), admitted);
    assert_eq!(wire.ask("RL.SLIDE three 60s 0 AT 1000000"), denied);
}
