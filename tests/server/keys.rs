//! Keys are bytes, not text, and each limiter's state is in its one key.

use crate::client::six_fields;
use crate::dataset::dataset;
use crate::harness::Server;

#[test]
fn a_key_may_be_any_bytes() {
    let server = Server::start();
    let all_bytes: Vec<u8> = (0..=255).collect();
    let long = vec![b'%'; 100_000];
    let keys: [&[u8]; 9] = [
        b"",
        b" ",
        b"\0",
        b"\r\n",
        b"%s%n%x",
        b"\xff\xfe",
        b"60s",
        all_bytes.as_slice(),
        long.as_slice(),
    ];
    for key in keys {
        let slide = |limit: &[u8], at: &[u8]| {
            let args: [&[u8]; 6] = [b"RL.SLIDE", key, b"60s", limit, b"AT", at];
            six_fields(server.try_args(&args).unwrap())
        };
        assert_eq!(slide(b"2", b"1000000"), [1, 2, 1, 0, 60_000, 60_000]);
        assert_eq!(slide(b"2", b"1000001"), [1, 2, 0, 0, 60_000, 60_000]);
        assert_eq!(slide(b"2", b"1000002"), [0, 2, 0, 59_998, 59_999, 60_000]);
        assert_eq!(server.args::<i64>(&[b"ZCARD", key]), 2);
    }
    let stored = dataset(&server);
    assert_eq!(stored.len(), keys.len(), "each key has its own log");
    assert!(keys.iter().all(|key| stored.contains_key(*key)));
}

#[test]
fn every_single_byte_is_a_key() {
    let server = Server::start();
    for byte in 0..=255_u8 {
        let args: [&[u8]; 4] = [b"RL.SLIDE", &[byte], b"60s", b"5"];
        assert_eq!(six_fields(server.try_args(&args).unwrap())[..3], [1, 5, 4], "byte {byte}");
    }
    assert_eq!(server.run::<i64>("DBSIZE"), 256);
}

#[test]
fn keys_of_hostile_names_and_wrong_types_are_refused_in_peace() {
    let server = Server::start();
    for key in [b"%s%s%n".as_slice(), b"\0", b"\r\n+OK\r\n", b"\xc3\x28"] {
        server.args::<()>(&[b"SET", key, b"v"]);
        let error = server.try_args(&[b"RL.SLIDE", key, b"60s", b"5"]).unwrap_err();
        assert!(error.starts_with("WRONGTYPE"), "{error}");
        server.args::<i64>(&[b"DEL", key]);
        server.args::<i64>(&[b"ZADD", key, b"1", b"%s%n"]);
        let error = server.try_args(&[b"RL.SLIDE", key, b"60s", b"5"]).unwrap_err();
        assert!(error.starts_with("ERR "), "{error}");
        server.args::<i64>(&[b"DEL", key]);
    }
    assert_eq!(server.run::<String>("PING"), "PONG");
}

#[test]
fn a_cluster_client_finds_the_key() {
    let server = Server::start();
    let call = "RL.SLIDE user:7 60s 10 1h 100 COST 2 FORCE PRECISION 1s AT 1000000";
    assert_eq!(server.run::<Vec<String>>(&format!("COMMAND GETKEYS {call}")), ["user:7"]);
}

#[test]
fn databases_are_apart() {
    let server = Server::start();
    if server.forbids("other databases") {
        return;
    }
    assert_eq!(server.slide("k 60s 1")[0], 1);
    server.does("SELECT 5");
    assert_eq!(server.slide("k 60s 1")[0], 1);
    assert_eq!(server.slide("k 60s 1")[0], 0);
    server.does("SELECT 0");
    server.does("DEL k");
    assert_eq!(server.slide("k 60s 1")[0], 1);
}
