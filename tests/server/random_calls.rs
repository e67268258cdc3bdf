//! A seeded stream of calls with every option, over several keys, to compare servers afterwards.

use crate::client::Client;
use crate::harness::Server;
use crate::random::Random;

/// How many calls a stream has.
const CALLS: u32 = 3_000;

/// Windows and limits; the stream never names a window shorter than the test can last.
const WINDOWS: [&str; 6] =
    ["1m 30", "1m 300 10m 500", "10m 60", "1h 400 2m 90", "5m 200 1h 1000 2h 1500", "1m 0"];

const OPTIONS: [&str; 6] =
    ["", "", "FORCE", "PRECISION 1s", "PRECISION 30s", "FORCE PRECISION 10s"];

/// Runs the stream. Fails unless both verdicts were common, and refunds too.
pub fn run_stream(server: &Server) {
    let mut random = Random::seeded();
    let mut at = server.now();
    let (mut admitted, mut refunded) = (0, 0);
    for _ in 0..CALLS {
        at += match random.below(100) {
            0 => 120_000,
            1..40 => 0,
            _ => random.below(2_000) as i64,
        };
        match random.below(10) {
            0 => refunded += i64::from(run_refund(server, &mut random, at) > 0),
            _ => admitted += i64::from(run_call(server, &mut random, at)),
        }
    }
    assert!((300..2_400).contains(&admitted), "{admitted} of {CALLS} were admitted");
    assert!(refunded > 100, "{refunded} of {CALLS} took something back");
    run_drops(server);
    for number in 0..5 {
        assert_eq!(server.slide(&format!("log{number} 2h 1000000 AT {at}"))[0], 1);
        assert_eq!(server.swc(&format!("counters{number} 2h 1000000 AT {at}"))[0], 1);
    }
}

/// One random call to a log or to counters; whether it was admitted.
fn run_call(server: &Server, random: &mut Random, at: i64) -> bool {
    let stamp = match random.below(20) {
        // Late, far ahead, or left to the server's clock.
        0 => format!("AT {}", at - random.below(100_000) as i64),
        1 if random.below(20) == 0 => format!("AT {}", at + 86_400_000),
        1..4 => String::new(),
        _ => format!("AT {at}"),
    };
    let (number, cost) = (random.below(5), random.below(5));
    let (windows, options) = (random.one_of(&WINDOWS), random.one_of(&OPTIONS));
    let call = format!("{number} {windows} COST {cost} {stamp}");
    match random.below(5) {
        0 => {
            let key = random.one_of(&["log", "counters"]);
            server.peek(&format!("{key}{call} {options}"));
            false
        }
        1 | 2 => {
            let force = if options.starts_with("FORCE") { "FORCE" } else { "" };
            server.swc(&format!("counters{call} {force}"))[0] == 1
        }
        _ => server.slide(&format!("log{call} {options}"))[0] == 1,
    }
}

/// One random refund; the units that it took back.
fn run_refund(server: &Server, random: &mut Random, at: i64) -> i64 {
    let (key, number, units) =
        (random.one_of(&["log", "counters"]), random.below(5), 1 + random.below(9));
    server.refund(&format!("{key}{number} {units} AT {at}"))
}

/// What chance seldom brings: logs dropped because all of it is stale, or from far ahead; and a backlog.
fn run_drops(server: &Client) {
    for i in 0..300 {
        server.slide(&format!("stale 60s 1000 AT {}", 1_000_000 + i));
        server.slide(&format!("backlog 60s 1000 AT {}", 1_000_000 + i));
    }
    assert_eq!(server.slide("stale 60s 1000 AT 2000000")[2], 999);
    assert_eq!(server.run::<i64>("ZCARD stale"), 1);
    server.slide("backlog 60s 1000 AT 1060200");
    assert_eq!(server.run::<i64>("ZCARD backlog"), 301 - 128);
    server.slide(&format!("ahead 60s 5 AT {}", server.now() + 3_600_000));
    assert_eq!(server.slide("ahead 60s 5")[2], 4);
    assert_eq!(server.run::<i64>("ZCARD ahead"), 1);
}
