//! ACL users with the least rights that should work, and with just less.

use crate::docs::page;
use crate::harness::{Server, server_is_at_least};

/// A call, and the least rights that it needs: to run the command, and to its key.
struct Least {
    call: &'static str,
    command: &'static str,
    /// As 7.0 and later tell reading and writing apart; empty without a key.
    key: &'static str,
}

const LEAST: [Least; 5] = [
    Least { call: "RL.SLIDE rl:log 60s 9 AT 1000000", command: "+rl.slide", key: "%RW~rl:*" },
    Least { call: "RL.SWC rl:counters 60s 9 AT 1000000", command: "+rl.swc", key: "%RW~rl:*" },
    Least { call: "RL.PEEK rl:log 60s 9 AT 1000000", command: "+rl.peek", key: "%R~rl:*" },
    Least { call: "RL.REFUND rl:log 1", command: "+rl.refund", key: "%RW~rl:*" },
    Least { call: "RL.DENIED", command: "+rl.denied", key: "" },
];

/// A server with a log and counters.
fn server() -> Server {
    let server = Server::start();
    server.slide("rl:log 60s 9 COST 5 AT 1000000");
    server.swc("rl:counters 60s 9 COST 5 AT 1000000");
    server
}

/// What a user with these rights and no others is answered.
fn answer(server: &Server, rights: &str, call: &str) -> String {
    server.does("ACL DELUSER u");
    server.does(&format!("ACL SETUSER u on nopass resetchannels {rights}"));
    let mut wire = server.wire();
    assert_eq!(wire.ask("AUTH u any"), "+OK\r\n");
    wire.ask(call)
}

#[track_caller]
fn may(server: &Server, rights: &str, call: &str) {
    let answer = answer(server, rights, call);
    assert!(answer.starts_with(['*', ':', '+']), "{call} with {rights}: {answer}");
}

#[track_caller]
fn may_not(server: &Server, rights: &str, call: &str) {
    let answer = answer(server, rights, call);
    assert!(answer.starts_with("-NOPERM"), "{call} with {rights}: {answer}");
}

/// The rights to a key, as far as the server tells them apart.
fn known(key: &str) -> String {
    let pattern = key.split_once('~').map_or(String::new(), |(_, pattern)| format!("~{pattern}"));
    if server_is_at_least(7, 0) { key.into() } else { pattern }
}

#[test]
fn the_least_rights_are_enough() {
    let server = server();
    for Least { call, command, key } in LEAST {
        may(&server, &format!("{command} {}", known(key)), call);
    }
}

#[test]
fn the_least_rights_are_those_of_the_documentation() {
    let page = page("docs/COMMANDS.md");
    for Least { call, command, key } in LEAST {
        let name = call.split(' ').next().unwrap();
        let row = format!("| `{name}` | `{}` |", format!("{command} {key}").trim());
        assert!(page.lines().any(|line| line == row), "{row}");
    }
}

#[test]
fn without_the_command_every_key_is_not_enough() {
    let server = server();
    for Least { call, command, .. } in LEAST {
        let others = LEAST.map(|least| least.command).into_iter().filter(|name| *name != command);
        let others = others.collect::<Vec<_>>().join(" ");
        may_not(&server, &format!("~* {others}"), call);
        may_not(&server, &format!("~* +@all -{}", &command[1..]), call);
    }
}

#[test]
fn without_the_key_every_command_is_not_enough() {
    let server = server();
    for Least { call, key, .. } in LEAST {
        let rights = "+@all ~other ~rl:lo ~log";
        match key {
            "" => may(&server, rights, call),
            _ => may_not(&server, rights, call),
        }
    }
}

#[test]
fn half_of_the_access_is_not_enough() {
    let server = server();
    if server.lacks("key permissions", "acl|dryrun") {
        return;
    }
    for Least { call, key, .. } in LEAST {
        let halves: &[&str] = match key {
            "%RW~rl:*" => &["%R~rl:*", "%W~rl:*", "%R~* %W~other"],
            "%R~rl:*" => &["%W~rl:*", "%W~* %R~other"],
            _ => continue,
        };
        for half in halves {
            may_not(&server, &format!("+@all {half}"), call);
        }
    }
}

#[test]
fn refused_calls_change_nothing() {
    let server = server();
    let before = server.entries("rl:log");
    let errors = server.info("rl_slide_errors");
    may_not(&server, "+rl.slide ~other", "RL.SLIDE rl:log 60s 9 AT 1000000");
    may_not(&server, "+rl.refund ~other", "RL.REFUND rl:log 1");
    may_not(&server, "+rl.slide ~*", "RL.DENIED RESET");
    assert_eq!(server.entries("rl:log"), before);
    assert_eq!(server.info("rl_slide_errors"), errors);
}

#[test]
fn categories_give_and_take() {
    let server = server();
    if !server_is_at_least(7, 2) {
        // Then the commands are in none: only their names give and take them, and +@all gives.
        for Least { call, .. } in LEAST {
            may_not(&server, "~* +@write +@read +@admin +@dangerous +@fast +@slow", call);
            may(&server, "~* +@all -@write -@read -@admin -@dangerous -@fast -@slow", call);
        }
        return;
    }
    let [slide, swc, peek, refund, denied] = LEAST.map(|least| least.call);
    for (given, all) in [
        ("+@write", [true, true, false, true, false]),
        ("+@read", [false, false, true, false, false]),
        ("+@fast", [true, true, true, false, false]),
        ("+@slow", [false, false, false, true, true]),
        ("+@sortedset", [true, false, false, false, false]),
        ("+@hash", [false, true, false, false, false]),
        ("+@admin", [false, false, false, false, true]),
        ("+@dangerous", [false, false, false, false, true]),
    ] {
        for (call, given_too) in [slide, swc, peek, refund, denied].into_iter().zip(all) {
            let check = if given_too { may } else { may_not };
            check(&server, &format!("~* {given}"), call);
            let check = if given_too { may_not } else { may };
            check(&server, &format!("~* +@all -{}", &given[1..]), call);
        }
    }
}
