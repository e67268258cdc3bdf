//! A full disk: what cannot be kept is not charged, and limits go on when there is room again.
//!
//! The server may let none of its files grow any more, which is an error to it as a full disk is: a
//! write is cut short, and the next one fails.

use std::{io, ptr};

use crate::client::Client;
use crate::gates::{answers_peeks, fill, refuses_writes};
use crate::harness::{Setup, wait_until};
use crate::load::{Gate, Load, connections};

/// What the server answers to every write once it cannot write itself.
const REFUSED: &str = "MISCONF";

/// What still fits the disk: a few calls, and a part of one more.
const ROOM_BYTES: u64 = 1_000;

/// A server that a test takes the disk from.
fn on_full_disk() -> Setup {
    Setup::new().alone().outlives_full_files()
}

/// From now on no file of the server's may grow beyond so many bytes.
#[allow(unsafe_code, reason = "the standard library sets no limits")]
fn limit_files(server: &Client, most_bytes: u64) {
    let process = server.info("process_id").parse().unwrap();
    let limit = libc::rlimit { rlim_cur: most_bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the new limit outlives the call, and the old one is not asked for.
    let set = unsafe { libc::prlimit(process, libc::RLIMIT_FSIZE, &limit, ptr::null_mut()) };
    assert_eq!(set, 0, "{}", io::Error::last_os_error());
}

/// The AOF soon grows no more.
fn fill_disk(server: &Client) {
    let used_bytes: u64 = server.info("aof_current_size").parse().unwrap();
    limit_files(server, used_bytes + ROOM_BYTES);
}

fn make_room(server: &Client) {
    limit_files(server, libc::RLIM_INFINITY);
}

/// Waits until the AOF has all that the server has changed.
fn wait_for_aof(server: &Client) {
    wait_until("an empty buffer", || server.info("aof_buffer_length") == "0");
}

fn everysec() -> Setup {
    on_full_disk().option("appendonly yes").option("appendfsync everysec")
}

#[test]
fn without_room_for_the_aof_nothing_is_charged_until_there_is() {
    let mut server = everysec().start();
    fill(&server);
    let load = Load::of(&server).behind(Gate::Writes(REFUSED));
    let ((), asked) = load.during(connections(&server), |progress| {
        for _ in 0..2 {
            progress.wait_for_answers(50);
            fill_disk(&server);
            progress.wait_for_refusals(20);
            assert_eq!(server.info("aof_last_write_status"), "err");
            refuses_writes(&server, REFUSED);
            answers_peeks(&server);
            make_room(&server);
            progress.wait_for_answers(50);
            assert_eq!(server.info("aof_last_write_status"), "ok");
        }
    });
    wait_for_aof(&server);
    server.restart(everysec());
    load.assert_all_go_on(&server, &asked);
}

/// What was answered just before the first refusal may not be in the file.
#[test]
fn killed_without_room_a_server_has_what_was_written_before() {
    let mut server = everysec().start();
    let load = Load::of(&server).behind(Gate::Writes(REFUSED));
    let (written, asked) = load.during(connections(&server), |progress| {
        progress.wait_for_answers(50);
        let written = progress.made();
        wait_for_aof(&server);
        fill_disk(&server);
        progress.wait_for_refusals(20);
        server.restart(everysec());
        written
    });
    for (client, asked) in asked.iter().enumerate() {
        let range = written[client]..=asked.made + 1;
        let held = load.assert_goes_on(&server, client, asked, range);
        let [answered, held] = [asked.made, held].map(|number| asked.not_refused(number));
        println!("client {client}: {answered} answered, {held} there");
    }
}

/// Such a server cannot take back what it has changed, and so ends before it answers.
#[test]
fn with_every_write_synced_a_server_without_room_ends_and_loses_nothing() {
    let setup = on_full_disk().with_aof();
    let mut server = setup.clone().start();
    let load = Load::of(&server);
    let ((), asked) = load.during(connections(&server), |progress| {
        progress.wait_for_answers(50);
        let mut watcher = server.plain_connection();
        fill_disk(&server);
        wait_until("the server's end", || redis::cmd("PING").exec(&mut watcher).is_err());
        server.restart(setup.clone());
    });
    for (client, asked) in asked.iter().enumerate() {
        let held = load.assert_goes_on(&server, client, asked, asked.all_or_one_more());
        println!("client {client}: {} answered, {held} there", asked.made);
    }
}

#[test]
fn after_a_save_that_failed_nothing_is_charged_until_one_succeeds() {
    let server = on_full_disk().option("save 3600 1000000").start();
    fill(&server);
    let save = |status| {
        server.does("BGSAVE");
        wait_until("the save", || server.info("rdb_bgsave_in_progress") == "0");
        assert_eq!(server.info("rdb_last_bgsave_status"), status);
    };
    limit_files(&server, 64);
    save("err");
    refuses_writes(&server, REFUSED);
    answers_peeks(&server);
    server.does("CONFIG SET stop-writes-on-bgsave-error no");
    assert_eq!(server.slide("log 30d 3")[..3], [1, 3, 0]);
    server.does("CONFIG SET stop-writes-on-bgsave-error yes");
    refuses_writes(&server, REFUSED);
    make_room(&server);
    save("ok");
    assert_eq!(server.slide("log 30d 4")[..3], [1, 4, 0]);
    assert_eq!(server.swc("counters 30d 3")[..3], [1, 3, 0]);
}
