//! ACL users with the least rights that should work, and with just less; and those of docs/SECURITY.md.

use redis::{FromRedisValue, Value};

use crate::docs::page;
use crate::harness::{Server, server_is_at_least};
use crate::wire::Wire;

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

#[test]
fn a_script_a_function_and_a_transaction_have_the_rights_of_their_caller() {
    let server = server();
    let script = |key: &str| format!("return(redis.call('RL.SLIDE',{key},'60s','5'))");
    let declared = format!("EVAL {} 1 rl:new", script("KEYS[1]"));
    let refused = |rights: &str, call: &str| {
        let answer = answer(&server, rights, call);
        assert!(answer.starts_with('-'), "{call} with {rights}: {answer}");
        assert_eq!(server.run::<i64>("DBSIZE"), 2, "{call} with {rights} changes nothing");
    };
    refused("+eval ~rl:*", &declared);
    refused("+eval +rl.slide ~other", &declared);
    refused("+eval +rl.slide ~rl:*", &format!("EVAL {} 0", script("'other'")));
    if !server.lacks("FUNCTION", "function") {
        let library = "#!lua name=l\nredis.register_function('limit', function(keys) \
                       return redis.call('RL.SLIDE', keys[1], '60s', '5') end)";
        server.args::<String>(&["FUNCTION", "LOAD", library]);
        refused("+fcall ~rl:*", "FCALL limit 1 rl:new");
        refused("+fcall +rl.slide ~other", "FCALL limit 1 rl:new");
        may(&server, "+fcall +rl.slide ~rl:*", "FCALL limit 1 rl:new");
        server.does("DEL rl:new");
    }
    may(&server, "+eval +rl.slide ~rl:*", &declared);

    answer(&server, "+multi +exec +rl.slide ~rl:*", "PING");
    let mut wire = server.wire();
    for (line, start) in [
        ("AUTH u any", "+OK"),
        ("MULTI", "+OK"),
        ("RL.SLIDE other 60s 5", "-NOPERM"),
        ("RL.SLIDE rl:other 60s 5", "+QUEUED"),
        ("EXEC", "-EXECABORT"),
    ] {
        let answer = wire.ask(line);
        assert!(answer.starts_with(start), "{line}: {answer}");
    }
    assert_eq!(server.run::<i64>("EXISTS rl:other"), 0);
}

// --- The users of docs/SECURITY.md -----------------------------------------------------------------

/// A user that the page makes.
struct User {
    /// Behind `ACL SETUSER`.
    words: Vec<String>,
}

impl User {
    fn all_of_the_page() -> Vec<User> {
        let page = page("docs/SECURITY.md");
        let lines = page.lines().filter_map(|line| line.split_once("> ACL SETUSER "));
        let words = |line: &str| line.split(' ').map(String::from).collect();
        let users: Vec<User> = lines.map(|(_, line)| User { words: words(line) }).collect();
        let holders = |command| {
            users.iter().filter(|user| user.has(command)).map(User::name).collect::<Vec<_>>()
        };
        assert_eq!(holders("rl.slide"), ["service", "billing"]);
        assert_eq!(holders("rl.swc"), ["service", "billing"]);
        assert_eq!(holders("rl.peek"), ["service", "billing", "dashboard"]);
        assert_eq!(holders("rl.refund"), ["billing"]);
        assert_eq!(holders("rl.denied"), ["operator"]);
        users
    }

    fn name(&self) -> &str {
        &self.words[0]
    }

    fn has(&self, command: &str) -> bool {
        self.words.iter().any(|word| word.strip_prefix('+') == Some(command))
    }

    /// A connection of the user, whom the server then has.
    fn log_in(&self, server: &Server) -> Wire {
        server.does(&format!("ACL SETUSER {}", self.words.join(" ")));
        let password = self.words.iter().find_map(|word| word.strip_prefix('>'));
        let mut wire = server.wire();
        let answer = wire.ask(&format!("AUTH {} {}", self.name(), password.unwrap()));
        assert_eq!(answer, "+OK\r\n");
        wire
    }
}

/// A command or subcommand of the server: the words of its name, and how many a call has at least.
struct Known {
    name: Vec<String>,
    least_words: usize,
}

impl Known {
    /// All that the server lets nobody run without the right to it.
    fn all(server: &Server) -> Vec<Known> {
        let mut all = Vec::new();
        for info in server.run::<Vec<Value>>("COMMAND") {
            Known::collect(info, &mut all);
        }
        all
    }

    /// Adds the command of an element of `COMMAND`, or its subcommands, which stand last in it.
    fn collect(info: Value, all: &mut Vec<Known>) {
        let parts: Vec<Value> = read(info);
        let name: String = read(parts[0].clone());
        let flags: Vec<String> = read(parts[2].clone());
        let subcommands = parts.get(9).map_or(Vec::new(), |value| read(value.clone()));
        if subcommands.is_empty() && !flags.iter().any(|flag| flag == "no_auth") {
            let least_words = read::<i64>(parts[1].clone()).unsigned_abs() as usize;
            all.push(Known { name: name.split('|').map(String::from).collect(), least_words });
        }
        subcommands.into_iter().for_each(|info| Known::collect(info, all));
    }

    /// A call, with words that are keys within the rights of the users.
    fn call(&self) -> Vec<String> {
        let mut words = self.name.clone();
        words.resize(words.len().max(self.least_words), "rl:x".into());
        words
    }
}

fn read<T: FromRedisValue>(value: Value) -> T {
    redis::from_redis_value(value).expect("COMMAND has this part")
}

#[test]
fn the_users_of_the_page_may_run_no_other_command() {
    let server = server();
    let known = Known::all(&server);
    assert!(known.len() > 200, "only {} commands were found", known.len());
    for user in User::all_of_the_page() {
        let mut wire = user.log_in(&server);
        let others = known.iter().filter(|command| !user.has(&command.name.join("|")));
        for call in others.map(Known::call) {
            let answer = wire.ask_args(&call);
            // EXEC says so behind a code of its own.
            let is_refused = answer.starts_with('-') && answer.contains("NOPERM ");
            assert!(is_refused, "{}: {call:?}: {answer}", user.name());
        }
    }
}

#[test]
fn the_users_of_the_page_may_call_what_they_are_for_on_their_own_keys() {
    let server = server();
    for user in User::all_of_the_page() {
        let mut wire = user.log_in(&server);
        for Least { call, command, key } in LEAST {
            let answer = wire.ask(call);
            let may = user.has(&command[1..]);
            assert_eq!(!answer.starts_with("-NOPERM"), may, "{}: {call}: {answer}", user.name());
            assert!(!may || answer.starts_with(['*', ':']), "{}: {call}: {answer}", user.name());
            if !key.is_empty() {
                let elsewhere = call.replace("rl:", "session:");
                let answer = wire.ask(&elsewhere);
                assert!(answer.starts_with("-NOPERM"), "{}: {elsewhere}: {answer}", user.name());
            }
        }
        let is_told = wire.ask("INFO rl").starts_with('$');
        assert_eq!(is_told, user.has("info"), "{}", user.name());
    }
}
