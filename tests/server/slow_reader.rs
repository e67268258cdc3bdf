//! A client that sends and never reads: with `client-output-buffer-limit` the server holds no more than
//! that for it, and goes on for the others.

use crate::harness::Setup;
use crate::load::{CLIENTS, Load, connections};
use crate::replicas::calls;
use crate::wire::frame_of;

/// What the server may hold of replies that nobody reads.
const OUTPUT_BYTES: u64 = 256 * 1024;

/// What it may hold beside them, for all clients.
const SLACK_BYTES: u64 = 1024 * 1024;

const LIMIT: i64 = 1_000_000_000;

#[test]
fn it_is_closed_and_what_it_asked_is_counted() {
    let setup = Setup::new().alone();
    let server =
        setup.option(&format!("client-output-buffer-limit normal {OUTPUT_BYTES} 0 0")).start();
    let bytes = |field| server.info(field).parse::<u64>().unwrap();
    let before_bytes = bytes("used_memory");
    let load = Load::of(&server);

    let limit = LIMIT.to_string();
    // One entry, whatever is charged.
    let call = ["RL.SLIDE", "unread", "1d", &limit, "PRECISION", "1d", "AT", "1796037190000"];
    let batch = frame_of(&call).repeat(100);
    let ((), asked) = load.during(connections(&server), |progress| {
        let mut unread = server.wire();
        while unread.try_send(&batch).is_ok() {}
        progress.wait_for_answers(50);
    });

    let is_slide = |line: &str| line.starts_with("RL.SLIDE");
    let by_others: usize = (0..CLIENTS)
        .map(|client| {
            let (_, mut calls) = load.start(client);
            (0..asked[client].made).filter(|_| is_slide(&calls.next().0)).count()
        })
        .sum();
    let executed = calls(&server, "rl.slide") as i64 - by_others as i64;
    let held_bytes = bytes("used_memory_peak") - before_bytes;
    println!("{executed} calls unread; {held_bytes} bytes held at most");
    assert!(executed > 0 && held_bytes < OUTPUT_BYTES + SLACK_BYTES);
    let [_, _, remaining, ..] = server.peek(&format!("unread 1d {LIMIT} AT 1796037190000"));
    assert_eq!(LIMIT - remaining, executed, "what was carried out is charged");
    load.assert_all_go_on(&server, &asked);
}
