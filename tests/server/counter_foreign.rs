//! Hashes that the module did not write, and keys of other types: an error from every command, and
//! nothing is touched.

use crate::cli::shown;
use crate::dataset::leaves_everything;
use crate::harness::{Server, Setup, compact_fields_option};

/// Calls that would be admitted, denied, forced, start a window or only ask; peeks and refunds.
const CALLS: [&str; 9] = [
    "RL.SWC k 60s 5 AT 970000",
    "RL.SWC k 60s 0 AT 970000",
    "RL.SWC k 60s 5 COST 0 AT 970000",
    "RL.SWC k 60s 5 FORCE AT 9000000",
    "RL.SWC k 60s 5 1h 5 AT 970000",
    "RL.PEEK k 60s 5 AT 970000",
    "RL.PEEK k 1h 5 60s 5 AT 970000",
    "RL.REFUND k 1 AT 970000",
    "RL.REFUND k 5",
];

/// Both ways of storing a small hash.
fn servers() -> [Server; 2] {
    [512, 0].map(|most| Setup::new().option(&compact_fields_option(most)).start())
}

/// Each call gets an error that starts with `start`, and changes nothing.
fn refuses(server: &Server, what: &str, start: &str) {
    for call in CALLS {
        let error = leaves_everything(server, what, || match server.try_run(call) {
            Err(error) => error,
            Ok(reply) => panic!("{what}: {call} was answered {reply:?}"),
        });
        assert!(error.starts_with(start), "{what}: {call}: {error}");
    }
}

/// A hash of these fields, `name value` in turns, is refused and left as it is.
fn refuses_hash(server: &Server, fields: &[&[u8]]) {
    server.does("DEL k");
    let mut write: Vec<&[u8]> = vec![b"HSET", b"k"];
    write.extend(fields);
    let added: usize = server.args(&write);
    assert_eq!(added, fields.len() / 2, "each field is new");
    server.does("PEXPIRE k 600000");
    let shown: Vec<_> = fields.iter().map(|field| field.escape_ascii().to_string()).collect();
    refuses(server, &shown.join(" "), "ERR ");
}

/// The same, with the fields as the words of a line.
fn refuses_fields(server: &Server, fields: &str) {
    refuses_hash(server, &fields.split(' ').map(str::as_bytes).collect::<Vec<_>>());
}

/// The fields of a counter that is ours.
fn ours(window_ms: u64) -> String {
    format!("{window_ms}:start 0 {window_ms}:current 1 {window_ms}:previous 1")
}

/// A minute's counter of these values.
fn minute(start: &str, current: &str, previous: &str) -> Vec<Vec<u8>> {
    let parts = [("start", start), ("current", current), ("previous", previous)];
    let pairs =
        parts.map(|(part, value)| [format!("60000:{part}").into(), value.as_bytes().into()]);
    pairs.concat()
}

#[test]
fn every_other_type_is_wrong() {
    let server = Server::start();
    for write in [
        "SET k 60000:start",
        "SET k 17",
        "RPUSH k 60000:start 960000",
        "SADD k 60000:start 60000:current 60000:previous",
        "SADD k 1 2 3",
        "XADD k 1000000-0 60000:start 960000",
        "PFADD k a b c",
        "SETBIT k 7 1",
    ] {
        server.does("DEL k");
        server.does(write);
        refuses(&server, write, "WRONGTYPE");
    }
}

#[test]
fn a_log_is_no_counter_and_a_counter_is_no_log() {
    let server = Server::start();
    server.slide("log 60s 5 AT 970000");
    server.swc("counters 60s 5 AT 970000");
    for call in [
        "RL.SWC log 60s 5 AT 970000",
        "RL.SWC log 60s 0 AT 970000",
        "RL.SWC log 60s 5 COST 0 AT 970000",
        "RL.SWC log 60s 5 FORCE AT 970000",
        "RL.SLIDE counters 60s 5 AT 970000",
        "RL.SLIDE counters 60s 0 AT 970000",
        "RL.SLIDE counters 60s 5 COST 0 AT 970000",
        "RL.SLIDE counters 60s 5 FORCE PRECISION 1s AT 970000",
    ] {
        let error = leaves_everything(&server, call, || server.error(call));
        assert!(error.starts_with("WRONGTYPE"), "{call}: {error}");
    }
    // A peek and a refund take either.
    assert_eq!(server.peek("log 60s 5 AT 970000")[..3], [1, 5, 4]);
    assert_eq!(server.peek("counters 60s 5 AT 970000")[..3], [1, 5, 4]);
    assert_eq!(server.refund("log 1 AT 970000"), 1);
    assert_eq!(server.refund("counters 1 AT 970000"), 1);
}

#[test]
fn a_profile_is_refused() {
    for server in servers() {
        refuses_fields(&server, "name alice email alice@example.com visits 17");
        refuses_fields(&server, "name alice");
        refuses_fields(&server, "a 1 b 2 c 3 d 4 e 5 f 6");
        refuses_fields(&server, &format!("{} name alice", ours(60_000)));
    }
}

#[test]
fn an_incomplete_window_is_refused() {
    let server = Server::start();
    for fields in [
        "60000:start 960000",
        "60000:current 1",
        "60000:previous 1",
        "60000:start 960000 60000:current 1",
        "60000:start 960000 60000:previous 1",
        "60000:current 1 60000:previous 1",
        "1000:start 960000 1000:current 1",
        // As many fields as the windows named have, but others.
        "60000:start 960000 60000:current 1 1000:previous 1",
        "1000:start 960000 60000:current 1 60000:previous 1",
        "1000:start 960000 2000:start 960000 3000:start 960000",
    ] {
        refuses_fields(&server, fields);
        if !fields.contains("3600000:") {
            refuses_fields(&server, &format!("{fields} {}", ours(3_600_000)));
        }
    }
}

#[test]
fn names_of_another_form_are_refused() {
    let server = Server::start();
    let stems: [&[u8]; 16] = [
        b"",
        b"0",
        b"00",
        b"060000",
        b"+60000",
        b"-60000",
        b"60000 ",
        b" 60000",
        b"60s",
        b"6e4",
        b"60000.0",
        b"60000\0",
        b"\xff",
        b"315360000001",
        b"18446744073709551616",
        b"18446744073709611616",
    ];
    let own: Vec<Vec<u8>> = minute("960000", "1", "1");
    for stem in stems {
        let names =
            [":start", ":current", ":previous"].map(|part| [stem, part.as_bytes()].concat());
        let [start, current, previous] = &names;
        let fields: [&[u8]; 6] = [start, b"0", current, b"1", previous, b"1"];
        refuses_hash(&server, &fields);
        let own = own.iter().map(Vec::as_slice);
        refuses_hash(&server, &own.chain(fields).collect::<Vec<_>>());
    }
    for name in [
        "60000",
        "60000:",
        ":",
        "60000:Start",
        "60000:START",
        "60000:starts",
        "60000::start",
        "60000:start:",
        "60000-start",
        "60000:total",
        "start:60000",
        "60000:startx",
        "%s%n",
    ] {
        refuses_fields(&server, &format!("{name} 0 60000:current 1 60000:previous 1"));
        refuses_fields(&server, &format!("{} {name} 0", ours(60_000)));
    }
}

#[test]
fn values_that_are_no_plain_numbers_in_range_are_refused() {
    let junk = [
        "-1",
        "+1",
        "-0",
        "00",
        "01",
        "1.5",
        "1e3",
        "0x1",
        "",
        " ",
        " 1",
        "1 ",
        "1\n",
        "1\0",
        "x",
        "\u{661}",
        "18446744073709551616",
        "18446744073709551617",
        "99999999999999999999999999999999999999999",
    ];
    let too_many = ["9223372036854775808", "18446744073709551615"];
    // No multiple of the window, or above 2^53.
    let no_start =
        ["1", "59999", "960001", "9007199254800000", "9223372036854720000", "-60000", "060000"];
    for server in servers() {
        let refuses_minute = |counter: Vec<Vec<u8>>| {
            refuses_hash(&server, &counter.iter().map(Vec::as_slice).collect::<Vec<_>>());
        };
        for value in junk.into_iter().chain(no_start) {
            refuses_minute(minute(value, "1", "1"));
        }
        for value in junk.into_iter().chain(too_many) {
            refuses_minute(minute("960000", value, "1"));
            refuses_minute(minute("960000", "1", value));
        }
    }
}

#[test]
fn the_value_of_a_window_not_named_is_checked_too() {
    let server = Server::start();
    for fields in ["7000:start 1", "7000:current -1", "7000:previous 01"] {
        let (name, value) = fields.split_once(' ').unwrap();
        let other = ours(7_000).replace(&format!("{name} 0"), &format!("{name} {value}"));
        let other = other.replace(&format!("{name} 1"), &format!("{name} {value}"));
        assert!(other.contains(fields), "{other}");
        refuses_fields(&server, &format!("{} {other}", ours(60_000)));
    }
}

#[test]
fn more_than_24_fields_are_refused() {
    for server in servers() {
        let eight: Vec<String> = (1..=8).map(|minutes| ours(minutes * 60_000)).collect();
        let eight = eight.join(" ");
        refuses_fields(&server, &format!("{eight} 540000:start 0"));
        refuses_fields(&server, &format!("{eight} {}", ours(540_000)));
        refuses_fields(&server, &format!("{eight} name alice"));
        // 24 of them are ours.
        server.does("DEL k");
        server.does(&format!("HSET k {eight}"));
        assert_eq!(server.peek("k 60s 5 AT 0")[..3], [1, 5, 3]);
        assert_eq!(server.swc("k 60s 5 AT 0")[..3], [1, 5, 2]);
    }
}

#[test]
fn a_hash_of_a_million_fields_is_refused() {
    let server = Server::start();
    let fill = "for i = 1, 1000000 do redis.call('HSET', KEYS[1], i .. ':start', 0) end";
    let _: redis::Value = server.args(&["EVAL", fill, "1", "k"]);
    let state = || {
        let digest: Vec<String> = server.run("DEBUG DIGEST-VALUE k");
        (digest, server.run::<i64>("HLEN k"), server.expiry("k"), server.dirty())
    };
    let before = state();
    assert_eq!(before.1, 1_000_000);
    for call in CALLS {
        let error = server.error(call);
        assert!(error.starts_with("ERR "), "{call}: {error}");
    }
    assert_eq!(state(), before);
}

#[test]
fn as_many_fields_as_named_but_of_another_window_are_ours() {
    let server = Server::start();
    server.plant_counters("k", &["3600000 0 7 7"]);
    assert_eq!(server.swc("k 60s 5 AT 970000")[..3], [1, 5, 4]);
    assert_eq!(server.counters("k"), ["60000 960000 1 0", "3600000 0 7 7"]);
}

#[test]
fn the_edges_of_the_form_are_ours() {
    let server = Server::start();
    for (counter, remaining) in [
        ("60000 960000 0 0", 5),
        ("60000 0 1 1", 5),
        ("60000 960000 9223372036854775807 0", 0),
        ("60000 960000 0 9223372036854775807", 0),
        // The latest start there can be: far ahead, so it counts as absent.
        ("60000 9007199254740000 9 9", 5),
    ] {
        server.does("DEL k");
        server.plant_counters("k", &[counter]);
        assert_eq!(server.peek("k 60s 5 COST 0 AT 970000")[2], remaining, "{counter}");
        assert_eq!(server.swc("k 60s 5 COST 0 AT 970000")[2], remaining, "{counter}");
    }
    for window_ms in ["1", "315360000000"] {
        server.does("DEL k");
        server.plant_counters("k", &[format!("{window_ms} 0 2 0")]);
        assert_eq!(server.peek(&format!("k {window_ms}ms 5 AT 0"))[..3], [1, 5, 3]);
    }
}

#[test]
fn a_refused_key_works_again_once_it_is_deleted() {
    let server = Server::start();
    server.does("HSET k name alice");
    assert!(server.error("RL.SWC k 60s 5").starts_with("ERR "));
    server.does("DEL k");
    assert_eq!(server.swc("k 60s 5")[0], 1);
}

#[test]
fn a_hash_that_has_shrunk_is_refused_and_not_walked() {
    let server = Server::start();
    // A counter of ours is left in a table of so many places that Redis shrinks only in time, and not
    // within the script. Valkey 9 shrinks it meanwhile, and the counter is found.
    let script = "for i = 1, 1000000, 2000 do \
                    local fields = {} \
                    for j = i, i + 1999 do fields[#fields + 1] = j; fields[#fields + 1] = 1 end \
                    redis.call('HSET', KEYS[1], unpack(fields)) \
                  end \
                  redis.call('HSET', KEYS[1], '60000:start', 960000, '60000:current', 1, \
                             '60000:previous', 0) \
                  for i = 1, 1000000 do redis.call('HDEL', KEYS[1], i) end \
                  return redis.call('RL.SWC', KEYS[1], '60s', 5, 'AT', 970000)";
    let answer = shown(&server.try_args(&["EVAL", script, "1", "k"]));
    let is_refused = answer[0].contains("was not written by RL.SWC");
    assert!(is_refused || answer[2] == "3) (integer) 3", "{answer:?}");
    assert_eq!(server.run::<u64>("HLEN k"), 3);
    server.does("DEL k");
    assert_eq!(server.swc("k 60s 5 AT 970000")[2], 4);
}

#[test]
fn a_hash_that_held_thousands_of_others_is_read() {
    let server = Server::start();
    server.swc("k 60s 5 AT 970000");
    let script = "for i = 1, 5000 do redis.call('HSET', KEYS[1], i, 1) end \
                  for i = 1, 5000 do redis.call('HDEL', KEYS[1], i) end";
    server.args::<redis::Value>(&["EVAL", script, "1", "k"]);
    assert_eq!(server.run::<u64>("HLEN k"), 3);
    for (call, remaining) in [("k 60s 5 AT 970000", 3), ("k 60s 5 1h 9 AT 970000", 2)] {
        assert_eq!(server.swc(call)[2], remaining, "{call}");
    }
    assert_eq!(server.refund("k 1 AT 970000"), 1);
}
