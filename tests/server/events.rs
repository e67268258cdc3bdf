//! Keyspace notifications: those of the native writes that happened, and `rl.denied` on a denial.

use crate::harness::{Server, Setup};

/// A server that announces events of every class.
pub fn announcing_server() -> Server {
    Setup::new().option("notify-keyspace-events KEAd").start()
}

/// The events that a call causes in database 0, each as `event key`, in order.
pub fn events(server: &Server, call: &str) -> Vec<String> {
    let mut connection = server.plain_connection();
    let mut listener = connection.as_pubsub();
    listener.psubscribe("__keyevent@0__:*").unwrap();
    let _ = server.try_run(call);
    server.does("PUBLISH __keyevent@0__:end -");
    let mut heard = Vec::new();
    loop {
        let message = listener.get_message().unwrap();
        let event = message.get_channel_name().strip_prefix("__keyevent@0__:").unwrap();
        if event == "end" {
            return heard;
        }
        heard.push(format!("{event} {}", message.get_payload::<String>().unwrap()));
    }
}

/// The same, sorted: for calls whose writes may come in any order.
pub fn sorted_events(server: &Server, call: &str) -> Vec<String> {
    let mut heard = events(server, call);
    heard.sort();
    heard
}

#[test]
fn an_admission_announces_its_writes() {
    let server = announcing_server();
    // Servers from 7.0 on can announce new keys too.
    let mut first = sorted_events(&server, "RL.SLIDE k 60s 5 AT 1000000");
    first.retain(|event| event != "new k");
    assert_eq!(first, ["expire k", "zadd k"]);
    assert_eq!(events(&server, "RL.SLIDE k 60s 5 AT 1000000"), ["zadd k"]);
    assert_eq!(events(&server, "RL.SLIDE k 60s 5 FORCE AT 1000000"), ["zadd k"]);
}

#[test]
fn a_trim_announces_itself() {
    let server = announcing_server();
    for entries in [1, 10] {
        server.does("DEL k");
        let planted: Vec<String> =
            (0..entries).map(|i| format!("{} a{i}+1", 1_000_000 + i)).collect();
        server.plant("k", &planted);
        server.does("PEXPIRE k 65000");
        let heard = sorted_events(&server, "RL.SLIDE k 60s 5 AT 2000000");
        assert_eq!(heard, ["zadd k", "zremrangebyrank k"]);
    }
}

#[test]
fn a_merge_announces_the_member_that_goes() {
    let server = announcing_server();
    server.slide("k 60s 5 PRECISION 1s AT 1000000");
    assert_eq!(
        sorted_events(&server, "RL.SLIDE k 60s 5 PRECISION 1s AT 1000000"),
        ["zadd k", "zrem k"]
    );
}

#[test]
fn a_dropped_log_announces_its_deletion() {
    let server = announcing_server();
    server.plant("k", &[format!("{} a1+1", server.now() + 3_600_000)]);
    let mut heard = events(&server, "RL.SLIDE k 60s 5");
    heard.retain(|event| event != "new k");
    assert_eq!(heard[0], "del k");
    heard.sort();
    assert_eq!(heard, ["del k", "expire k", "zadd k"]);
}

#[test]
fn a_denial_announces_only_that() {
    let server = announcing_server();
    server.slide("k 60s 1 AT 1000000");
    assert_eq!(events(&server, "RL.SLIDE k 60s 1 AT 1000000"), ["rl.denied k"]);
    assert_eq!(events(&server, "RL.SLIDE missing 60s 0"), ["rl.denied missing"]);
    assert_eq!(events(&server, "RL.SLIDE k 60s 0 COST 0 AT 1000000"), ["rl.denied k"]);
    assert_eq!(
        sorted_events(&server, "RL.SLIDE k 60s 1 FORCE AT 1000000"),
        ["rl.denied k", "zadd k"]
    );
}

#[test]
fn what_is_neither_admitted_nor_denied_is_silent() {
    let server = announcing_server();
    server.slide("k 60s 1 AT 1000000");
    server.does("SET text v");
    for call in
        ["k 60s 1 COST 0 AT 1000000", "missing 60s 1 COST 0", "k 60s x", "text 60s 1", "text 60s 0"]
    {
        assert!(events(&server, &format!("RL.SLIDE {call}")).is_empty(), "{call}");
    }
}

#[test]
fn denials_can_be_left_out_by_their_class() {
    let server = Setup::new().option("notify-keyspace-events KEz").start();
    server.slide("k 60s 1 AT 1000000");
    assert!(events(&server, "RL.SLIDE k 60s 1 AT 1000000").is_empty());
    assert_eq!(events(&server, "RL.SLIDE k 60s 2 AT 1000000"), ["zadd k"]);
    server.does("CONFIG SET notify-keyspace-events KEd");
    assert_eq!(events(&server, "RL.SLIDE k 60s 1 AT 1000000"), ["rl.denied k"]);
    assert!(events(&server, "RL.SLIDE k 60s 3 AT 1000000").is_empty());
}

#[test]
fn all_classes_include_denials_and_can_be_written_out_without() {
    let server = Setup::new().option("notify-keyspace-events KEA").start();
    server.slide("k 60s 1 AT 1000000");
    assert_eq!(events(&server, "RL.SLIDE k 60s 1 AT 1000000"), ["rl.denied k"]);
    server.does("CONFIG SET notify-keyspace-events KEg$lshzxet");
    assert!(events(&server, "RL.SLIDE k 60s 1 AT 1000000").is_empty());
    assert_eq!(events(&server, "RL.SLIDE k 60s 2 AT 1000000"), ["zadd k"]);
}
