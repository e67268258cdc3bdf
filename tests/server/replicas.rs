//! Replicas in what happens to them: other clocks, keys that expire, links that are cut, errors that
//! would end them. And what an admission costs them, command by command.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::client::Client;
use crate::clock::{Clock, HOUR_MS, MINUTE_MS, START_MS};
use crate::dataset::{dataset, digest};
use crate::harness::{
    Server, Setup, compact_entries_option, server_is_at_least, skipped, wait_until,
};
use crate::random::Random;
use crate::random_calls::run_stream;
use crate::replication::{primary, primary_with, replica_of, wait_for_replicas};

/// Steps of a clock are no silence of the link.
const PATIENT: &str = "repl-timeout 1000000";

/// The user that the replicas of a [`cuttable_primary`] log in as.
const LINK_USER: &str = "link";

/// A primary whose replicas have a user of their own, and are cut off for good when it is deleted.
pub fn cuttable_primary(setup: Setup) -> Server {
    primary_with(setup.option(&format!("user {LINK_USER} on >{LINK_USER} +psync +replconf +ping")))
}

/// A replica of a [`cuttable_primary`].
pub fn cuttable_replica(primary: &Server, setup: Setup) -> Server {
    let setup = setup.option(&format!("masteruser {LINK_USER}"));
    replica_of(primary, setup.option(&format!("masterauth {LINK_USER}")))
}

/// Nothing that the primary writes from now on reaches its replicas.
pub fn cut_off(primary: &Client) {
    assert_eq!(primary.run::<i64>(&format!("ACL DELUSER {LINK_USER}")), 1);
}

/// How often the server has run a command.
pub fn calls(server: &Client, command: &str) -> u64 {
    let info: String = server.run("INFO commandstats");
    let head = format!("cmdstat_{command}:calls=");
    let found = info.lines().find_map(|line| line.strip_prefix(&head));
    found.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
}

/// Fails unless the replica holds what the primary does: each key's bytes, and its expiry.
pub fn assert_same(replica: &Client, primary: &Client) {
    assert_eq!(digest(replica), digest(primary));
    let (theirs, ours) = (dataset(replica), dataset(primary));
    for (key, state) in &ours {
        assert!(theirs.get(key) == Some(state), "{} differs", String::from_utf8_lossy(key));
    }
    assert_eq!(theirs.len(), ours.len());
}

// --- Clocks ----------------------------------------------------------------------------------------

/// What is stored does not depend on the replica's clock, neither of those that follow from the start
/// nor of one that comes later.
#[test]
fn replicas_whose_clocks_are_an_hour_off_hold_the_same() {
    // A log that has shrunk is sent whole in another encoding than it has, unless there is but one.
    let setup = |clock: &Clock| clock.setup().option(PATIENT).option(&compact_entries_option(0));
    let clock = Clock::frozen();
    let primary = primary_with(setup(&clock));
    let clocks = [HOUR_MS, -HOUR_MS, HOUR_MS, -HOUR_MS].map(|offset_ms| {
        let clock = Clock::frozen();
        clock.step_by(offset_ms);
        clock
    });
    let follow = |clock| replica_of(&primary, setup(clock));
    let follow_natively = |clock| replica_of(&primary, setup(clock).without_module());
    let mut replicas = vec![follow(&clocks[0]), follow_natively(&clocks[1])];
    run_stream(&primary);
    replicas.extend([follow_natively(&clocks[2]), follow(&clocks[3])]);
    assert_eq!(primary.slide("last 60s 9")[0], 1);
    wait_for_replicas(&primary, 4);
    for replica in &replicas {
        assert_eq!(digest(replica), digest(&primary));
    }
    // A replica shows no key that has expired by its own clock, so that they are compared by one.
    clocks.iter().for_each(|clock| clock.freeze_at(START_MS));
    replicas.iter().for_each(|replica| assert_same(replica, &primary));
}

/// A call on a replica or after its promotion goes by that server's clock: what an hour does to windows
/// that are shorter and longer.
#[test]
fn what_a_replica_answers_goes_by_its_own_clock() {
    let (clock, ahead_clock, behind_clock) = (Clock::frozen(), Clock::frozen(), Clock::frozen());
    ahead_clock.step_by(HOUR_MS);
    behind_clock.step_by(-HOUR_MS);
    let primary = primary_with(clock.setup().option(PATIENT));
    let follow = |clock: &Clock| replica_of(&primary, clock.setup().option(PATIENT));
    let (ahead, behind) = (follow(&ahead_clock), follow(&behind_clock));
    primary.slide("short 1m 3 COST 3");
    primary.slide("long 2h 3 COST 3");
    primary.swc("counter 2h 3 COST 3");
    wait_for_replicas(&primary, 2);

    let long_ms = 2 * HOUR_MS;
    let (fresh_short, full_long) =
        ([1, 3, 3, 0, 0, MINUTE_MS], |wait_ms| [0, 3, 0, wait_ms, wait_ms, long_ms]);
    assert_eq!(primary.peek("long 2h 3"), full_long(long_ms));
    // An hour ahead, what is shorter has expired, and what is longer leaves an hour sooner.
    assert_eq!(ahead.run::<i64>("EXISTS short long counter"), 2);
    assert_eq!(ahead.peek("short 1m 3"), fresh_short);
    assert_eq!(ahead.peek("long 2h 3"), full_long(long_ms - HOUR_MS));
    // An hour behind, a newest entry more than two windows ahead is not believed, and what is longer
    // leaves an hour later.
    assert_eq!(behind.run::<i64>("EXISTS short long counter"), 3);
    assert_eq!(behind.peek("short 1m 3"), fresh_short);
    assert_eq!(behind.peek("long 2h 3"), full_long(long_ms + HOUR_MS));
    // With the time in the call, they answer as the primary does, but for keys that have expired.
    for call in ["long 2h 3", "counter 2h 3"] {
        let call = format!("{call} AT {START_MS}");
        let answer = primary.peek(&call);
        assert_eq!([ahead.peek(&call), behind.peek(&call)], [answer, answer], "{call}");
    }
    let call = format!("short 1m 3 AT {START_MS}");
    assert_eq!(behind.peek(&call), primary.peek(&call));

    for replica in [&ahead, &behind] {
        replica.does("REPLICAOF NO ONE");
        assert_eq!(replica.slide("short 1m 3")[..3], [1, 3, 2]);
        assert_eq!(replica.slide("long 2h 3")[..3], [0, 3, 0]);
    }
}

#[test]
fn keys_that_a_call_finds_expired_go_on_the_replica_too() {
    let clock = Clock::frozen();
    let primary = primary_with(clock.setup().option(PATIENT));
    let native = replica_of(&primary, clock.setup().option(PATIENT).without_module());
    let with_module = replica_of(&primary, clock.setup().option(PATIENT));
    for server in [&primary, &native, &with_module] {
        server.does("DEBUG SET-ACTIVE-EXPIRE 0");
    }
    let keys = ["slide", "denied", "peeked", "refunded"];
    let each = |verb: &str| {
        for key in keys {
            primary.does(&format!("RL.{verb} {verb}:{key} 1m 3 COST 3"));
        }
    };
    each("SLIDE");
    each("SWC");
    wait_for_replicas(&primary, 2);
    clock.step_by(3 * MINUTE_MS);
    // Nobody has looked at them yet, so they are there, but a replica tells of none.
    assert_eq!(with_module.run::<i64>("DBSIZE"), 8);
    assert_eq!(with_module.peek("SLIDE:slide 1m 3"), [1, 3, 3, 0, 0, MINUTE_MS]);
    assert_eq!(with_module.peek("SWC:slide 1m 3"), [1, 3, 3, 0, 0, MINUTE_MS]);

    for verb in ["SLIDE", "SWC"] {
        assert_eq!(primary.verdict(&format!("RL.{verb} {verb}:slide 1m 3"))[..3], [1, 3, 2]);
        assert_eq!(primary.verdict(&format!("RL.{verb} {verb}:denied 1m 0"))[..3], [0, 0, 0]);
        assert_eq!(primary.peek(&format!("{verb}:peeked 1m 3"))[..3], [1, 3, 3]);
        assert_eq!(primary.refund(&format!("{verb}:refunded 3")), 0);
    }
    wait_for_replicas(&primary, 2);
    assert_eq!(primary.run::<i64>("DBSIZE"), 2, "only what was admitted again is there");
    assert_same(&native, &primary);
    assert_same(&with_module, &primary);
}

// --- Links -----------------------------------------------------------------------------------------

/// Far more calls than a test waits for: a load ends even if nobody ends it.
const MOST_CALLS: usize = 1_000_000;

/// Calls that add, merge, trim and take back, on windows that pass by their `AT`.
fn run_load(mut connection: redis::Connection, stop: &AtomicBool, answered: &AtomicUsize) {
    let mut random = Random::seeded();
    let mut at_ms = START_MS;
    for number in 0..MOST_CALLS {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        at_ms += random.below(100) as i64;
        let number = number % 5;
        let line = match random.below(8) {
            0 => format!("RL.REFUND log{number} 3 AT {at_ms}"),
            1 => format!("RL.REFUND counters{number} 3 AT {at_ms}"),
            2 | 3 => format!("RL.SWC counters{number} 10s 9 1m 40 COST 2 AT {at_ms}"),
            4 => format!("RL.SLIDE merged{number} 10s 50 PRECISION 1s AT {at_ms}"),
            _ => format!("RL.SLIDE log{number} 10s 50 AT {at_ms}"),
        };
        let mut words = line.split(' ');
        let mut command = redis::cmd(words.next().unwrap());
        command.arg(words.collect::<Vec<_>>()).exec(&mut connection).unwrap();
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_link_that_is_cut_under_load_is_mended_from_the_backlog() {
    let primary = primary_with(Setup::new().option("repl-backlog-size 64mb"));
    let replicas =
        [replica_of(&primary, Setup::new()), replica_of(&primary, Setup::new().without_module())];
    let (stop, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let partial = || primary.info("sync_partial_ok").parse::<usize>().unwrap();
    let connection = primary.plain_connection();
    thread::scope(|scope| {
        let load = scope.spawn(|| run_load(connection, &stop, &answered));
        for round in 1..=3 {
            let seen = answered.load(Ordering::Relaxed);
            let has_gone_on = || answered.load(Ordering::Relaxed) > seen + 200;
            wait_until("load", || has_gone_on() || load.is_finished());
            assert_eq!(primary.run::<i64>("CLIENT KILL TYPE replica"), 2);
            wait_until("both replicas", || partial() == 2 * round);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(primary.slide("last 1h 9")[0], 1);
    wait_for_replicas(&primary, 2);
    assert_eq!(primary.info("sync_full"), "2", "only the first synchronisations were full");
    replicas.iter().for_each(|replica| assert_same(replica, &primary));
}

#[test]
fn wait_tells_the_writer_whether_the_replica_has_it() {
    let primary = cuttable_primary(Setup::new());
    let replica = cuttable_replica(&primary, Setup::new().without_module());
    for total in 1..=20 {
        assert_eq!(primary.slide("k 1h 50")[0], 1);
        assert_eq!(primary.swc("c 1h 50")[0], 1);
        wait_for_replicas(&primary, 1);
        assert_eq!(replica.run::<i64>("ZCARD k"), total);
        assert_eq!(replica.run::<i64>("HGET c 3600000:current"), total);
    }
    cut_off(&primary);
    assert_eq!(primary.slide("k 1h 50")[0], 1);
    assert_eq!(primary.run::<i64>("WAIT 1 10"), 0);
    assert_eq!(replica.run::<i64>("ZCARD k"), 20);
}

// --- Errors ----------------------------------------------------------------------------------------

/// Sent to replicas that end themselves at the first command they cannot run.
#[test]
fn nothing_that_is_sent_is_an_error_to_a_replica() {
    if !server_is_at_least(7, 0) {
        return skipped("propagation-error-behavior needs 7.0");
    }
    let strict = || Setup::new().option("propagation-error-behavior panic");
    let primary = primary_with(strict());
    let replica = replica_of(&primary, strict().without_module());
    run_stream(&primary);
    wait_for_replicas(&primary, 1);
    assert_same(&replica, &primary);

    // And they do end themselves.
    replica.does("CONFIG SET replica-read-only no");
    replica.does("SET foreign text");
    replica.does("CONFIG SET replica-read-only yes");
    assert_eq!(primary.slide("foreign 1h 5")[0], 1);
    let mut watcher = replica.plain_connection();
    wait_until("the replica's end", || redis::cmd("PING").exec(&mut watcher).is_err());
}

// --- What it costs ---------------------------------------------------------------------------------

/// How often a replica ran each command of a stream, in the order of [`COSTS`].
fn costs(replica: &Client) -> [u64; COSTS.len()] {
    COSTS.map(|command| calls(replica, command))
}

const COSTS: [&str; 6] = ["zadd", "zrem", "zremrangebyrank", "hset", "hdel", "pexpireat"];

/// An hour of one limiter, asked every second by a clock that is moved, and what the replica ran for it.
fn hour_of(call: &str) -> (u64, [u64; COSTS.len()]) {
    let clock = Clock::frozen();
    let primary = primary_with(clock.setup().option(PATIENT));
    let replica = replica_of(&primary, clock.setup().option(PATIENT));
    let mut admitted = 0;
    for tick in 0..3_600_i64 {
        admitted += primary.verdict(&format!("{call} AT {}", START_MS + tick * 1_000))[0] as u64;
        // The keys' expiries follow, in fewer moves.
        if tick % 10 == 9 {
            clock.step_by(10_000);
        }
    }
    wait_for_replicas(&primary, 1);
    assert_same(&replica, &primary);
    let others = replica.commands_run();
    assert!(!others.iter().any(|command| command.starts_with("rl.")), "{others:?}");
    let costs = costs(&replica);
    println!("{call}: {admitted} of 3600 admitted; the replica ran {COSTS:?} {costs:?} times");
    (admitted, costs)
}

#[test]
fn a_steady_log_costs_a_replica_one_zadd_and_one_trim_an_admission() {
    let (admitted, [zadd, zrem, by_rank, hset, hdel, pexpireat]) = hour_of("RL.SLIDE k 1m 20");
    assert_eq!(admitted, 20 * 60);
    assert_eq!(zadd, admitted);
    assert_eq!((zrem, by_rank), (0, admitted - 20), "all that have left, one by one");
    // At most five times a window.
    assert!((60..=5 * 60).contains(&pexpireat), "{pexpireat}");
    assert_eq!([hset, hdel], [0; 2]);
}

#[test]
fn a_steady_counter_costs_a_replica_one_write_an_admission_and_an_expiry_a_window() {
    let (admitted, [zadd, zrem, by_rank, hset, hdel, pexpireat]) = hour_of("RL.SWC k 1m 20");
    assert_eq!(hset, admitted);
    assert_eq!(pexpireat, 60, "one when a window starts");
    assert_eq!([zadd, zrem, by_rank, hdel], [0; 4]);
}

#[test]
fn what_is_denied_or_only_looked_at_costs_a_replica_nothing() {
    let primary = primary();
    let replica = replica_of(&primary, Setup::new());
    primary.slide("log 1h 5 COST 5");
    primary.swc("counters 1h 5 COST 5");
    wait_for_replicas(&primary, 1);
    let (ran, dirty) = (costs(&replica), primary.dirty());
    for _ in 0..100 {
        assert_eq!(primary.slide("log 1h 5")[0], 0);
        assert_eq!(primary.swc("counters 1h 5")[0], 0);
        assert_eq!(primary.slide("log 1h 5 COST 0")[0], 1);
        primary.peek("log 1h 9");
        primary.does("RL.DENIED");
        primary.does("RL.DENIED RESET");
        assert_eq!(primary.refund("missing 1"), 0);
    }
    // Behind them comes a write, which tells that they have passed.
    primary.slide("log 1h 6");
    wait_for_replicas(&primary, 1);
    assert_eq!(primary.dirty(), dirty + 1);
    let mut one_more = ran;
    one_more[0] += 1;
    assert_eq!(costs(&replica), one_more);
}
