//! Clients under load, each with limiters of its own, so that models can be fed with the calls of one
//! client in their order; and what a server then holds, against these models.
//!
//! Something may refuse calls meanwhile. What is refused must change nothing, and what refuses only
//! writes must let peeks pass.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

use redis::{Connection, RedisError, RedisResult, Value};

use crate::client::{Client, six_fields};
use crate::clock::{HOUR_MS, MINUTE_MS};
use crate::harness::{Server, wait_until};
use crate::model::{Call, Charged, CounterModel, Model};
use crate::random::Random;

/// How many clients ask.
pub const CLIENTS: usize = 3;

// --- Calls -----------------------------------------------------------------------------------------

/// One call, as the models take it.
#[derive(Clone)]
pub enum Request {
    Log(Call),
    CoarseLog(Call),
    Counters(Call),
    LogRefund(u64),
    CountersRefund { units: u64, at_ms: u64 },
}

impl Request {
    /// Whether a call with this answer charges something.
    fn charges(&self, answer: &[i64]) -> bool {
        match self {
            Request::Log(call) | Request::CoarseLog(call) | Request::Counters(call) => {
                answer[0] == 1 || call.force
            }
            Request::LogRefund(_) | Request::CountersRefund { .. } => false,
        }
    }

    /// The same, charging only what fits; nothing for a refund.
    fn unforced(&self) -> Option<Request> {
        let call = |call: &Call| Call { force: false, ..call.clone() };
        match self {
            Request::Log(forced) => Some(Request::Log(call(forced))),
            Request::CoarseLog(forced) => Some(Request::CoarseLog(call(forced))),
            Request::Counters(forced) => Some(Request::Counters(call(forced))),
            Request::LogRefund(_) | Request::CountersRefund { .. } => None,
        }
    }
}

/// The calls of one client: the same ones in the same order whenever they are asked for.
pub struct Calls {
    client: usize,
    clock_ms: u64,
    at_ms: u64,
    random: Random,
}

impl Calls {
    /// The next call: as it is sent, and as the models take it.
    pub fn next(&mut self) -> (String, Request) {
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

/// A verdict's six fields, or the units of a refund.
pub fn answer_of(value: Value) -> Vec<i64> {
    match value {
        Value::Int(units) => vec![units],
        reply => six_fields(reply).to_vec(),
    }
}

// --- Limiters --------------------------------------------------------------------------------------

/// The limiters of one client, as the models have them.
#[derive(Clone, Default)]
pub struct Limiters {
    log: Model,
    coarse: Model,
    counters: CounterModel,
}

impl Limiters {
    /// Answers one call of a server whose clock says so.
    pub fn answer(&mut self, clock_ms: u64, request: &Request) -> Vec<i64> {
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
    pub fn stored(&self) -> Stored {
        let entries = |log: &Model| log.entries.iter().map(stored_entry).collect();
        let counters = self.counters.stored().into_iter();
        Stored {
            log: entries(&self.log),
            coarse: entries(&self.coarse),
            counters: counters.map(|(w, s, c, p)| format!("{w} {s} {c} {p}")).collect(),
        }
    }
}

/// An entry as a server stores it, as `score member`.
pub fn stored_entry(entry: &Charged) -> String {
    let total = entry.total.to_string();
    let letter = (b'a' + total.len() as u8 - 1) as char;
    format!("{} {letter}{total}+{}", entry.stamp_ms, entry.cost)
}

/// What a server holds of one client.
#[derive(Debug, PartialEq)]
pub struct Stored {
    log: Vec<String>,
    coarse: Vec<String>,
    counters: Vec<String>,
}

impl Stored {
    pub fn of(server: &Client, client: usize) -> Stored {
        Stored {
            log: server.entries(&format!("log:{client}")),
            coarse: server.entries(&format!("coarse:{client}")),
            counters: server.counters(&format!("counters:{client}")),
        }
    }
}

// --- The load --------------------------------------------------------------------------------------

/// What may refuse a call, with an error of this code.
pub enum Gate {
    Nothing,
    /// Every write, denials among them.
    Writes(&'static str),
    /// Only what would charge.
    Charges(&'static str),
}

/// Clients that ask one server.
pub struct Load {
    /// What the server's clock said before the first call.
    clock_ms: u64,
    seed: u64,
    gate: Gate,
}

/// What each client was told so far.
#[derive(Default)]
pub struct Progress {
    answered: [AtomicUsize; CLIENTS],
    refused: [AtomicUsize; CLIENTS],
    stop: AtomicBool,
}

impl Progress {
    /// How many calls of each client are over, answered or refused.
    pub fn made(&self) -> [usize; CLIENTS] {
        std::array::from_fn(|client| {
            self.answered[client].load(Relaxed) + self.refused[client].load(Relaxed)
        })
    }

    /// Waits until each client has so many more answers.
    pub fn wait_for_answers(&self, more: usize) {
        self.wait_for_more(&self.answered, more);
    }

    /// Waits until each client was refused so many more times.
    pub fn wait_for_refusals(&self, more: usize) {
        self.wait_for_more(&self.refused, more);
    }

    fn wait_for_more(&self, counts: &[AtomicUsize; CLIENTS], more: usize) {
        let now = || counts.each_ref().map(|count| count.load(Relaxed));
        let before = now();
        let enough = || now().iter().zip(before).all(|(now, then)| *now >= then + more);
        wait_until("answers", || enough() || self.stop.load(Relaxed));
        assert!(enough(), "a client has ended before");
    }
}

/// Stops the clients: when the test has done its part, when one of them has ended, and when either fails.
struct Stopping<'a>(&'a Progress);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Relaxed);
    }
}

/// What has become of a client's calls.
#[derive(Default)]
pub struct Asked {
    /// How many are over.
    pub made: usize,
    /// Those that were refused, by their number.
    pub refused: BTreeSet<usize>,
}

impl Asked {
    /// How many of the first so many calls were not refused.
    pub fn not_refused(&self, of: usize) -> usize {
        of - self.refused.range(..of).count()
    }

    /// From all that are over to one more, which was under way when the server died.
    pub fn all_or_one_more(&self) -> RangeInclusive<usize> {
        self.made..=self.made + 1
    }
}

impl Load {
    /// The load of a server that refuses nothing.
    pub fn of(server: &Client) -> Load {
        let seed = Random::seeded().below(1 << 32);
        Load { clock_ms: server.now() as u64, seed, gate: Gate::Nothing }
    }

    /// The same, where something may refuse calls.
    pub fn behind(self, gate: Gate) -> Load {
        Load { gate, ..self }
    }

    /// The calls of a client, and its limiters before the first of them.
    pub fn start(&self, client: usize) -> (Limiters, Calls) {
        let random = Random(self.seed + client as u64);
        let calls = Calls { client, clock_ms: self.clock_ms, at_ms: self.clock_ms, random };
        (Limiters::default(), calls)
    }

    /// The models' answer to a call.
    pub fn answer(&self, limiters: &mut Limiters, request: &Request) -> Vec<i64> {
        limiters.answer(self.clock_ms, request)
    }

    /// Lets clients ask on these connections while something is done, and until it is, or the server is
    /// gone. Each answer must be that of the models. Tells what was done, and what the clients were told.
    pub fn during<T>(
        &self,
        connections: [Connection; CLIENTS],
        done: impl FnOnce(&Progress) -> T,
    ) -> (T, [Asked; CLIENTS]) {
        let progress = Progress::default();
        thread::scope(|scope| {
            let mut client = 0..;
            let clients = connections.map(|connection| {
                let (client, progress) = (client.next().unwrap(), &progress);
                scope.spawn(move || {
                    let _stopping = Stopping(progress);
                    self.ask(client, connection, progress)
                })
            });
            let stopping = Stopping(&progress);
            let done = done(&progress);
            drop(stopping);
            (done, clients.map(|client| client.join().expect("each answer is the models'")))
        })
    }

    fn ask(&self, client: usize, mut connection: Connection, progress: &Progress) -> Asked {
        let (mut limiters, mut calls) = self.start(client);
        let mut asked = Asked::default();
        while !progress.stop.load(Relaxed) {
            let (line, request) = calls.next();
            let told = match send(&mut connection, &line) {
                Ok(answer) => {
                    assert_eq!(answer_of(answer), self.answer(&mut limiters, &request), "{line}");
                    &progress.answered
                }
                Err(error) if error.is_io_error() => break,
                Err(error) => {
                    self.assert_refused(&error, &line, &limiters, &request);
                    self.assert_peek(&mut connection, &line, &limiters, &request);
                    asked.refused.insert(asked.made);
                    &progress.refused
                }
            };
            asked.made += 1;
            told[client].fetch_add(1, Relaxed);
        }
        asked
    }

    /// Only what the gate refuses may be refused.
    fn assert_refused(
        &self,
        error: &RedisError,
        line: &str,
        limiters: &Limiters,
        request: &Request,
    ) {
        let refused = match self.gate {
            Gate::Nothing => false,
            Gate::Writes(code) => error.code() == Some(code),
            Gate::Charges(code) => {
                let answer = self.answer(&mut limiters.clone(), request);
                error.code() == Some(code) && request.charges(&answer)
            }
        };
        assert!(refused, "{line} was answered: {error}");
    }

    /// A peek tells meanwhile whether the call would be admitted, and when. (What remains it tells from
    /// before the call, and so not as the models do.)
    fn assert_peek(
        &self,
        connection: &mut Connection,
        line: &str,
        limiters: &Limiters,
        request: &Request,
    ) {
        let Some(unforced) = request.unforced() else { return };
        let (_, arguments) = line.split_once(' ').unwrap();
        match send(connection, &format!("RL.PEEK {arguments}")) {
            Ok(answer) => {
                let (peeked, expected) =
                    (answer_of(answer), self.answer(&mut limiters.clone(), &unforced));
                assert_eq!((peeked[0], peeked[3]), (expected[0], expected[3]), "a peek for {line}");
            }
            Err(error) => assert!(error.is_io_error(), "a peek for {line} was answered: {error}"),
        }
    }

    /// A client's limiters after so many of its calls, and the calls that follow.
    fn after(&self, client: usize, asked: &Asked, made: usize) -> (Limiters, Calls) {
        let (mut limiters, mut calls) = self.start(client);
        for number in 0..made {
            let (_, request) = calls.next();
            if !asked.refused.contains(&number) {
                self.answer(&mut limiters, &request);
            }
        }
        (limiters, calls)
    }

    /// Fails unless the server has each client's limiters as they are after all that was answered, and they
    /// go on from there.
    pub fn assert_all_go_on(&self, server: &Client, asked: &[Asked; CLIENTS]) {
        for (client, asked) in asked.iter().enumerate() {
            self.assert_goes_on(server, client, asked, asked.made..=asked.made);
            println!("client {client}: {} of {} refused", asked.refused.len(), asked.made);
        }
    }

    /// Fails unless the server has a client's limiters as they are after a number of its calls that is in
    /// this range, and they go on from there. Tells that number.
    pub fn assert_goes_on(
        &self,
        server: &Client,
        client: usize,
        asked: &Asked,
        range: RangeInclusive<usize>,
    ) -> usize {
        let stored = Stored::of(server, client);
        let (mut limiters, mut calls) = self.after(client, asked, *range.start());
        let mut found = None;
        for made in range.clone() {
            if limiters.stored() == stored {
                found = Some(made);
            }
            let (_, request) = calls.next();
            if !asked.refused.contains(&made) {
                self.answer(&mut limiters, &request);
            }
        }
        let made = found.unwrap_or_else(|| {
            let (last, _) = self.after(client, asked, *range.end());
            panic!(
                "client {client} has {stored:?}, which is after no number of calls in {range:?}; \
                 after the last of them it is {:?}",
                last.stored()
            )
        });
        let (mut limiters, mut calls) = self.after(client, asked, made);
        self.assert_expiry(server, &format!("log:{client}"), limiters.log.expires_at_ms);
        self.assert_expiry(server, &format!("coarse:{client}"), limiters.coarse.expires_at_ms);
        self.assert_expiry(server, &format!("counters:{client}"), limiters.counters.expires_at_ms);
        for _ in 0..50 {
            let (line, request) = calls.next();
            let answered = answer_of(server.try_run(&line).unwrap());
            assert_eq!(answered, self.answer(&mut limiters, &request), "{line}, afterwards");
        }
        made
    }

    /// The model's clock stands where the load began: a key expires later by what has passed since.
    fn assert_expiry(&self, server: &Client, key: &str, modelled_ms: Option<u64>) {
        let passed_ms = server.now() - self.clock_ms as i64;
        match (server.expiry(key), modelled_ms) {
            (-2, None) => {}
            (expiry_ms, Some(least_ms)) => {
                let later_ms = expiry_ms - least_ms as i64;
                assert!((0..=passed_ms).contains(&later_ms), "{key} expires {later_ms} ms later");
            }
            other => panic!("{key} expires at {other:?}"),
        }
    }
}

/// A connection for each client.
pub fn connections(server: &Server) -> [Connection; CLIENTS] {
    std::array::from_fn(|_| server.plain_connection())
}

/// Sends the words of a line.
fn send(connection: &mut Connection, line: &str) -> RedisResult<Value> {
    let mut words = line.split_ascii_whitespace();
    let mut command = redis::cmd(words.next().unwrap());
    command.arg(words.collect::<Vec<_>>()).query(connection)
}
