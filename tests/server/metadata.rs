//! What the server says of the commands: flags, arity and keys, documentation, ACL categories.

use std::collections::BTreeSet;

use redis::Value;
use rl::commands::table;

use crate::client::Client;
use crate::harness::{Server, server_is_at_least, skipped};

/// What `COMMAND INFO` should say.
struct Expected {
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    /// Of the first argument, as a key; none for a command without keys.
    key_flags: &'static [&'static str],
    categories: &'static [&'static str],
}

const UPDATE: &[&str] = &["RW", "access", "update"];

const EXPECTED: [Expected; 5] = [
    Expected {
        name: "rl.slide",
        arity: -4,
        flags: &["write", "fast"],
        key_flags: UPDATE,
        categories: &["@write", "@sortedset", "@fast"],
    },
    Expected {
        name: "rl.swc",
        arity: -4,
        flags: &["write", "fast"],
        key_flags: UPDATE,
        categories: &["@write", "@hash", "@fast"],
    },
    Expected {
        name: "rl.peek",
        arity: -4,
        flags: &["readonly", "fast"],
        key_flags: &["RO", "access"],
        categories: &["@read", "@fast"],
    },
    Expected {
        name: "rl.refund",
        arity: -3,
        flags: &["write"],
        key_flags: UPDATE,
        categories: &["@write", "@slow"],
    },
    Expected {
        name: "rl.denied",
        arity: -1,
        flags: &["admin", "loading", "stale"],
        key_flags: &[],
        categories: &["@admin", "@dangerous", "@slow"],
    },
];

// --- Replies of COMMAND ----------------------------------------------------------------------------

fn elements(value: &Value) -> &[Value] {
    let Value::Array(elements) = value else { panic!("no array: {value:?}") };
    elements
}

fn text(value: &Value) -> String {
    redis::from_redis_value(value.clone()).unwrap_or_else(|_| panic!("no text: {value:?}"))
}

fn set(value: &Value) -> BTreeSet<String> {
    elements(value).iter().map(text).collect()
}

fn words(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| word.to_string()).collect()
}

/// The value behind a name in a flat list of names and values.
fn find<'a>(pairs: &'a Value, name: &str) -> Option<&'a Value> {
    elements(pairs).chunks(2).find(|pair| text(&pair[0]) == name).map(|pair| &pair[1])
}

fn field<'a>(pairs: &'a Value, name: &str) -> &'a Value {
    find(pairs, name).unwrap_or_else(|| panic!("no {name} in {pairs:?}"))
}

fn info(client: &Client, name: &str) -> Vec<Value> {
    let found: Value = client.run(&format!("COMMAND INFO {name}"));
    elements(&elements(&found)[0]).to_vec()
}

fn docs(client: &Client, name: &str) -> Value {
    let found: Value = client.run(&format!("COMMAND DOCS {name}"));
    field(&found, name).clone()
}

// --- COMMAND INFO ----------------------------------------------------------------------------------

#[test]
fn the_commands_are_those_of_the_table() {
    let server = Server::start();
    let all: Value = server.run("COMMAND");
    let names = elements(&all).iter().map(|command| text(&elements(command)[0]));
    let ours: BTreeSet<String> = names.filter(|name| name.starts_with("rl.")).collect();
    assert_eq!(ours, EXPECTED.iter().map(|command| command.name.to_string()).collect());
    let table = table::ALL.map(|command| command.name.to_str().unwrap().to_string());
    assert_eq!(ours, BTreeSet::from(table));
}

#[test]
fn flags_say_what_a_command_does_and_no_more() {
    let server = Server::start();
    for command in EXPECTED {
        let mut flags = set(&info(&server, command.name)[2]);
        flags.remove("module");
        assert_eq!(flags, words(command.flags), "{}", command.name);
    }
}

#[test]
fn the_server_counts_the_arguments() {
    let server = Server::start();
    if server.lacks("arities of modules' commands", "command|docs") {
        return;
    }
    for command in EXPECTED {
        assert_eq!(info(&server, command.name)[1], Value::Int(command.arity), "{}", command.name);
        let fewest = -command.arity - 1;
        if fewest > 0 {
            let too_few = vec!["x"; fewest as usize - 1].join(" ");
            let error = server.error(&format!("{} {too_few}", command.name));
            assert!(error.contains("wrong number of arguments"), "{}: {error}", command.name);
            let calls = server.info(&format!("cmdstat_{}", command.name));
            assert!(calls.contains("rejected_calls=1"), "the module was called: {calls}");
        }
    }
}

#[test]
fn the_key_is_the_first_argument_or_there_is_none() {
    let server = Server::start();
    for command in EXPECTED {
        let expected = i64::from(!command.key_flags.is_empty());
        let positions = &info(&server, command.name)[3..6];
        assert_eq!(positions, vec![Value::Int(expected); 3], "{}", command.name);
    }
}

#[test]
fn key_specs_ask_for_the_least_access() {
    let server = Server::start();
    if server.lacks("key specs", "command|docs") {
        return;
    }
    for command in EXPECTED {
        let info = info(&server, command.name);
        let specs = elements(&info[8]);
        let flags: Vec<BTreeSet<String>> =
            specs.iter().map(|spec| set(field(spec, "flags"))).collect();
        match command.key_flags {
            [] => assert!(flags.is_empty(), "{}: {flags:?}", command.name),
            expected => assert_eq!(flags, [words(expected)], "{}", command.name),
        }
    }
}

#[test]
fn getkeys_finds_the_key() {
    let server = Server::start();
    for call in [
        "RL.SLIDE rl:7 60s 10 1h 100 COST 2 FORCE PRECISION 1s AT 1000000",
        "RL.SWC rl:7 60s 10 1h 100 COST 2",
        "RL.PEEK rl:7 60s 10",
        "RL.REFUND rl:7 5 AT 1000000",
    ] {
        let keys: Vec<String> = server.run(&format!("COMMAND GETKEYS {call}"));
        assert_eq!(keys, ["rl:7"], "{call}");
    }
    for call in ["RL.DENIED COUNT 5", "RL.DENIED RESET"] {
        let error = server.error(&format!("COMMAND GETKEYS {call}"));
        let known =
            ["no key arguments", "Invalid arguments"].iter().any(|said| error.contains(said));
        assert!(known, "{call}: {error}");
    }
}

#[test]
fn categories_are_those_of_what_a_command_does() {
    let server = Server::start();
    if !server_is_at_least(7, 2) {
        return skipped("the server has no categories of modules' commands");
    }
    for command in EXPECTED {
        let found = set(&info(&server, command.name)[6]);
        assert_eq!(found, words(command.categories), "{}", command.name);
    }
}

#[test]
fn categories_list_the_commands() {
    let server = Server::start();
    let members = |category: &str| -> Vec<String> {
        server.run(&format!("ACL CAT {}", category.strip_prefix('@').unwrap()))
    };
    // Redis 7.2 and 7.4 and Valkey 8.0 pass over the commands of all modules in these lists.
    if !members("@fast").iter().any(|name| name.starts_with("rl.")) {
        return skipped("ACL CAT of the server lists no commands of modules");
    }
    for command in EXPECTED {
        for category in command.categories {
            let listed = members(category).contains(&command.name.to_string());
            assert!(listed, "{} in {category}", command.name);
        }
    }
}

// --- COMMAND DOCS ----------------------------------------------------------------------------------

#[test]
fn the_documentation_is_that_of_the_table() {
    let server = Server::start();
    if server.lacks("COMMAND DOCS", "command|docs") {
        return;
    }
    for command in table::ALL {
        let name = command.name.to_str().unwrap();
        let docs = docs(&server, name);
        for (key, expected) in [
            ("summary", command.summary),
            ("since", command.since),
            ("complexity", command.complexity),
        ] {
            let expected = expected.to_str().unwrap();
            assert!(!expected.is_empty());
            assert_eq!(text(field(&docs, key)), expected, "{key} of {name}");
        }
        assert_eq!(text(field(&docs, "group")), "module", "{name}");
        assert_eq!(text(field(&docs, "module")), "rl", "{name}");
    }
}

/// An argument of `COMMAND DOCS` as redis-cli hints at it, values with their types.
fn hint(arg: &Value) -> String {
    let kind = text(field(arg, "type"));
    let inner = |between: &str| {
        let args = elements(field(arg, "arguments"));
        args.iter().map(hint).collect::<Vec<_>>().join(between)
    };
    let value = match kind.as_str() {
        "pure-token" => String::new(),
        "block" => inner(" "),
        "oneof" => inner(" | "),
        _ => format!("{}:{kind}", text(field(arg, "name"))),
    };
    let token = find(arg, "token").map(text).unwrap_or_default();
    let once = [token, value].join(" ").trim().to_string();
    let flags = find(arg, "flags").map(set).unwrap_or_default();
    let all = if flags.contains("multiple") { format!("{once} [{once} ...]") } else { once };
    if flags.contains("optional") { format!("[{all}]") } else { all }
}

#[test]
fn arguments_are_told_with_their_types_and_tokens() {
    let server = Server::start();
    if server.lacks("COMMAND DOCS", "command|docs") {
        return;
    }
    let windows = "key:key window:string limit:integer [window:string limit:integer ...]";
    let slide = "[COST n:integer] [FORCE] [PRECISION p:string] [AT t:unix-time]";
    for (name, expected) in [
        ("rl.slide", format!("{windows} {slide}")),
        ("rl.swc", format!("{windows} [COST n:integer] [FORCE] [AT t:unix-time]")),
        ("rl.peek", format!("{windows} {slide}")),
        ("rl.refund", "key:key n:integer [AT t:unix-time]".into()),
        ("rl.denied", "[RESET | COUNT n:integer]".into()),
    ] {
        let docs = docs(&server, name);
        let args = elements(field(&docs, "arguments"));
        assert_eq!(args.iter().map(hint).collect::<Vec<_>>().join(" "), expected, "{name}");
    }
}

#[test]
fn the_key_argument_belongs_to_its_key_spec() {
    let server = Server::start();
    if server.lacks("COMMAND DOCS", "command|docs") {
        return;
    }
    for command in EXPECTED.iter().filter(|command| !command.key_flags.is_empty()) {
        let docs = docs(&server, command.name);
        let key = &elements(field(&docs, "arguments"))[0];
        assert_eq!(field(key, "key_spec_index"), &Value::Int(0), "{}", command.name);
    }
}
