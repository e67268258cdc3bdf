//! The server is killed in the middle of its work, and started again: what it has answered is so.
//!
//! Several clients ask, each for limiters of its own, so that a model can be fed with the calls of one
//! client in their order. At most one call of each was under way when the server died: it may be there
//! or not.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use redis::Value;

use crate::client::{Client, six_fields};
use crate::clock::{Clock, HOUR_MS, MINUTE_MS, START_MS};
use crate::harness::{Server, Setup, wait_until};
use crate::model::{Call, Charged, CounterModel, Model};
use crate::random::Random;

const CLIENTS: usize = 3;

/// Far more calls than a test waits for: the load ends even if nobody kills the server.
const MOST_CALLS: usize = 1_000_000;

// --- The load --------------------------------------------------------------------------------------

/// One call, as the models take it.
enum Request {
    Log(Call),
    CoarseLog(Call),
    Counters(Call),
    LogRefund(u64),
    CountersRefund { units: u64, at_ms: u64 },
}

/// The calls of one client: the same ones in the same order whenever they are asked for.
struct Calls {
    client: usize,
    clock_ms: u64,
    at_ms: u64,
    random: Random,
}

impl Calls {
    fn of(client: usize, clock_ms: u64) -> Calls {
        let random = Random(Random::seeded().below(1 << 32) + client as u64);
        Calls { client, clock_ms, at_ms: clock_ms, random }
    }

    /// The next call: as it is sent, and as the models take it.
    fn next(&mut self) -> (String, Request) {
        const HOUR: (u64, u64) = (HOUR_MS as u64, 30);
        const TICK_MS: u64 = 5 * MINUTE_MS as u64;
        const MINUTES: (u64, u64) = (10 * MINUTE_MS as u64, 15);
        // The windows pass by the times of the calls, and far behind them by the server's clock.
        self.at_ms += self.random.below(2 * MINUTE_MS as u64);
        let (client, at_ms) = (self.client, self.at_ms);
        let cost = 1 + self.random.below(4);
        let force = self.random.below(20) == 0;
        let call = |windows: &[(u64, u64)], now_ms| Call {
            cost,
            force,
            clock_ms: self.clock_ms,
            ..Call::new(windows, now_ms)
        };
        // What a tick rounds up would count in the expiry, beside what passes by the server's clock.
        let tick_ms = at_ms.next_multiple_of(TICK_MS);
        let charge = format!("COST {cost} {}", if force { "FORCE" } else { "" });
        match self.random.below(10) {
            0 => (format!("RL.REFUND log:{client} {cost} AT {at_ms}"), Request::LogRefund(cost)),
            1 => (
                format!("RL.REFUND counters:{client} {cost} AT {at_ms}"),
                Request::CountersRefund { units: cost, at_ms },
            ),
            2..5 => (
                format!("RL.SWC counters:{client} 1h 30 10m 15 {charge} AT {at_ms}"),
                Request::Counters(call(&[HOUR, MINUTES], at_ms)),
            ),
            5..7 => (
                format!("RL.SLIDE coarse:{client} 1h 30 PRECISION 5m {charge} AT {tick_ms}"),
                Request::CoarseLog(Call { precision_ms: Some(TICK_MS), ..call(&[HOUR], tick_ms) }),
            ),
            _ => (
                format!("RL.SLIDE log:{client} 1h 30 10m 15 {charge} AT {at_ms}"),
                Request::Log(call(&[HOUR, MINUTES], at_ms)),
            ),
        }
    }
}

/// The limiters of one client, as the models have them.
#[derive(Default)]
struct Limiters {
    log: Model,
    coarse: Model,
    counters: CounterModel,
}

impl Limiters {
    fn answer(&mut self, clock_ms: u64, request: &Request) -> Vec<i64> {
        match request {
            Request::Log(call) => self.log.slide(call).to_vec(),
            Request::CoarseLog(call) => self.coarse.slide(call).to_vec(),
            Request::Counters(call) => self.counters.swc(call).to_vec(),
            Request::LogRefund(units) => vec![self.log.refund(*units) as i64],
            Request::CountersRefund { units, at_ms } => {
                vec![self.counters.refund(*units, *at_ms, clock_ms) as i64]
            }
        }
    }

    /// As a server stores them.
    fn stored(&self) -> Stored {
        let entry = |entry: &Charged| {
            let total = entry.total.to_string();
            let letter = (b'a' + total.len() as u8 - 1) as char;
            format!("{} {letter}{total}+{}", entry.stamp_ms, entry.cost)
        };
        let entries = |log: &Model| log.entries.iter().map(entry).collect();
        let counters = self.counters.stored().into_iter();
        Stored {
            log: entries(&self.log),
            coarse: entries(&self.coarse),
            counters: counters.map(|(w, s, c, p)| format!("{w} {s} {c} {p}")).collect(),
        }
    }
}

/// What a server holds of one client.
#[derive(Debug, PartialEq)]
struct Stored {
    log: Vec<String>,
    coarse: Vec<String>,
    counters: Vec<String>,
}

impl Stored {
    fn of(server: &Client, client: usize) -> Stored {
        Stored {
            log: server.entries(&format!("log:{client}")),
            coarse: server.entries(&format!("coarse:{client}")),
            counters: server.counters(&format!("counters:{client}")),
        }
    }
}

fn answer_of(value: Value) -> Vec<i64> {
    match value {
        Value::Int(units) => vec![units],
        reply => six_fields(reply).to_vec(),
    }
}

/// Asks until the server is gone. Each answer must be that of the models.
fn ask_on(mut connection: redis::Connection, mut calls: Calls, answered: &AtomicUsize) {
    let mut limiters = Limiters::default();
    for _ in 0..MOST_CALLS {
        let (line, request) = calls.next();
        let mut words = line.split_ascii_whitespace();
        let mut command = redis::cmd(words.next().unwrap());
        match command.arg(words.collect::<Vec<_>>()).query::<Value>(&mut connection) {
            Ok(answer) => {
                assert_eq!(answer_of(answer), limiters.answer(calls.clock_ms, &request), "{line}");
            }
            Err(error) => {
                assert!(error.is_io_error(), "{line} was answered: {error}");
                return;
            }
        }
        answered.fetch_add(1, Ordering::Relaxed);
    }
    panic!("the server was not killed");
}

/// How many calls of each client have been answered.
type Answered = [AtomicUsize; CLIENTS];

fn counts(answered: &Answered) -> [usize; CLIENTS] {
    std::array::from_fn(|client| answered[client].load(Ordering::Relaxed))
}

/// Waits until each client has so many more answers.
fn wait_for_more(answered: &Answered, more: usize) {
    let before = counts(answered);
    wait_until("answers", || {
        counts(answered).iter().zip(before).all(|(now, then)| *now >= then + more)
    });
}

// --- The crash -------------------------------------------------------------------------------------

/// A server, what its clock said at first, and what it is started with.
struct Bench<'a> {
    server: Server,
    clock_ms: u64,
    setup: &'a Setup,
}

impl Bench<'_> {
    fn start(setup: &Setup) -> Bench<'_> {
        let server = setup.clone().start();
        let clock_ms = server.now() as u64;
        Bench { server, clock_ms, setup }
    }

    /// Lets the clients ask while something is done, and then kills the server in the middle of it.
    /// Tells what was done, and how many answers each client had.
    fn kill_under_load<T>(
        &mut self,
        meanwhile: impl FnOnce(&Server, &Answered) -> T,
    ) -> (T, [usize; CLIENTS]) {
        let answered = Answered::default();
        let done = thread::scope(|scope| {
            for (client, answered) in answered.iter().enumerate() {
                let calls = Calls::of(client, self.clock_ms);
                let connection = self.server.plain_connection();
                scope.spawn(move || ask_on(connection, calls, answered));
            }
            let done = meanwhile(&self.server, &answered);
            self.server.restart(self.setup.clone().without_module());
            done
        });
        (done, counts(&answered))
    }

    /// Fails unless the server has each client's limiters as they are after a number of its calls that
    /// is in its range. Then it is started again with the module, and the limiters go on from there.
    /// Tells those numbers.
    fn assert_holds(&mut self, ranges: [RangeInclusive<usize>; CLIENTS]) -> [usize; CLIENTS] {
        let keys: Vec<String> = self.server.run("KEYS *");
        assert!(keys.iter().all(|key| self.server.expiry(key) > self.server.now()), "{keys:?}");
        let stored: [Stored; CLIENTS] =
            std::array::from_fn(|client| Stored::of(&self.server, client));
        self.server.restart(self.setup.clone());
        std::array::from_fn(|client| {
            assert_eq!(Stored::of(&self.server, client), stored[client], "with the module");
            self.goes_on(client, &stored[client], ranges[client].clone())
        })
    }

    /// A client's limiters after so many of its calls, and the calls that follow.
    fn after(&self, client: usize, made: usize) -> (Limiters, Calls) {
        let (mut limiters, mut calls) = (Limiters::default(), Calls::of(client, self.clock_ms));
        for _ in 0..made {
            limiters.answer(self.clock_ms, &calls.next().1);
        }
        (limiters, calls)
    }

    fn goes_on(&self, client: usize, stored: &Stored, range: RangeInclusive<usize>) -> usize {
        let (mut limiters, mut calls) = self.after(client, *range.start());
        let mut found = None;
        for made in range.clone() {
            if limiters.stored() == *stored {
                found = Some(made);
            }
            limiters.answer(self.clock_ms, &calls.next().1);
        }
        let made = found.unwrap_or_else(|| {
            let (last, _) = self.after(client, *range.end());
            panic!(
                "client {client} has {stored:?}, which is after no number of calls in {range:?}; \
                 after the last of them it is {:?}",
                last.stored()
            )
        });
        let (mut limiters, mut calls) = self.after(client, made);
        self.assert_expiry(&format!("log:{client}"), limiters.log.expires_at_ms);
        self.assert_expiry(&format!("coarse:{client}"), limiters.coarse.expires_at_ms);
        self.assert_expiry(&format!("counters:{client}"), limiters.counters.expires_at_ms);
        for _ in 0..50 {
            let (line, request) = calls.next();
            let answered = answer_of(self.server.try_run(&line).unwrap());
            let expected = limiters.answer(self.clock_ms, &request);
            assert_eq!(answered, expected, "{line}, after the crash");
        }
        made
    }

    /// The model's clock stands where the load began: a key expires later by what has passed since.
    fn assert_expiry(&self, key: &str, modelled_ms: Option<u64>) {
        let passed_ms = self.server.now() - self.clock_ms as i64;
        match (self.server.expiry(key), modelled_ms) {
            (-2, None) => {}
            (expiry_ms, Some(least_ms)) => {
                let later_ms = expiry_ms - least_ms as i64;
                assert!((0..=passed_ms).contains(&later_ms), "{key} expires {later_ms} ms later");
            }
            other => panic!("{key} expires at {other:?}"),
        }
    }
}

/// From all that was answered to one call more, which was under way.
fn all_of(answered: [usize; CLIENTS]) -> [RangeInclusive<usize>; CLIENTS] {
    answered.map(|calls| calls..=calls + 1)
}

// --- The AOF ---------------------------------------------------------------------------------------

/// Kills a server with an AOF that is rewritten all the time; the bench, and what was answered.
fn kill_while_rewriting(setup: &Setup) -> (Bench<'_>, [usize; CLIENTS]) {
    let mut bench = Bench::start(setup);
    let ((), answered) = bench.kill_under_load(|server, answered| {
        for _ in 0..2 {
            wait_for_more(answered, 50);
            server.does("BGREWRITEAOF");
            wait_until("the rewrite", || {
                server.info("aof_rewrite_in_progress") == "0"
                    && server.info("aof_rewrite_scheduled") == "0"
            });
            assert_eq!(server.info("aof_last_bgrewrite_status"), "ok");
        }
        wait_for_more(answered, 50);
        // The last one may be anywhere when the server dies.
        server.does("BGREWRITEAOF");
        wait_for_more(answered, 5);
    });
    (bench, answered)
}

#[test]
fn with_every_write_synced_nothing_that_was_answered_is_lost() {
    for preamble in ["yes", "no"] {
        let setup = Setup::new().with_aof().option(&format!("aof-use-rdb-preamble {preamble}"));
        let (mut bench, answered) = kill_while_rewriting(&setup);
        let held = bench.assert_holds(all_of(answered));
        println!("RDB preamble {preamble}: {answered:?} calls were answered, {held:?} are there");
    }
}

/// The process dies and not the machine: what the server has written is there, synced or not. What it has
/// answered and not written, while a sync took long, is not.
#[test]
fn with_a_sync_a_second_all_that_was_written_is_there() {
    for preamble in ["yes", "no"] {
        let setup = Setup::new().option("appendonly yes").option("appendfsync everysec");
        let setup = setup.option(&format!("aof-use-rdb-preamble {preamble}"));
        let mut bench = Bench::start(&setup);
        let (written, answered) = bench.kill_under_load(|server, answered| {
            wait_for_more(answered, 100);
            server.does("BGREWRITEAOF");
            wait_for_more(answered, 100);
            let written = counts(answered);
            wait_until("an empty buffer", || server.info("aof_buffer_length") == "0");
            wait_for_more(answered, 100);
            written
        });
        let ranges = std::array::from_fn(|client| written[client]..=answered[client] + 1);
        let held = bench.assert_holds(ranges);
        println!("RDB preamble {preamble}: {answered:?} calls were answered, {held:?} are there");
    }
}

// --- The RDB ---------------------------------------------------------------------------------------

#[test]
fn an_rdb_that_is_saved_under_load_holds_one_moment_of_it() {
    for save in ["SAVE", "BGSAVE"] {
        let setup = Setup::new();
        let mut bench = Bench::start(&setup);
        let ((before, after), answered) = bench.kill_under_load(|server, answered| {
            wait_for_more(answered, 100);
            let before = counts(answered);
            server.does(save);
            let after = counts(answered);
            wait_until("the save", || server.info("rdb_bgsave_in_progress") == "0");
            assert_eq!(server.info("rdb_last_bgsave_status"), "ok");
            wait_for_more(answered, 100);
            (before, after)
        });
        let ranges = std::array::from_fn(|client| before[client]..=after[client] + 1);
        let held = bench.assert_holds(ranges);
        println!("{save}: {answered:?} calls were answered, the RDB has {held:?} of them");
    }
}

// --- Down for a while ------------------------------------------------------------------------------

/// Asked for all three units of a limit: those of a log are free once the last has left, those of a
/// counter 1 ms later, and neither sooner, from whatever the server was started.
#[test]
fn after_a_time_down_limits_are_what_they_are_without_it() {
    const LAST_CHARGE_MS: i64 = 40_000;
    let windows = [(MINUTE_MS as u64, 3)];
    for kept in ["AOF", "RDB"] {
        let clock = Clock::frozen();
        let setup = if kept == "AOF" { clock.setup().with_aof() } else { clock.setup() };
        let mut server = setup.clone().start();
        let (mut log, mut counter) = (Model::default(), CounterModel::default());
        for at_ms in [0, 20_000, LAST_CHARGE_MS] {
            clock.freeze_at(START_MS + at_ms);
            let call = Call::new(&windows, (START_MS + at_ms) as u64);
            assert_eq!(server.slide("log 1m 3"), log.slide(&call));
            assert_eq!(server.swc("counter 1m 3"), counter.swc(&call));
        }
        server.does("SAVE");
        for down_ms in [0, 20_000, 59_999, 60_000, 60_001, HOUR_MS] {
            let now_ms = START_MS + LAST_CHARGE_MS + down_ms;
            clock.freeze_at(now_ms);
            server.restart(setup.clone());
            let call = Call { cost: 3, ..Call::new(&windows, now_ms as u64) };
            let (of_log, of_counter) =
                (server.peek("log 1m 3 COST 3"), server.peek("counter 1m 3 COST 3"));
            let free = |since_ms| i64::from(down_ms >= since_ms);
            assert_eq!(
                (of_log[0], of_counter[0]),
                (free(60_000), free(60_001)),
                "{kept}, {down_ms}"
            );
            // To look is to ask and not to take: the models are asked in copies.
            let answers =
                [(of_log, log.clone().slide(&call)), (of_counter, counter.clone().swc(&call))];
            for (peeked, answer) in answers {
                // A peek tells what remains now, also where the call would take it.
                assert_eq!((peeked[0], peeked[3]), (answer[0], answer[3]), "{kept}, {down_ms}");
            }
        }
        assert_eq!(server.run::<i64>("EXISTS log counter"), 0, "both have expired");
        assert_eq!(server.slide("log 1m 3 COST 3")[..3], [1, 3, 0]);
    }
}
