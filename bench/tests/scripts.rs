//! The scripts must answer what the module answers, or the comparison is of different things.

use redis_rl_bench::contenders::{Ask, Contender, LUA_COUNTER, LUA_LOG, SLIDE, SWC};
use redis_rl_bench::server::Setup;
use redis_rl_bench::wire::{Reply, Wire};

/// The same numbers every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn answer(contender: &Contender, ask: &Ask, wire: &mut Wire) -> Vec<i64> {
    match wire.run(&(contender.ask)(ask)) {
        Reply::Array(fields) => fields.iter().map(Reply::integer).collect(),
        other => panic!("no verdict: {other:?}"),
    }
}

/// Asks both for the same, over some windows' time.
fn compare(native: &Contender, script: &Contender) {
    let server = Setup::plain().start();
    let mut wire = server.connect();
    let digest = wire.run_words(&["SCRIPT", "LOAD", script.script.unwrap()]).text().to_string();
    let (mut admitted, mut denied) = (0, 0);
    for (limit, cost_below) in [(1, 2), (5, 3), (20, 8), (3, 6)] {
        let mut random = Random(limit);
        let mut at_ms = 1_796_037_190_000;
        for index in 0..2_000 {
            at_ms += random.below(4) * random.below(10_000);
            let cost = random.below(cost_below) + 1;
            let windows = &[(60_000, limit)];
            let ask = |key, digest| Ask {
                key,
                windows,
                cost,
                precision_ms: None,
                at_ms: Some(at_ms),
                client_ms: at_ms,
                index,
                digest,
            };
            let (ours, theirs) = (format!("native:{limit}"), format!("script:{limit}"));
            let native = answer(native, &ask(&ours, ""), &mut wire);
            let script = answer(script, &ask(&theirs, &digest), &mut wire);
            assert_eq!(native, script, "limit {limit}, cost {cost}, at {at_ms}, call {index}");
            *if native[0] == 1 { &mut admitted } else { &mut denied } += 1;
        }
    }
    assert!(admitted > 500 && denied > 500, "{admitted} admitted, {denied} denied");
}

#[test]
fn the_log_in_lua_answers_as_rl_slide() {
    compare(&SLIDE, &LUA_LOG);
}

#[test]
fn the_counter_in_lua_answers_as_rl_swc() {
    compare(&SWC, &LUA_COUNTER);
}
