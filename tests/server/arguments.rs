//! Bad calls: each gets an error that begins with `ERR` and names the argument, and nothing changes.
//! Good calls at the very edge of what is allowed stand beside them.

use crate::dataset::leaves_everything;
use crate::harness::Server;

/// The commands that share the syntax. A counter knows no `PRECISION`, and so refuses it right or wrong.
const COMMANDS: [&str; 3] = ["RL.SLIDE", "RL.SWC", "RL.PEEK"];

/// A data set that a bad call could harm: a log under the key that the calls name, and others.
pub fn server_with_data() -> Server {
    let server = Server::start();
    server.slide("k 60s 5 COST 2 AT 1000000");
    server.slide("other 60s 5 AT 1000000");
    server.does("SET text value");
    server
}

/// Each call of each command is refused with an error that contains the words beside it, and changes nothing.
fn refuses(server: &Server, calls: &[(&str, &str)]) {
    for command in COMMANDS {
        refuses_of(server, command, calls);
    }
}

/// Each call of this command is refused with an error that contains the words beside it, and changes nothing.
pub fn refuses_of(server: &Server, command: &str, calls: &[(&str, &str)]) {
    for (call, named) in calls {
        let line = format!("{command} {call}");
        let error = leaves_everything(server, &line, || server.error(&line));
        assert!(error.starts_with("ERR "), "{line}: {error}");
        let found = error.to_lowercase().contains(&named.to_lowercase());
        assert!(found, "{line}: the error does not name {named:?}: {error}");
    }
}

#[test]
fn too_few_arguments_are_refused() {
    let server = server_with_data();
    refuses(
        &server,
        &[
            // Server and command may share the counting: no more than an error is promised.
            ("", ""),
            ("k", ""),
            ("k 60s", ""),
            ("k 60s 5 1h", "limit"),
            ("k 60s 5 1h 10 24h", "limit"),
            ("k COST 1", "window"),
            ("k FORCE COST 1", "window"),
        ],
    );
}

#[test]
fn a_window_is_a_duration() {
    let server = server_with_data();
    for window in [
        "0ms",
        "0s",
        "0",
        "00",
        "+5s",
        "-5s",
        "5.s",
        "1.5s",
        ".5s",
        "05s",
        "007",
        "5S",
        "5MS",
        "5Ms",
        "5M",
        "5H",
        "5D",
        "5sec",
        "5s5",
        "5ss",
        "5m5s",
        "5us",
        "5w",
        "5y",
        "5e3",
        "0x10",
        "1_000",
        "1,000",
        "5\u{b5}s",
        "\u{665}s",
        "5\u{2003}s",
        "s",
        "ms",
        "\"60s\"",
        "60s,",
        "3651d",
        "87601h",
        "315360001s",
        "315360000001ms",
        "315360000001",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "18446744073709551617s",
        "213503982335d",
        "99999999999999999999999999999999999999999999999999999999999999999999999999999d",
    ] {
        refuses(&server, &[(&format!("k {window} 5"), "window")]);
    }
}

#[test]
fn a_bare_number_is_milliseconds_and_no_small_one() {
    let server = server_with_data();
    for command in COMMANDS {
        let error = server.error(&format!("{command} k 60 100"));
        assert_eq!(error, "ERR window '60' is 60 milliseconds: write 60ms, or 60s for seconds");
    }
    refuses(&server, &[("k 1 5", "'1'"), ("k 999 5", "999ms"), ("k 60s 5 300 5", "300s")]);
    for (window, window_ms) in
        [("1000", 1000), ("60000", 60_000), ("315360000000", 315_360_000_000)]
    {
        assert_eq!(server.slide(&format!("fresh {window} 5 COST 0")), [1, 5, 5, 0, 0, window_ms]);
    }
}

#[test]
fn a_limit_that_stands_before_its_window_is_told_so() {
    let server = server_with_data();
    let turned = "is a duration: the window comes first, like 60s 5";
    for call in ["k 5 60s", "k 5000 60s", "k 1m 60s", "k 60s 5 100 1h"] {
        let limit = call.split(' ').next_back().unwrap();
        refuses(&server, &[(call, &format!("limit '{limit}' {turned}"))]);
    }
    // What is no duration is a limit that is wrong.
    refuses(&server, &[("k 60s s", "must be an integer"), ("k 60s 0s", "must be an integer")]);
}

#[test]
fn every_unit_up_to_ten_years_is_a_window() {
    let server = Server::start();
    for (window, window_ms) in [
        ("1ms", 1),
        ("999ms", 999),
        ("60ms", 60),
        ("1s", 1_000),
        ("5m", 300_000),
        ("1h", 3_600_000),
        ("7d", 604_800_000),
        ("3650d", 315_360_000_000),
        ("87600h", 315_360_000_000),
        ("5256000m", 315_360_000_000),
        ("315360000s", 315_360_000_000),
        ("315360000000ms", 315_360_000_000),
    ] {
        assert_eq!(
            server.slide(&format!("{window} {window} 5")),
            [1, 5, 4, 0, window_ms, window_ms]
        );
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_and_the_connection_stays_in_step() {
    let server = server_with_data();
    let mut wire = server.wire();
    let junk: [&[u8]; 9] =
        [b"", b" ", b"5 s", b"5\0s", b"60s\0", b"60s\r\n", b"\r\n+OK\r\n", b"5\xffs", b"%s%n%s%n"];
    leaves_everything(&server, "junk", || {
        for (bytes, command) in junk.iter().flat_map(|junk| COMMANDS.map(|name| (*junk, name))) {
            let command = command.as_bytes();
            let calls: [&[&[u8]]; 6] = [
                &[command, b"k", bytes, b"5"],
                &[command, b"k", b"60s", bytes],
                &[command, b"k", b"60s", b"5", bytes],
                &[command, b"k", b"60s", b"5", b"COST", bytes],
                &[command, b"k", b"60s", b"5", b"AT", bytes],
                &[command, b"k", b"60s", b"5", b"PRECISION", bytes],
            ];
            for call in calls {
                let answer = wire.ask_args(call);
                assert!(answer.starts_with("-ERR "), "{call:?}: {answer:?}");
                assert_eq!(wire.ask("PING"), "+PONG\r\n", "after {call:?}");
            }
        }
        let huge = vec![b'9'; 1_000_000];
        let answer = wire.ask_args(&[b"RL.SLIDE".as_slice(), b"k", &huge, b"5"]);
        assert!(answer.starts_with("-ERR "), "a window of a million digits");
        assert!(answer.len() < 10_000, "an error does not echo a million bytes");
        assert_eq!(wire.ask("PING"), "+PONG\r\n");
    });
}

#[test]
fn at_most_eight_windows_each_once() {
    let server = server_with_data();
    refuses(
        &server,
        &[
            ("k 1m 9 2m 9 3m 9 4m 9 5m 9 6m 9 7m 9 8m 9 9m 9", "8"),
            ("k 60s 5 60s 5", "60s"),
            ("k 60s 5 1m 9", "window"),
            ("k 60000 5 60s 9", "window"),
            ("k 1h 5 60s 5 3600s 5", "window"),
            ("k 24h 5 60s 5 1d 5", "window"),
        ],
    );
    let nineteen = (1..=19).map(|hours| format!("{hours}h 9")).collect::<Vec<_>>().join(" ");
    refuses(&server, &[(&format!("k {nineteen}"), "8")]);
    assert_eq!(server.slide("k 1m 9 2m 9 3m 9 4m 9 5m 9 6m 9 7m 9 8m 9")[0], 1);
}

#[test]
fn a_limit_is_an_integer_in_range() {
    let server = server_with_data();
    for limit in [
        "-1",
        "+5",
        "5.0",
        "1e3",
        "5s",
        "five",
        "0x5",
        "COST",
        "FORCE",
        "9007199254740992",
        "9223372036854775808",
        "18446744073709551616",
        "18446744073709551621",
        "-9223372036854775808",
        "\u{665}",
        "99999999999999999999999999999999999999999999",
    ] {
        refuses(
            &server,
            &[(&format!("k 60s {limit}"), "limit"), (&format!("k 60s 5 1h {limit}"), "limit")],
        );
    }
    assert_eq!(server.slide("k 60s 9007199254740991")[0], 1);
    assert_eq!(server.slide("k 60s 0")[..4], [0, 0, 0, -1]);
}

#[test]
fn a_cost_is_an_integer_in_range() {
    let server = server_with_data();
    for cost in [
        "-1",
        "+5",
        "1.5",
        "1e3",
        "5s",
        "one",
        "FORCE",
        "AT",
        "9007199254740992",
        "9223372036854775808",
        "18446744073709551616",
        "18446744073709551617",
        "99999999999999999999999999999999999999999999",
    ] {
        refuses(&server, &[(&format!("k 60s 5 COST {cost}"), "COST")]);
    }
    refuses(&server, &[("k 60s 5 COST", "COST"), ("k 60s 5 FORCE COST", "COST")]);
    assert_eq!(server.slide("k 60s 5 COST 9007199254740991 AT 1000000")[..4], [0, 5, 3, -1]);
}

#[test]
fn a_precision_is_a_duration_up_to_the_shortest_window() {
    let server = server_with_data();
    for precision in [
        "0ms",
        "0",
        "0s",
        "-1s",
        "+1s",
        "1.5s",
        "01s",
        "1S",
        "s",
        "100",
        "999",
        "FORCE",
        "3651d",
        "18446744073709551617s",
    ] {
        refuses(&server, &[(&format!("k 60s 5 PRECISION {precision}"), "PRECISION")]);
    }
    refuses(
        &server,
        &[
            ("k 60s 5 PRECISION 61s", "PRECISION"),
            ("k 60s 5 PRECISION 60001", "PRECISION"),
            ("k 1h 9 60s 5 24h 9 PRECISION 60001ms", "PRECISION"),
            ("k 10ms 5 PRECISION 11ms", "PRECISION"),
            ("k 60s 5 PRECISION", "PRECISION"),
            ("k 60s 5 AT 1000000 PRECISION", "PRECISION"),
        ],
    );
    for call in [
        "1h 9 60s 5 PRECISION 60s",
        "60s 9 PRECISION 1000",
        "60s 9 PRECISION 1ms",
        "1ms 9 PRECISION 1ms",
    ] {
        assert_eq!(server.slide(&format!("fresh {call} COST 0"))[0], 1);
    }
}

#[test]
fn at_is_a_time_from_0_to_ten_years_ahead() {
    let server = server_with_data();
    for at in [
        "-1",
        "+1",
        "1.5",
        "1e12",
        "now",
        "1000000ms",
        "FORCE",
        "9223372036854775808",
        "18446744073709551616",
    ] {
        refuses(&server, &[(&format!("k 60s 5 AT {at}"), "AT")]);
    }
    refuses(&server, &[("k 60s 5 AT", "AT"), ("k 60s 5 COST 1 AT", "AT")]);

    let most_ahead = 3650 * 86_400_000;
    let (before, hour) = (server.now(), 3_600_000);
    refuses(&server, &[(&format!("k 60s 5 AT {}", before + most_ahead + hour), "AT")]);
    refuses(
        &server,
        &[("k 60s 5 AT 9007199254740991", "AT"), ("k 60s 5 AT 9223372036854775807", "AT")],
    );
    assert_eq!(server.slide(&format!("ahead 60s 5 AT {}", before + most_ahead))[0], 1);
    assert_eq!(server.slide("first 60s 5 AT 0"), [1, 5, 4, 0, 60_000, 60_000]);
    assert_eq!(server.entries("first"), ["0 a1+1"]);
    assert_eq!(server.slide("first 60s 1 AT 59999"), [0, 1, 0, 1, 1, 60_000]);
}

#[test]
fn an_option_is_known_and_comes_once() {
    let server = server_with_data();
    refuses(
        &server,
        &[
            ("k 60s 5 BANANA", "BANANA"),
            ("k 60s 5 BANANA 5", "BANANA"),
            ("k 60s 5 FORCED", "FORCED"),
            ("k 60s 5 COS 1", "COS"),
            ("k 60s 5 -1", "-1"),
            ("k 60s 5 FORCE 77", "77"),
            ("k 60s 5 FORCE 1h 5", "1h"),
            ("k 60s 5 COST 1 1h 5", "1h"),
            ("k 60s 5 COST 1 COST 1", "COST"),
            ("k 60s 5 cost 1 FORCE Cost 2", "COST"),
            ("k 60s 5 FORCE FORCE", "FORCE"),
            ("k 60s 5 FORCE COST 1 force", "FORCE"),
            ("k 60s 5 AT 1000000 AT 1000000", "AT"),
            ("k 60s 5 PRECISION 1s PRECISION 1s", "PRECISION"),
        ],
    );
    assert_eq!(server.slide("k 60s 5 FORCE COST 1 PRECISION 1s AT 1000000")[0], 1);
}

#[test]
fn bad_calls_are_refused_before_the_key_is_looked_at() {
    let server = server_with_data();
    for key in ["text", "missing"] {
        refuses(
            &server,
            &[(&format!("{key} 60s -1"), "limit"), (&format!("{key} 60s 5 COST x"), "COST")],
        );
    }
    assert!(server.error("RL.SLIDE text 60s 5").starts_with("WRONGTYPE"));
    assert_eq!(server.run::<i64>("EXISTS missing"), 0);
}
