//! Hostile input: any words, sent to any key. The server lives, each answer is of the form that the documentation has, and
//! what is answered with an error, a denial or a peek leaves the key byte for byte as it was.
//!
//! `RL_FUZZ_CALLS` is how many calls; `make fuzz` makes ten million.

mod bytes;
mod calls;
mod form;
mod grammar;
mod keys;
mod rules;
mod tally;

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use redis::{Connection, Value};

use self::bytes::{Words, shown, words};
use self::calls::{Call, SCRIPT};
use self::grammar::asked;
use self::keys::{Planted, Planter};
use self::rules::{Change, State, judge};
use self::tally::Tally;
use crate::dataset::{Dataset, dataset};
use crate::harness::{Server, Setup, read_log, server_is_at_least};
use crate::random::Random;

/// Calls, unless `RL_FUZZ_CALLS` sets another number.
const CALLS: u64 = 200_000;

/// Rounds that are sent at once.
const PIPELINED: usize = 16;

/// Pipelines after which the keys that nobody names are looked at.
const PIPELINES_A_LOOK: u64 = 100;

/// Keys that nobody names.
const BYSTANDERS: usize = 12;

/// Entries from which on a log is kept coarse: few, so that it happens.
const MAX_LOG_ENTRIES: &str = "max-log-entries 150";

/// Tells when a key expires on servers that tell only the time left, once the clock stands meanwhile.
const EXPIRY_SCRIPT: &str = "
    local function now() local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000) end
    while true do
        local before, left = now(), redis.call('PTTL', KEYS[1])
        if left < 0 then return left end
        if before == now() then return before + left end
    end";

/// One key: what is put there, and the calls to it, one after the other.
struct Round {
    key: Vec<u8>,
    planted: Planted,
    calls: Vec<Call>,
}

/// A connection, and what is spoken on it.
struct Protocol {
    name: &'static str,
    connection: Connection,
}

/// What all rounds share.
struct Hostility {
    server: Server,
    dir: PathBuf,
    planter: Planter,
    /// The server's clock when all began, in Unix milliseconds.
    clock_ms: u64,
    /// What the server calls the scripts.
    call_digest: String,
    expiry_digest: String,
    tally: Tally,
}

impl Hostility {
    fn start() -> Hostility {
        let setup = Setup::new().module_arguments(MAX_LOG_ENTRIES);
        // Compressing would take most of the time of a `DUMP`.
        let setup = setup.option("notify-keyspace-events KEA").option("rdbcompression no");
        let server = setup.start();
        let dir: (String, String) = server.run("CONFIG GET dir");
        let load = |script: &str| server.args(&["SCRIPT", "LOAD", script]);
        Hostility {
            dir: dir.1.into(),
            planter: Planter::new(&server),
            clock_ms: server.now() as u64,
            call_digest: load(SCRIPT),
            expiry_digest: load(EXPIRY_SCRIPT),
            tally: Tally::default(),
            server,
        }
    }

    fn round(&self, random: &mut Random) -> Round {
        let time_ms = match random.below(8) {
            0 => random.below(1_000_000),
            1 => self.clock_ms + random.below(3649 * 86_400_000),
            2 | 3 => 1_000_000_000_000,
            _ => self.clock_ms,
        };
        let key = match random.below(50) {
            0..40 => b"k".to_vec(),
            40..49 => random.bytes(40),
            _ => vec![random.below(256) as u8; 1 << random.below(17)],
        };
        let planted = self.planter.plant(random, &key, time_ms);
        let calls = if planted.is_huge { 3 } else { 1 + random.below(24) };
        let calls = (0..calls).map(|_| Call::random(random, &key, planted.is_hash, time_ms));
        let calls = calls.collect();
        Round { key, planted, calls }
    }

    /// The commands that tell what is at a key.
    fn look(&self, round: &Round) -> [Words; 3] {
        let contents = if round.planted.is_table { "DEBUG DIGEST-VALUE" } else { "DUMP" };
        let expiry = match server_is_at_least(7, 0) {
            true => "PEXPIRETIME".into(),
            false => format!("EVALSHA {} 1", self.expiry_digest),
        };
        ["TYPE", contents, &expiry].map(|line| {
            let mut command = words(line);
            command.push(round.key.clone());
            command
        })
    }

    /// Sends rounds all at once, and judges all that comes back.
    fn run(&mut self, protocol: &mut Protocol, rounds: &[Round]) {
        let mut pipeline = redis::pipe();
        let mut send = |words: &[Vec<u8>]| {
            let mut command = redis::Cmd::new();
            command.arg(words);
            pipeline.add_command(command);
        };
        for round in rounds {
            round.planted.commands.iter().for_each(|command| send(command));
            let look = self.look(round);
            look.iter().for_each(|command| send(command));
            for call in &round.calls {
                let commands = call.commands(&round.key, &self.call_digest);
                commands.iter().chain(&look).for_each(|command| send(command));
            }
            send(&["DEL".into(), round.key.clone()]);
            send(&words("DBSIZE"));
        }
        let replies: Vec<Value> = match pipeline.ignore_errors().query(&mut protocol.connection) {
            Ok(replies) => replies,
            Err(error) => self.lost(&error, rounds),
        };
        let seen_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
        let mut replies = replies.into_iter();
        for round in rounds {
            self.judge_round(protocol.name, round, &mut replies, seen_ms);
        }
        assert_eq!(replies.next(), None, "a reply for each command");
    }

    fn judge_round(
        &mut self,
        protocol: &'static str,
        round: &Round,
        replies: &mut impl Iterator<Item = Value>,
        seen_ms: i64,
    ) {
        for command in &round.planted.commands {
            let reply = replies.next().unwrap();
            let is_error = matches!(reply, Value::ServerError(_));
            assert!(!is_error, "{} was answered {reply:?}", shown(command));
        }
        let planted = state(replies);
        let mut before = planted.clone();
        for (number, call) in round.calls.iter().enumerate() {
            let answer = call.answer(replies);
            let after = state(replies);
            let asked = asked(call, self.clock_ms);
            // What the module writes stays of its form; any other only while it is as it was.
            let is_ours = round.planted.is_ours.filter(|is_ours| *is_ours || before == planted);
            let change = Change { before: &before, after: &after, seen_ms, is_ours };
            let sort = judge(call, asked.as_ref(), &answer, &change).unwrap_or_else(|rule| {
                panic!(
                    "broken: {rule}\nasked  {asked:?}\nanswer {answer:?}\nbefore {before:?}\n\
                     after  {after:?}\n{}",
                    round.story(number),
                )
            });
            let who = [call.command, call.way.name(), protocol];
            self.tally.add(who, sort, change.may_expire());
            before = after;
        }
        let (_, keys) = (replies.next(), replies.next());
        let others = Some(Value::Int(BYSTANDERS as i64));
        assert_eq!(keys, others, "no other key comes or goes\n{}", round.story(usize::MAX));
    }

    /// Puts down the keys that nobody names: what they are.
    fn put_bystanders(&self, random: &mut Random) -> Dataset {
        let mut keys = 0;
        while keys < BYSTANDERS {
            let key = format!("bystander {keys}").into_bytes();
            let planted = self.planter.plant(random, &key, self.clock_ms);
            if planted.commands.is_empty() || planted.is_huge {
                continue;
            }
            for command in &planted.commands {
                let _: Value = self.server.args(command);
            }
            keys += 1;
        }
        dataset(&self.server)
    }

    /// The server is the one that was started and has nothing to complain of.
    fn check_server(&self, process_id: &str) {
        assert_eq!(self.server.info("process_id"), process_id);
        for line in self.server.run::<String>("INFO rl").lines().skip(1) {
            let (name, count) = line.split_once(':').expect("a field has a value");
            assert_eq!(count == "0", name == "rl_panics", "{line}");
        }
        let log = read_log(&self.dir).to_lowercase();
        for word in ["panick", "a bug", "bug report", "assert", "crashed"] {
            assert!(!log.contains(word), "{word} in the log:\n{log}");
        }
    }

    fn lost(&self, error: &redis::RedisError, rounds: &[Round]) -> ! {
        let stories: Vec<String> = rounds.iter().map(|round| round.story(usize::MAX)).collect();
        let (log, stories) = (read_log(&self.dir), stories.join("\n\n"));
        panic!("no answer: {error}\none of these did it:\n{stories}\nthe server's log:\n{log}")
    }
}

impl Round {
    /// What happened to the key up to and with the call of that number.
    fn story(&self, number: usize) -> String {
        let planted = self.planted.commands.iter().map(|command| shown(command));
        let calls = self.calls.iter().take(number.saturating_add(1));
        let calls = calls.map(|call| format!("{:?}: {}", call.way, shown(&call.words)));
        planted.chain(calls).collect::<Vec<_>>().join("\n")
    }
}

fn state(replies: &mut impl Iterator<Item = Value>) -> State {
    let mut next = || replies.next().expect("a reply for each command");
    match (next(), next(), next()) {
        // It may have expired between the three.
        (_, _, Value::Int(-2)) => State::none(),
        (Value::SimpleString(kind), payload, Value::Int(expiry_ms)) => {
            State { kind, payload, expiry_ms }
        }
        other => panic!("no state: {other:?}"),
    }
}

#[test]
fn no_words_to_any_key_harm_the_server_or_what_they_may_not_change() {
    let calls = match std::env::var("RL_FUZZ_CALLS") {
        Ok(calls) => calls.parse().expect("RL_FUZZ_CALLS is a number"),
        Err(_) => CALLS,
    };
    let mut random = Random::seeded();
    let mut hostility = Hostility::start();
    let process_id = hostility.server.info("process_id");
    let mut protocols = ["in RESP2", "in RESP3"]
        .map(|name| Protocol { name, connection: hostility.server.plain_connection() });
    let _: Value =
        redis::cmd("HELLO").arg(3).query(&mut protocols[1].connection).expect("RESP3 is spoken");
    let bystanders = hostility.put_bystanders(&mut random);
    let mut pipelines = 0;
    while hostility.tally.calls() < calls {
        let rounds: Vec<Round> = (0..PIPELINED).map(|_| hostility.round(&mut random)).collect();
        hostility.run(&mut protocols[random.below(2) as usize], &rounds);
        pipelines += 1;
        if pipelines % PIPELINES_A_LOOK == 0 || hostility.tally.calls() >= calls {
            assert_eq!(dataset(&hostility.server), bystanders, "keys that nobody named");
        }
    }
    hostility.tally.show();
    hostility.tally.check();
    hostility.check_server(&process_id);
}
