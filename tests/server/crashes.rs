//! The server is killed in the middle of its work, and started again: what it has answered is so.
//!
//! At most one call of each client was under way when the server died: it may be there or not.

use std::fs;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::clock::{Clock, HOUR_MS, MINUTE_MS, START_MS};
use crate::harness::{Server, Setup, wait_until};
use crate::load::{Asked, CLIENTS, Load, Progress, Stored, answer_of, connections, stored_entry};
use crate::model::{Call, Charged, CounterModel, Model};
use crate::random::Random;
use crate::wire::frame_of;

// --- The crash -------------------------------------------------------------------------------------

/// A server, its load, and what it is started with.
struct Bench<'a> {
    server: Server,
    load: Load,
    setup: &'a Setup,
}

impl Bench<'_> {
    fn start(setup: &Setup) -> Bench<'_> {
        let server = setup.clone().start();
        let load = Load::of(&server);
        Bench { server, load, setup }
    }

    /// Lets the clients ask while something is done, and then kills the server in the middle of it.
    /// Tells what was done, and what each client was told.
    fn kill_under_load<T>(
        &mut self,
        meanwhile: impl FnOnce(&Server, &Progress) -> T,
    ) -> (T, [Asked; CLIENTS]) {
        self.load.during(connections(&self.server), |progress| {
            let done = meanwhile(&self.server, progress);
            self.server.restart(self.setup.clone().without_module());
            done
        })
    }

    /// Fails unless the server has each client's limiters as they are after a number of its calls that
    /// is in its range. Then it is started again with the module, and the limiters go on from there.
    /// Tells those numbers.
    fn assert_holds(
        &mut self,
        asked: &[Asked; CLIENTS],
        ranges: [RangeInclusive<usize>; CLIENTS],
    ) -> [usize; CLIENTS] {
        let keys: Vec<String> = self.server.run("KEYS *");
        assert!(keys.iter().all(|key| self.server.expiry(key) > self.server.now()), "{keys:?}");
        let stored: [Stored; CLIENTS] =
            std::array::from_fn(|client| Stored::of(&self.server, client));
        self.server.restart(self.setup.clone());
        std::array::from_fn(|client| {
            assert_eq!(Stored::of(&self.server, client), stored[client], "with the module");
            let range = ranges[client].clone();
            self.load.assert_goes_on(&self.server, client, &asked[client], range)
        })
    }

    /// Fails unless all that was answered is there, and at most one call more of each client.
    fn assert_holds_all(&mut self, asked: &[Asked; CLIENTS]) -> [usize; CLIENTS] {
        self.assert_holds(asked, asked.each_ref().map(Asked::all_or_one_more))
    }
}

/// How many calls each client was told the end of.
fn made(asked: &[Asked; CLIENTS]) -> [usize; CLIENTS] {
    asked.each_ref().map(|asked| asked.made)
}

// --- The AOF ---------------------------------------------------------------------------------------

/// Kills a server with an AOF that is rewritten all the time; the bench, and what was answered.
fn kill_while_rewriting(setup: &Setup) -> (Bench<'_>, [Asked; CLIENTS]) {
    let mut bench = Bench::start(setup);
    let ((), asked) = bench.kill_under_load(|server, progress| {
        for _ in 0..2 {
            progress.wait_for_answers(50);
            server.does("BGREWRITEAOF");
            wait_until("the rewrite", || {
                server.info("aof_rewrite_in_progress") == "0"
                    && server.info("aof_rewrite_scheduled") == "0"
            });
            assert_eq!(server.info("aof_last_bgrewrite_status"), "ok");
        }
        progress.wait_for_answers(50);
        // The last one may be anywhere when the server dies.
        server.does("BGREWRITEAOF");
        progress.wait_for_answers(5);
    });
    (bench, asked)
}

#[test]
fn with_every_write_synced_nothing_that_was_answered_is_lost() {
    for preamble in ["yes", "no"] {
        let setup = Setup::new().with_aof().option(&format!("aof-use-rdb-preamble {preamble}"));
        let (mut bench, asked) = kill_while_rewriting(&setup);
        let held = bench.assert_holds_all(&asked);
        println!("RDB preamble {preamble}: {:?} calls answered, {held:?} are there", made(&asked));
    }
}

#[test]
fn at_a_random_moment_nothing_that_was_answered_is_lost() {
    let mut random = Random::seeded();
    let setup = Setup::new().with_aof();
    for _ in 0..2 {
        let mut bench = Bench::start(&setup);
        let more = random.below(300) as usize;
        let ((), asked) = bench.kill_under_load(|_, progress| progress.wait_for_answers(more));
        let held = bench.assert_holds_all(&asked);
        println!("{:?} calls were answered, {held:?} are there", made(&asked));
    }
}

#[test]
fn right_behind_an_answer_just_what_was_answered_is_there() {
    let mut random = Random::seeded();
    let setup = Setup::new().with_aof();
    let mut server = setup.clone().start();
    let load = Load::of(&server);
    let (mut limiters, mut calls) = load.start(0);
    for _ in 0..5 {
        for _ in 0..=random.below(40) {
            let (line, request) = calls.next();
            let answered = answer_of(server.try_run(&line).unwrap());
            assert_eq!(answered, load.answer(&mut limiters, &request), "{line}");
        }
        server.restart(setup.clone());
        assert_eq!(Stored::of(&server, 0), limiters.stored());
    }
}

/// Each call removes as many entries as one may.
#[test]
fn a_long_trim_is_there_whole_or_not_at_all() {
    const BACKLOG: u64 = 6_000;
    const CALLS: u64 = 20;
    let windows = [(HOUR_MS as u64, 100)];
    let setup = Setup::new().with_aof();
    let mut server = setup.clone().start();
    let now_ms = server.now() as u64;
    // The newest is inside the window, or all of it would be dropped.
    let stamps = (1..BACKLOG).map(|number| now_ms - 2 * HOUR_MS as u64 + number).chain([now_ms]);
    let entry = |(total, stamp_ms)| Charged { stamp_ms, total, cost: 1 };
    let mut log = Model::of((1..).zip(stamps).map(entry).collect());
    server.plant("log", &log.entries.iter().map(stored_entry).collect::<Vec<_>>());

    let (answered, mut asking) = (AtomicUsize::new(0), server.plain_connection());
    let enough = 1 + Random::seeded().below(CALLS - 5) as usize;
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..CALLS {
                let mut call = redis::cmd("RL.SLIDE");
                call.arg(&["log", "1h", "100", "AT"]).arg(now_ms + number);
                match call.exec(&mut asking) {
                    Ok(()) => answered.fetch_add(1, Ordering::Relaxed),
                    Err(error) => return assert!(error.is_io_error(), "{error}"),
                };
            }
        });
        wait_until("answers", || answered.load(Ordering::Relaxed) >= enough);
        server.restart(setup.clone());
    });
    let answered = answered.load(Ordering::Relaxed) as u64;
    let slide = |log: &mut Model, number| log.slide(&Call::new(&windows, now_ms + number));
    (0..answered).for_each(|number| assert_eq!(slide(&mut log, number)[0], 1));
    let stored = |log: &Model| log.entries.iter().map(stored_entry).collect::<Vec<_>>();
    let held = server.entries("log");
    let (all, mut one_more) = (stored(&log), log);
    slide(&mut one_more, answered);
    println!("{answered} calls were answered, {} entries are there", held.len());
    assert!(held == all || held == stored(&one_more), "neither all of a call nor nothing of it");
}

/// The process dies and not the machine: what the server has written is there, synced or not. What it has
/// answered and not written, while a sync took long, is not.
#[test]
fn with_a_sync_a_second_all_that_was_written_is_there() {
    for preamble in ["yes", "no"] {
        let setup = Setup::new().option("appendonly yes").option("appendfsync everysec");
        let setup = setup.option(&format!("aof-use-rdb-preamble {preamble}"));
        let mut bench = Bench::start(&setup);
        let (written, asked) = bench.kill_under_load(|server, progress| {
            progress.wait_for_answers(100);
            server.does("BGREWRITEAOF");
            progress.wait_for_answers(100);
            let written = progress.made();
            wait_until("an empty buffer", || server.info("aof_buffer_length") == "0");
            progress.wait_for_answers(100);
            written
        });
        let ranges = std::array::from_fn(|client| written[client]..=asked[client].made + 1);
        let held = bench.assert_holds(&asked, ranges);
        println!("RDB preamble {preamble}: {:?} calls answered, {held:?} are there", made(&asked));
    }
}

// --- The RDB ---------------------------------------------------------------------------------------

#[test]
fn an_rdb_that_is_saved_under_load_holds_one_moment_of_it() {
    for save in ["SAVE", "BGSAVE"] {
        let setup = Setup::new();
        let mut bench = Bench::start(&setup);
        let ((before, after), asked) = bench.kill_under_load(|server, progress| {
            progress.wait_for_answers(100);
            let before = progress.made();
            server.does(save);
            let after = progress.made();
            wait_until("the save", || server.info("rdb_bgsave_in_progress") == "0");
            assert_eq!(server.info("rdb_last_bgsave_status"), "ok");
            progress.wait_for_answers(100);
            (before, after)
        });
        let ranges = std::array::from_fn(|client| before[client]..=after[client] + 1);
        let held = bench.assert_holds(&asked, ranges);
        println!("{save}: {:?} calls were answered, the RDB has {held:?} of them", made(&asked));
    }
}

#[test]
fn a_save_that_is_not_finished_leaves_the_one_before() {
    let setup = Setup::new();
    let mut bench = Bench::start(&setup);
    let ((before, after), asked) = bench.kill_under_load(|server, progress| {
        progress.wait_for_answers(100);
        let before = progress.made();
        server.does("SAVE");
        let after = progress.made();
        progress.wait_for_answers(100);
        let [_, dir]: [String; 2] = server.run("CONFIG GET dir");
        // A second a key, which nobody waits for.
        server.does("CONFIG SET rdb-key-save-delay 1000000");
        let mut saving = server.wire();
        saving.send(&frame_of(&["SAVE"]));
        wait_until("the save", || {
            let files = fs::read_dir(&dir).unwrap();
            let mut names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
            names.any(|name| name.starts_with("temp-"))
        });
        (before, after)
    });
    let ranges = std::array::from_fn(|client| before[client]..=after[client] + 1);
    let held = bench.assert_holds(&asked, ranges);
    println!("{:?} calls were answered, the RDB has {held:?} of them", made(&asked));
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
