//! The main job on real input: a long stream of requests with their times, from a real client to a
//! real server, answered field for field as the brute-force model answers.
//!
//! The requests are those of a day's morning at an API: steady clients, bursts, a client that keeps
//! trying while it is denied, costs that vary, clocks that step back. Their times go out as `AT`, so
//! the verdicts do not depend on how fast the machine is; and as keys expire on the server's clock, that
//! stands still.

use crate::clock::Clock;
use crate::harness::{Server, compact_entries_option};
use crate::model::{Call, Charged, CounterModel, Model, Reply};
use crate::random::Random;

/// Requests in the stream, unless `RL_STREAM_REQUESTS` says otherwise.
const REQUESTS: usize = 100_000;

/// Requests sent before their answers are read.
const PIPELINED: usize = 500;

/// How the clients of one limiter ask.
struct Traffic {
    key: &'static str,
    /// The arguments for windows, and the same as numbers. Calls take turns.
    calls: &'static [(&'static str, &'static [(u64, u64)])],
    /// Costs are 1 to this.
    max_cost: u64,
    /// Of 100 requests, so many are forced.
    forced: u64,
    precision_ms: Option<u64>,
    /// Of 1,000 requests, so many come from a clock that is a little late.
    late: u64,
}

const M: u64 = 60_000;
const H: u64 = 60 * M;

const TRAFFIC: [Traffic; 8] = [
    Traffic::new("login", &[("10m 40", &[(10 * M, 40)])]),
    Traffic::new("search", &[("10m 900 1h 4000", &[(10 * M, 900), (H, 4_000)])]),
    Traffic { max_cost: 90, ..Traffic::new("tokens", &[("15m 9000", &[(15 * M, 9_000)])]) },
    Traffic { forced: 10, max_cost: 9, ..Traffic::new("bytes", &[("10m 700", &[(10 * M, 700)])]) },
    Traffic { late: 80, ..Traffic::new("late", &[("12m 300", &[(12 * M, 300)])]) },
    Traffic {
        precision_ms: Some(5_000),
        max_cost: 4,
        ..Traffic::new("coarse", &[("10m 2000", &[(10 * M, 2_000)])])
    },
    Traffic::new(
        "plans",
        &[
            ("10m 100 20m 180 1h 400", &[(10 * M, 100), (20 * M, 180), (H, 400)]),
            ("10m 60 20m 200 1h 500", &[(10 * M, 60), (20 * M, 200), (H, 500)]),
        ],
    ),
    // Two windows in calls of their own: the longer one keeps the log for both.
    Traffic {
        max_cost: 2,
        ..Traffic::new("turns", &[("10m 150", &[(10 * M, 150)]), ("3h 1500", &[(3 * H, 1_500)])])
    },
];

impl Traffic {
    const fn new(
        key: &'static str,
        calls: &'static [(&'static str, &'static [(u64, u64)])],
    ) -> Self {
        Self { key, calls, max_cost: 1, forced: 0, precision_ms: None, late: 0 }
    }

    /// The next request at `now_ms`: as it is sent, and as the model takes it.
    fn request(
        &self,
        command: &str,
        random: &mut Random,
        now_ms: u64,
        clock_ms: u64,
    ) -> (redis::Cmd, Call) {
        let (words, windows) = self.calls[random.below(self.calls.len() as u64) as usize];
        let lateness_ms = match random.below(1_000) < self.late {
            true => 1 + random.below(20_000),
            false => 0,
        };
        let call = Call {
            cost: 1 + random.below(self.max_cost),
            force: random.below(100) < self.forced,
            precision_ms: self.precision_ms,
            clock_ms,
            ..Call::new(windows, now_ms - lateness_ms)
        };
        let mut command = redis::cmd(command);
        command.arg(self.key).arg(words.split(' ').collect::<Vec<_>>());
        command.arg("COST").arg(call.cost).arg("AT").arg(call.now_ms);
        if call.force {
            command.arg("FORCE");
        }
        if let Some(precision_ms) = call.precision_ms {
            command.arg("PRECISION").arg(format!("{precision_ms}ms"));
        }
        (command, call)
    }
}

/// Time until the next request of the whole stream: bursts of requests in the same millisecond,
/// the pace of a busy API, and now and then a pause that lets windows empty.
fn pause_ms(random: &mut Random) -> u64 {
    match random.below(10_000) {
        0 => random.below(30 * M),
        1..200 => random.below(8_000),
        200..5_000 => 0,
        _ => random.below(240),
    }
}

/// Sends the stream to `command`, and compares every reply with what `answer` says of the call to
/// the limiter of that number. Tells the time of the last request.
fn run(
    server: &Server,
    command: &str,
    traffic: &[Traffic],
    mut answer: impl FnMut(usize, &Call) -> Reply,
) -> u64 {
    let requests = match std::env::var("RL_STREAM_REQUESTS") {
        Ok(requests) => requests.parse().expect("RL_STREAM_REQUESTS is a number"),
        Err(_) => REQUESTS,
    };
    let mut random = Random::seeded();
    let mut connection = server.plain_connection();
    let clock_ms = server.now() as u64;
    let mut now_ms = clock_ms;
    let (mut admitted, mut answered) = (0, 0);
    while answered < requests {
        let mut pipeline = redis::pipe();
        let mut expected: Vec<(Call, Reply)> = Vec::new();
        for _ in 0..PIPELINED.min(requests - answered) {
            now_ms += pause_ms(&mut random);
            let limiter = random.below(traffic.len() as u64) as usize;
            let (sent, call) = traffic[limiter].request(command, &mut random, now_ms, clock_ms);
            pipeline.add_command(sent);
            let reply = answer(limiter, &call);
            admitted += usize::from(reply[0] == 1);
            expected.push((call, reply));
        }
        let replies: Vec<Reply> = pipeline.query(&mut connection).unwrap();
        assert_eq!(replies.len(), expected.len());
        for (reply, (call, expected)) in replies.iter().zip(&expected) {
            assert_eq!(reply, expected, "request {answered}: {call:?}");
            answered += 1;
        }
    }
    let share = admitted * 100 / answered;
    println!("{answered} requests answered as the model answers, {share} % of them admitted");
    assert!((20..=80).contains(&share), "both verdicts must be common: {share} % admitted");
    now_ms
}

fn run_slide(server: &Server) {
    let mut models: Vec<Model> = TRAFFIC.iter().map(|_| Model::default()).collect();
    let now_ms = run(server, "RL.SLIDE", &TRAFFIC, |limiter, call| models[limiter].slide(call));
    for (traffic, model) in TRAFFIC.iter().zip(&models) {
        compare_stored(server, traffic, model, now_ms);
    }
}

/// What is stored is what the model holds, as far as it still counts.
fn compare_stored(server: &Server, traffic: &Traffic, model: &Model, now_ms: u64) {
    let longest_ms = traffic.calls.iter().flat_map(|(_, windows)| windows.iter());
    let longest_ms = longest_ms.map(|(window_ms, _)| *window_ms).max().unwrap();
    let counts = |entry: &Charged| now_ms < entry.stamp_ms + longest_ms;
    let stored: Vec<(String, f64)> = server.run(&format!("ZRANGE {} 0 -1 WITHSCORES", traffic.key));
    let stored = stored.iter().map(|(member, score)| {
        let (total, cost) = member[1..].split_once('+').expect("a member has a total and a cost");
        Charged {
            stamp_ms: *score as u64,
            total: total.parse().unwrap(),
            cost: cost.parse().unwrap(),
        }
    });
    let stored: Vec<Charged> = stored.filter(counts).collect();
    let held: Vec<Charged> = model.entries.iter().copied().filter(counts).collect();
    assert!(!held.is_empty(), "{} is empty at the end", traffic.key);
    assert_eq!(stored, held, "{}", traffic.key);
}

#[test]
fn a_hundred_thousand_requests_are_answered_as_the_model_answers() {
    let clock = Clock::frozen();
    run_slide(&clock.server());
}

#[test]
fn and_so_they_are_when_every_log_is_a_skiplist() {
    let clock = Clock::frozen();
    run_slide(&clock.setup().option(&compact_entries_option(0)).start());
}

#[test]
fn and_so_they_are_by_the_counter() {
    let traffic = TRAFFIC.map(|traffic| Traffic { precision_ms: None, ..traffic });
    let mut models: Vec<CounterModel> = traffic.iter().map(|_| CounterModel::default()).collect();
    let clock = Clock::frozen();
    let server = clock.server();
    run(&server, "RL.SWC", &traffic, |limiter, call| models[limiter].swc(call));
}
