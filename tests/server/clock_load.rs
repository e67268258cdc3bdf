//! A clock that steps while the server works, in the middle of pipelines, transactions and scripts; and
//! clocks at the ends of time.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use redis::Value;

use crate::client::six_fields;
use crate::clock::{Clock, DAY_MS, HOUR_MS, START_MS, TEN_YEARS_MS};
use crate::harness::Server;
use crate::random::Random;

const CLIENTS: u64 = 3;
const PIPELINES: usize = 60;
const PIPELINED: usize = 50;

/// Calls with a verdict, each with a key of its own, and the longest window of each in milliseconds.
const LIMITERS: [(&str, i64); 8] = [
    ("RL.SLIDE log:1 1s 5", 1_000),
    ("RL.SLIDE log:2 1m 50 1s 3 COST 2", 60_000),
    ("RL.SLIDE log:3 1h 500 PRECISION 5s", HOUR_MS),
    ("RL.SLIDE log:4 1m 9 FORCE", 60_000),
    ("RL.SWC counters:1 1s 5", 1_000),
    ("RL.SWC counters:2 1s 5 1m 50 1h 500 COST 3", HOUR_MS),
    ("RL.SWC counters:3 1m 9 FORCE", 60_000),
    ("RL.SWC counters:4 1h 9", HOUR_MS),
];

const REFUNDS: [&str; 2] = ["RL.REFUND log:2 3", "RL.REFUND counters:2 3"];

/// Steps a running clock by 1 ms to 10 years, never farther off than 10 years.
struct Stepper<'a> {
    clock: &'a Clock,
    random: Random,
    off_ms: i64,
}

impl Stepper<'_> {
    fn step(&mut self) {
        let scale = 1 << self.random.below(39);
        let far_ms = ((scale + self.random.below(scale)) as i64).min(TEN_YEARS_MS);
        let by_ms = if self.random.below(2) == 0 { far_ms } else { -far_ms };
        let by_ms = if (self.off_ms + by_ms).abs() > TEN_YEARS_MS { -self.off_ms } else { by_ms };
        self.off_ms += by_ms;
        self.clock.step_by(by_ms);
    }
}

/// Whatever the clock does, an answer is one: and a wait is never longer than the farthest that is
/// believed, two windows ahead, and one window more.
fn assert_sane(reply: [i64; 6], call: &str, longest_ms: i64) {
    let [allowed, limit, remaining, retry_ms, reset_ms, window_ms] = reply;
    let longest_wait_ms = 2 * longest_ms + window_ms;
    assert!(
        (0..=1).contains(&allowed)
            && (0..=limit).contains(&remaining)
            && (0..=longest_wait_ms).contains(&retry_ms)
            && (retry_ms == 0 || allowed == 0)
            && (0..=longest_wait_ms).contains(&reset_ms),
        "{call}: {reply:?}"
    );
}

/// The log in order and without a gap: stamps never fall, and each total is the one before and a cost.
fn assert_log(server: &Server, key: &str) {
    let mut last: Option<(u64, u64)> = None;
    for entry in server.entries(key) {
        let (stamp, member) = entry.split_once(' ').unwrap();
        let (total, cost) = member[1..].split_once('+').unwrap();
        let [stamp_ms, total, cost] = [stamp, total, cost].map(|digits| digits.parse().unwrap());
        if let Some((before_ms, before)) = last {
            assert!(
                stamp_ms >= before_ms && total == before + cost,
                "{key}: {last:?}, then {entry}"
            );
        }
        last = Some((stamp_ms, total));
    }
}

/// Each key that is there is a whole limiter that expires. Tells how many there are.
fn assert_keys(server: &Server) -> usize {
    let keys: Vec<String> = server.run("KEYS *");
    for key in &keys {
        assert_ne!(server.expiry(key), -1, "{key} does not expire");
        if key.starts_with("log") {
            assert_log(server, key);
        } else {
            server.counters(key);
        }
    }
    keys.len()
}

/// Once the clock stands, and three windows after what it then was, every limiter is fresh.
fn assert_settles(server: &Server, clock: &Clock) {
    clock.freeze_at(server.now() + 3 * HOUR_MS);
    for (call, _) in LIMITERS {
        let mut words: Vec<&str> = call.split(' ').collect();
        let settled = server.verdict(call);
        words[1] = "fresh";
        server.does("DEL fresh");
        assert_eq!(settled, server.verdict(&words.join(" ")), "{call}");
    }
    assert_eq!(assert_keys(server), LIMITERS.len() + 1);
    assert_eq!(server.info("rl_panics"), "0");
}

/// The words of a line as a command.
fn command(line: &str) -> redis::Cmd {
    let mut words = line.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    command.arg(words.collect::<Vec<_>>());
    command
}

/// Sends pipelines of random calls, every second one as a transaction, and says when each is done.
fn hammer(mut connection: redis::Connection, mut random: Random, done: Sender<()>) {
    for number in 0..PIPELINES {
        let mut pipeline = redis::pipe();
        if number % 2 == 1 {
            pipeline.atomic();
        }
        let mut asked = Vec::new();
        for _ in 0..PIPELINED {
            if random.below(10) == 0 {
                pipeline.add_command(command(random.one_of(&REFUNDS))).ignore();
                continue;
            }
            let (call, longest_ms) = LIMITERS[random.below(8) as usize];
            let (_, arguments) = call.split_once(' ').unwrap();
            match random.below(4) {
                0 => pipeline.add_command(command(&format!("RL.PEEK {arguments}"))),
                _ => pipeline.add_command(command(call)),
            };
            asked.push((call, longest_ms));
        }
        let replies: Vec<Value> = pipeline.query(&mut connection).unwrap();
        assert_eq!(replies.len(), asked.len());
        for (reply, (call, longest_ms)) in replies.into_iter().zip(asked) {
            assert_sane(six_fields(reply), call, longest_ms);
        }
        // Nobody listens any more when the test has failed already.
        let _ = done.send(());
    }
}

#[test]
fn under_load() {
    let clock = Clock::running();
    let server = clock.server();
    let mut random = Random::seeded();
    let (done, all_done) = channel();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            let (connection, done) = (server.plain_connection(), done.clone());
            let seed = random.below(1 << 32);
            scope.spawn(move || hammer(connection, Random(seed), done));
        }
        drop(done);
        // Each client steps the clock of the others, in the middle of what they do.
        let mut stepper = Stepper { clock: &clock, random, off_ms: 0 };
        let mut seen = 0;
        for () in all_done {
            stepper.step();
            seen += assert_keys(&server);
        }
        assert!(seen > 0, "no key was ever there to look at");
    });
    assert_ne!(server.info("rl_clocks_ahead"), "0");
    assert_settles(&server, &clock);
}

/// Runs scripts of many calls, round by round; the clock has stepped in each.
fn run_scripts(mut connection: redis::Connection, steps: Receiver<()>) {
    const SCRIPT: &str = "local replies = {}
        for i = 1, 300 do replies[i] = redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2)) end
        return replies";
    for _ in 0..10 {
        for (call, longest_ms) in LIMITERS {
            let words: Vec<&str> = call.split(' ').collect();
            let mut eval = redis::cmd("EVAL");
            eval.arg(SCRIPT).arg(1).arg(words[1]).arg(words[0]).arg(&words[2..]);
            let replies: Vec<Value> = eval.query(&mut connection).unwrap();
            assert_eq!(replies.len(), 300);
            for reply in replies {
                assert_sane(six_fields(reply), call, longest_ms);
            }
        }
        steps.recv().expect("the clock goes on stepping");
        steps.try_iter().for_each(drop);
    }
}

#[test]
fn while_a_script_runs() {
    let clock = Clock::running();
    let server = clock.server();
    let mut stepper = Stepper { clock: &clock, random: Random::seeded(), off_ms: 0 };
    thread::scope(|scope| {
        let (stepped, steps) = channel();
        let connection = server.plain_connection();
        let scripts = scope.spawn(|| run_scripts(connection, steps));
        while !scripts.is_finished() {
            stepper.step();
            // Nobody counts them any more when the scripts are over.
            let _ = stepped.send(());
        }
    });
    assert_settles(&server, &clock);
}

/// Up to 2^52 ms the clock is believed, and never before 1970.
#[test]
fn at_the_ends_of_time() {
    const LATEST_MS: i64 = 1 << 52;
    /// The last hour of microseconds is left out: Valkey adds what has gone by to the time that it read.
    const LAST_MS: i64 = i64::MAX / 1_000 - 3_600_000;
    let clock = Clock::frozen();
    let server = clock.server();
    let times = [
        0,
        1,
        -1,
        -100 * 365 * DAY_MS,
        i64::from(i32::MAX) * 1_000 + 999,
        i64::from(u32::MAX) * 1_000 + 999,
        LATEST_MS,
        LATEST_MS + 1,
        1 << 53,
        LAST_MS,
    ];
    for (number, at_ms) in times.into_iter().enumerate() {
        clock.freeze_at(at_ms);
        for command in ["SLIDE", "SWC"] {
            let key = format!("{command}:{number}");
            let admitted: i64 =
                (0..5).map(|_| server.verdict(&format!("RL.{command} {key} 60s 2"))[0]).sum();
            let context = format!("RL.{command} at {at_ms}");
            // After the latest time every expiry is over, and so every limiter is fresh.
            assert_eq!(admitted, if at_ms > LATEST_MS + 75_000 { 5 } else { 2 }, "{context}");
            let peeked = server.peek(&format!("{key} 60s 2"));
            assert_eq!(peeked[0], i64::from(admitted == 5), "{context}");
            assert_eq!(server.refund(&format!("{key} 1")), i64::from(admitted == 2), "{context}");
        }
        assert_eq!(server.run::<String>("PING"), "PONG");
    }
    clock.freeze_at(START_MS);
    assert_eq!(server.slide("k 60s 2"), [1, 2, 1, 0, 60_000, 60_000]);
    assert_eq!(server.info("rl_panics"), "0");
}
