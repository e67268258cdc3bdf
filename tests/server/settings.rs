//! `rl.max-log-entries`: how it is set, what it refuses, and what it does to a log.

use crate::clock::{Clock, START_MS};
use crate::harness::{Server, Setup, module_path};
use crate::lifecycle::loaded_modules;

/// Whether the server knows settings of modules; says so if not. Arguments of modules all know.
fn has_settings(server: &Server) -> bool {
    !server.lacks("settings of modules", "module|loadex")
}

fn setting(server: &Server) -> String {
    let [name, value]: [String; 2] = server.run("CONFIG GET rl.max-log-entries");
    assert_eq!(name, "rl.max-log-entries");
    value
}

fn load() -> String {
    format!("MODULE LOAD {}", module_path())
}

fn loadex(words: &str) -> String {
    format!("MODULE LOADEX {} {words}", module_path())
}

fn is_loaded(server: &Server) -> bool {
    loaded_modules(server).contains(&"rl".to_string())
}

fn unload(server: &Server) {
    server.does("MODULE UNLOAD rl");
}

/// The number of entries after so many requests, one each millisecond, to a new log.
fn entries_after(server: &Server, requests: u32) -> usize {
    server.run::<i64>("DEL k");
    for i in 0..requests {
        assert_eq!(server.slide(&format!("k 60s 1000 AT {}", 1_000_000 + i))[0], 1);
    }
    server.run("ZCARD k")
}

// --- How it is set ---------------------------------------------------------------------------------

#[test]
fn it_has_a_default() {
    let server = Server::start();
    if has_settings(&server) {
        assert_eq!(setting(&server), "100000");
    }
}

#[test]
fn it_can_be_set_while_the_server_runs() {
    let server = Server::start();
    if !has_settings(&server) {
        return;
    }
    for value in ["1", "0", "9223372036854775807", "100000"] {
        assert_eq!(server.run::<String>(&format!("CONFIG SET rl.max-log-entries {value}")), "OK");
        assert_eq!(setting(&server), value);
    }
}

#[test]
fn what_is_out_of_range_is_refused_and_changes_nothing() {
    let server = Server::start();
    if !has_settings(&server) {
        return;
    }
    server.does("CONFIG SET rl.max-log-entries 7");
    for (value, said) in [
        ("-1", "must be between 0 and 9223372036854775807"),
        ("9223372036854775808", "couldn't be parsed into an integer"),
        ("x", "couldn't be parsed into an integer"),
        ("1.5", "couldn't be parsed into an integer"),
        ("1k", "couldn't be parsed into an integer"),
    ] {
        let error = server.error(&format!("CONFIG SET rl.max-log-entries {value}"));
        assert!(error.contains(said), "{value}: {error}");
        assert!(error.contains("rl.max-log-entries"), "{value}: {error}");
        assert_eq!(setting(&server), "7");
    }
}

#[test]
fn an_argument_of_the_module_sets_it_on_every_server() {
    let server = Setup::new().module_arguments("max-log-entries 2").start();
    assert!(entries_after(&server, 10) < 10);
    let server = Setup::new().module_arguments("MAX-log-Entries 20").start();
    assert_eq!(entries_after(&server, 10), 10);
    if has_settings(&server) {
        assert_eq!(setting(&server), "20");
    }
}

#[test]
fn an_argument_may_come_with_a_load_later_on() {
    let server = Setup::new().without_module().start();
    server.does(&format!("{} max-log-entries 2", load()));
    assert!(entries_after(&server, 10) < 10);
    unload(&server);
    server.does(&load());
    assert_eq!(entries_after(&server, 10), 10, "the default is back");
}

#[test]
fn loadex_sets_it_and_goes_before_the_argument() {
    let server = Setup::new().without_module().start();
    if !has_settings(&server) {
        return;
    }
    for (words, value) in [
        ("CONFIG rl.max-log-entries 5", "5"),
        ("ARGS max-log-entries 6", "6"),
        ("CONFIG rl.max-log-entries 5 ARGS max-log-entries 6", "5"),
        ("CONFIG rl.max-log-entries 0", "0"),
    ] {
        server.does(&loadex(words));
        assert_eq!(setting(&server), value, "{words}");
        unload(&server);
    }
    server.does(&load());
    assert_eq!(setting(&server), "100000");
}

#[test]
fn a_line_of_the_configuration_sets_it_and_goes_before_the_argument() {
    if !has_settings(&Server::start()) {
        return;
    }
    let server = Setup::new().option("rl.max-log-entries 5").start();
    assert_eq!(setting(&server), "5");
    let both = Setup::new().option("rl.max-log-entries 5").module_arguments("max-log-entries 6");
    assert_eq!(setting(&both.start()), "5");
}

// --- What stops the load ---------------------------------------------------------------------------

/// Bad arguments, and what the log says of each.
const BAD_ARGUMENTS: [(&str, &str); 8] = [
    (
        "max-log-entries -1",
        "module argument max-log-entries: '-1' is no integer from 0 to 9223372036854775807",
    ),
    (
        "max-log-entries 9223372036854775808",
        "module argument max-log-entries: '9223372036854775808' is no integer from 0 to 9223372036854775807",
    ),
    (
        "max-log-entries 05",
        "module argument max-log-entries: '05' is no integer from 0 to 9223372036854775807",
    ),
    (
        "max-log-entries %s%n",
        "module argument max-log-entries: '%s%n' is no integer from 0 to 9223372036854775807",
    ),
    ("max-log-entries", "module argument max-log-entries has no value"),
    ("max-log-entries 5 max-log-entries", "module argument max-log-entries is given twice"),
    ("max-log-entries 5 MAX-LOG-ENTRIES 5", "module argument MAX-LOG-ENTRIES is given twice"),
    ("max-entries 5", "unknown module argument 'max-entries': there is max-log-entries"),
];

#[test]
fn a_bad_argument_stops_the_load_and_the_log_says_why() {
    let server = Setup::new().without_module().start();
    for (arguments, said) in BAD_ARGUMENTS {
        let lines = server.module_log().len();
        let error = server.error(&format!("{} {arguments}", load()));
        assert!(error.contains("Error loading the extension"), "{arguments}: {error}");
        let log = server.module_log();
        assert_eq!(log.len(), lines + 1, "{arguments}: {log:?}");
        assert!(log[lines].ends_with(&format!("<rl> {said}")), "{arguments}: {log:?}");
        assert!(!is_loaded(&server), "{arguments}");
        assert!(server.error("RL.SLIDE k 60s 5").contains("unknown command"));
    }
    server.does(&load());
    assert!(is_loaded(&server));
    assert_eq!(server.slide("k 60s 5")[0], 1, "a good load works after bad ones");
}

#[test]
fn a_bad_argument_stops_the_server() {
    let log = Setup::new().module_arguments("max-log-entries x").gives_up();
    assert!(log.contains("<rl> module argument max-log-entries: 'x' is no integer"), "{log}");
}

#[test]
fn a_bad_line_of_the_configuration_stops_the_server() {
    if !has_settings(&Server::start()) {
        return;
    }
    for (value, said) in [
        ("x", "couldn't be parsed into an integer"),
        ("-1", "must be between 0 and 9223372036854775807"),
    ] {
        let log = Setup::new().option(&format!("rl.max-log-entries {value}")).gives_up();
        assert!(log.contains("rl.max-log-entries") && log.contains(said), "{value}: {log}");
        let ours = "<rl> a setting of the module has a value that is refused: see above";
        assert!(log.contains(ours), "{value}: {log}");
    }
}

#[test]
fn loadex_refuses_a_bad_value_and_an_unknown_setting() {
    let server = Setup::new().without_module().start();
    if !has_settings(&server) {
        return;
    }
    for words in [
        "CONFIG rl.max-log-entries -1",
        "CONFIG rl.max-log-entries x",
        "CONFIG rl.unknown 1",
        "CONFIG rl.max-log-entries 5 ARGS max-log-entries x",
    ] {
        let error = server.error(&loadex(words));
        assert!(error.contains("Error loading the extension"), "{words}: {error}");
        assert!(!is_loaded(&server), "{words}");
    }
    server.does(&load());
    assert_eq!(setting(&server), "100000");
}

// --- What it does ----------------------------------------------------------------------------------

#[test]
fn a_log_at_the_bound_gets_coarser() {
    let server = Setup::new().module_arguments("max-log-entries 3").start();
    for at in [1_000_001, 1_000_002, 1_000_003] {
        assert_eq!(server.slide(&format!("k 60s 9 AT {at}"))[4], 60_000);
    }
    // From here on a tick is a third of the window, as with PRECISION 20s.
    assert_eq!(server.slide("k 60s 9 AT 1000004"), [1, 9, 5, 0, 79_996, 60_000]);
    assert_eq!(server.slide("k 60s 9 COST 3 AT 1010000"), [1, 9, 2, 0, 70_000, 60_000]);
    assert_eq!(
        server.entries("k"),
        ["1000001 a1+1", "1000002 a2+1", "1000003 a3+1", "1020000 a7+4"]
    );
    assert_eq!(server.info("rl_logs_capped"), "2");
    // A unit counts too long, and never too short: all four of the tick leave with it.
    assert_eq!(server.slide("k 60s 4 AT 1079999"), [0, 4, 0, 1, 1, 60_000]);
    assert_eq!(server.slide("k 60s 4 AT 1080000")[..3], [1, 4, 3]);
}

#[test]
fn a_log_never_has_more_than_twice_the_bound() {
    let clock = Clock::frozen();
    let server = clock.setup().module_arguments("max-log-entries 20").start();
    for i in 0..1_500 {
        clock.step_by(7);
        assert_eq!(server.slide("k 1s 200")[0], 1);
        assert!(server.run::<usize>("ZCARD k") <= 41, "after request {i}");
    }
    assert_ne!(server.info("rl_logs_capped"), "0");
}

#[test]
fn no_window_holds_more_than_its_limit() {
    let clock = Clock::frozen();
    let server = clock.setup().module_arguments("max-log-entries 4").start();
    let mut admitted: Vec<i64> = Vec::new();
    for i in 0..2_000 {
        let at = START_MS + 3 * i;
        clock.freeze_at(at);
        if server.slide("k 1s 50")[0] == 1 {
            admitted.push(at);
        }
    }
    let inside = |end: i64| admitted.iter().filter(|at| (end - 999..=end).contains(*at)).count();
    let most = admitted.iter().map(|at| inside(*at)).max();
    assert_eq!(most, Some(50), "the limit is reached, and not passed");
    assert_ne!(server.info("rl_logs_capped"), "0");
}

#[test]
fn the_longest_window_says_how_coarse() {
    let server = Setup::new().module_arguments("max-log-entries 2").start();
    server.plant("k", &["1000001 a1+1", "1000002 a2+1"]);
    // Half of an hour, although the window reported is a second.
    assert_eq!(server.slide("k 1s 9 1h 90 AT 1000003")[0], 1);
    assert_eq!(server.entries("k")[2], "1800000 a3+1");
}

#[test]
fn zero_turns_it_off_and_on_again() {
    let server = Setup::new().module_arguments("max-log-entries 0").start();
    assert_eq!(entries_after(&server, 300), 300);
    assert_eq!(server.info("rl_logs_capped"), "0");
    if has_settings(&server) {
        server.does("CONFIG SET rl.max-log-entries 10");
        assert_eq!(server.slide("k 60s 1000 AT 1000300")[0], 1);
        assert_eq!(server.entries("k")[300], "1002000 c301+1");
        assert_eq!(server.info("rl_logs_capped"), "1");
    }
}
