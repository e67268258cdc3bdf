//! No call leaves memory behind: after further rounds of calls of one kind, the server holds what it
//! held after the first. And the harness notices a leak where the server under test looks for them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use redis::Value;

use crate::cli::shown;
use crate::harness::{Server, Setup, server_is_sanitized, wait_until};

/// Calls in a round, unless `RL_LEAK_CALLS` says otherwise.
const CALLS: usize = 10_000;

/// Rounds after the first one, which also pays for what is there once: tables, statistics, buffers.
const FURTHER_ROUNDS: usize = 2;

/// What may be held more after the further rounds. The buffers of a connection come and go with up to
/// 70 kB. A leak in each call, and were it of the smallest allocation there is, 8 bytes, takes 160 kB.
const SLACK_BYTES: i64 = 128 * 1024;

/// Calls sent before their answers are read, but for those whose answers are long.
const PIPELINED: usize = 500;

/// Calls of one kind.
struct Kind {
    /// Makes what is there before each round.
    before: Option<&'static str>,
    /// The lines of a call. `{n}` is its number in the round, `{t}` its time: 10 ms after the one
    /// before; `{h}` goes through 1 to 9, and `{ahead}` is a day after the server's clock.
    lines: &'static [&'static str],
    /// What the answer to the last line says, as redis-cli shows it.
    answer: &'static str,
    /// Calls sent before their answers are read.
    pipelined: usize,
}

const ADMITTED: &str = "1) (integer) 1";
const DENIED: &str = "1) (integer) 0";

/// Calls of these lines to an empty server.
const fn kind(lines: &'static [&'static str], answer: &'static str) -> Kind {
    Kind { before: None, lines, answer, pipelined: PIPELINED }
}

/// The same on what another line has made.
const fn kind_on(
    before: &'static str,
    lines: &'static [&'static str],
    answer: &'static str,
) -> Kind {
    Kind { before: Some(before), ..kind(lines, answer) }
}

/// A line of a kind, filled in for the call of this number.
fn command(line: &str, n: usize, clock_ms: i64) -> redis::Cmd {
    let line = line
        .replace("{n}", &n.to_string())
        .replace("{t}", &(1_000_000 + 10 * n).to_string())
        .replace("{h}", &(1 + n % 9).to_string())
        .replace("{ahead}", &(clock_ms + 86_400_000).to_string());
    let mut command = redis::Cmd::new();
    command.arg(line.split(' ').collect::<Vec<_>>());
    command
}

/// Runs a round and removes all keys.
fn run_round(server: &Server, kind: &Kind, calls: usize) {
    let clock_ms = server.now();
    if let Some(line) = kind.before {
        server.does(line);
    }
    let mut connection = server.plain_connection();
    for first in (0..calls).step_by(kind.pipelined) {
        let numbers = first..calls.min(first + kind.pipelined);
        let mut pipeline = redis::pipe();
        for n in numbers {
            for line in kind.lines {
                pipeline.add_command(command(line, n, clock_ms));
            }
        }
        let answers: Vec<redis::RedisResult<Value>> =
            pipeline.ignore_errors().query(&mut connection).unwrap();
        for answer in answers.chunks(kind.lines.len()).map(|answers| answers.last().unwrap()) {
            let text = shown(&answer.clone().map_err(|error| error.to_string())).join("\n");
            assert!(text.contains(kind.answer), "{:?} was answered:\n{text}", kind.lines);
        }
    }
    server.does("CONFIG SET maxmemory 0");
    server.does("FLUSHALL SYNC");
}

/// Bytes that the server holds, as it counts them, and as its allocator does if that can say so. Where
/// the two share the allocator, as on Debian, the second counts those of the module's own too.
fn held(server: &Server) -> [i64; 2] {
    wait_until("the connection of the round to be gone", || {
        server.info("connected_clients") == "1"
    });
    let counted = server.info("used_memory").parse().unwrap();
    let statistics: String = server.run("MEMORY MALLOC-STATS");
    let allocated = statistics.split_once("Allocated: ").map(|(_, rest)| {
        rest.split(',').next().unwrap().parse().expect("the allocator's figure is a number")
    });
    [counted, allocated.unwrap_or(counted)]
}

/// Runs the rounds of each kind on one server.
fn leave_nothing(kinds: &[Kind]) {
    let calls = std::env::var("RL_LEAK_CALLS").map_or(CALLS, |calls| calls.parse().unwrap());
    let server = Setup::new().alone().start();
    for kind in kinds {
        run_round(&server, kind, calls);
        let before = held(&server);
        for _ in 0..FURTHER_ROUNDS {
            run_round(&server, kind, calls);
        }
        let after = held(&server);
        let flat = (0..2).all(|figure| after[figure] <= before[figure] + SLACK_BYTES);
        assert!(flat, "{:?}: {before:?} bytes held before, {after:?} after", kind.lines);
    }
}

#[test]
fn logs_leave_nothing() {
    leave_nothing(&[
        kind(&["RL.SLIDE k 60s 1000000 AT {t}"], ADMITTED),
        kind(&["RL.SLIDE k 1s 1000000 AT {t}"], ADMITTED),
        kind(&["RL.SLIDE k 60s 1000000 COST 0"], ADMITTED),
        kind(&["RL.SLIDE k 60s 1000000 PRECISION 1s AT {t}"], ADMITTED),
        kind(&["RL.SLIDE k 60s 0 FORCE AT {t}"], DENIED),
        kind(&["RL.SLIDE k 60s 5 COST 6"], DENIED),
        kind(&["RL.SLIDE a-name-of-some-length-{n} 60s 0"], DENIED),
        kind_on("RL.SLIDE k 60s 1 AT 1000000", &["RL.SLIDE k 60s 1 AT 1000001"], DENIED),
        kind(
            &["RL.SLIDE k 1s 200 2s 300 3s 400 4s 500 5s 600 6s 700 7s 800 8s 900 AT {t}"],
            ADMITTED,
        ),
        kind(&["RL.SLIDE k 60s 5 AT {ahead}", "RL.SLIDE k 60s 5"], ADMITTED),
    ]);
}

#[test]
fn counters_leave_nothing() {
    leave_nothing(&[
        kind(&["RL.SWC k 60s 1000000 AT {t}"], ADMITTED),
        kind(&["RL.SWC k 1s 1000000 AT {t}"], ADMITTED),
        kind(&["RL.SWC k 60s 0 FORCE AT {t}"], DENIED),
        kind(&["RL.SWC k 60s 5 COST 6"], DENIED),
        kind_on("RL.SWC k 60s 1 AT 1000000", &["RL.SWC k 60s 1 AT 1000001"], DENIED),
        kind(&["RL.SWC k {h}h 1000000 AT {t}"], ADMITTED),
        kind(
            &["RL.SWC k 1s 200 2s 300 3s 400 4s 500 5s 600 6s 700 7s 800 8s 900 AT {t}"],
            ADMITTED,
        ),
        kind(&["RL.SWC k 60s 5 AT {ahead}", "RL.SWC k 60s 5"], ADMITTED),
    ]);
}

#[test]
fn peeks_leave_nothing() {
    leave_nothing(&[
        kind(&["RL.PEEK k 60s 5"], ADMITTED),
        kind(&["RL.PEEK k 60s 0"], DENIED),
        kind_on("RL.SLIDE k 60s 5 AT 1000000", &["RL.PEEK k 60s 5 1s 5 AT 1000001"], ADMITTED),
        kind_on("RL.SLIDE k 60s 1 AT 1000000", &["RL.PEEK k 60s 1 AT 1000001"], DENIED),
        kind_on("RL.SWC k 60s 5 AT 1000000", &["RL.PEEK k 60s 5 1s 5 AT 1000001"], ADMITTED),
        kind_on("RL.SWC k 60s 1 AT 1000000", &["RL.PEEK k 60s 1 AT 1000001"], DENIED),
    ]);
}

#[test]
fn refunds_leave_nothing() {
    leave_nothing(&[
        kind(&["RL.REFUND k 1"], "(integer) 0"),
        kind(&["RL.SLIDE k 60s 1000000 COST 3 AT {t}", "RL.REFUND k 2 AT {t}"], "(integer) 2"),
        kind(&["RL.SLIDE k 60s 5", "RL.SLIDE k 60s 5", "RL.REFUND k 2"], "(integer) 2"),
        kind(&["RL.SWC k 60s 1000000 COST 3 AT {t}", "RL.REFUND k 2 AT {t}"], "(integer) 2"),
    ]);
}

#[test]
fn the_list_of_the_denied_leaves_nothing() {
    leave_nothing(&[
        kind_on("RL.SLIDE k 60s 0", &["RL.DENIED"], "1) 1) \""),
        kind_on("RL.SLIDE k 60s 0", &["RL.DENIED COUNT 1000"], "1) 1) \""),
        kind(&["RL.SWC k{n} 60s 0", "RL.DENIED RESET"], "OK"),
        // The allocator keeps for its next use what many long answers had waited in.
        Kind { pipelined: 1, ..kind(&["INFO everything"], "\"# Server") },
    ]);
}

#[test]
fn errors_leave_nothing() {
    leave_nothing(&[
        kind(&["RL.SLIDE k"], "wrong number of arguments"),
        kind(&["RL.SLIDE k 60 {n}"], "write 60ms, or 60s"),
        kind(&["RL.SLIDE k 60s 5 option-{n}"], "unknown option 'option-"),
        kind(&["RL.SLIDE k 60s 5 PRECISION 2m"], "must not be above the shortest"),
        kind(&["RL.SWC k 60s -{n}"], "must be an integer"),
        kind(&["RL.PEEK k 60s 5 60s {n}"], "is given twice"),
        kind(&["RL.REFUND k 0"], "must be an integer"),
        kind(&["RL.DENIED COUNT x{n}"], "must be an integer"),
    ]);
}

#[test]
fn keys_of_others_leave_nothing() {
    const WRONG_TYPE: &str = "WRONGTYPE";
    const FOREIGN: &str = "was not written by";
    leave_nothing(&[
        kind_on("SET k v", &["RL.SLIDE k 60s 5"], WRONG_TYPE),
        kind_on("SET k v", &["RL.SWC k 60s 5"], WRONG_TYPE),
        kind_on("SET k v", &["RL.PEEK k 60s 5"], WRONG_TYPE),
        kind_on("SET k v", &["RL.REFUND k 5"], WRONG_TYPE),
        kind_on("ZADD k 1 foreign", &["RL.SLIDE k 60s 5"], FOREIGN),
        kind_on("ZADD k 1 foreign", &["RL.PEEK k 60s 5"], FOREIGN),
        kind_on("ZADD k 1 foreign", &["RL.REFUND k 5"], FOREIGN),
        kind_on("HSET k foreign field", &["RL.SWC k 60s 5"], FOREIGN),
        kind_on("HSET k foreign field", &["RL.PEEK k 60s 5"], FOREIGN),
        kind_on("HSET k foreign field", &["RL.REFUND k 5"], FOREIGN),
    ]);
}

#[test]
fn what_finds_no_memory_leaves_nothing() {
    leave_nothing(&[
        kind_on("CONFIG SET maxmemory 1", &["RL.SLIDE k 60s 5"], "OOM"),
        kind_on("CONFIG SET maxmemory 1", &["RL.SWC k 60s 5"], "OOM"),
    ]);
}

#[test]
fn transactions_and_scripts_leave_nothing() {
    leave_nothing(&[
        kind(
            &["MULTI", "RL.SLIDE k 1s 1000000 AT {t}", "RL.SWC c 1s 1000000 AT {t}", "EXEC"],
            "1) 1) (integer) 1",
        ),
        kind(&["EVAL return(redis.call('RL.SLIDE',KEYS[1],'60s','0')) 1 k"], DENIED),
        kind(&["EVAL return(redis.call('RL.SWC',KEYS[1],'60s','1000000')) 1 k"], ADMITTED),
        kind(&["EVAL return(redis.call('RL.SLIDE',KEYS[1],'60','5')) 1 k"], "write 60ms, or 60s"),
        kind(&["EVAL return(redis.pcall('RL.SLIDE',KEYS[1],'60','5')) 1 k"], "write 60ms, or 60s"),
    ]);
}

#[test]
fn a_leak_fails_the_test_where_the_server_is_sanitized() {
    let server = Server::start();
    server.does("DEBUG LEAK lost");
    let end = catch_unwind(AssertUnwindSafe(|| drop(server)));
    assert_eq!(end.is_err(), server_is_sanitized());
}
