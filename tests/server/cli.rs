//! Replies as redis-cli shows them at its prompt.

use std::process::Command;

use redis::Value;
use rl::commands::table;

use crate::harness::Setup;

/// The lines of a reply; an error is its text.
pub fn shown(reply: &Result<Value, String>) -> Vec<String> {
    match reply {
        Ok(value) => lines(value),
        Err(error) => vec![format!("(error) {error}")],
    }
}

fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::Array(elements) if elements.is_empty() => vec!["(empty array)".into()],
        Value::Array(elements) => numbered(elements),
        Value::Int(number) => vec![format!("(integer) {number}")],
        Value::BulkString(bytes) => vec![quoted(bytes)],
        Value::SimpleString(text) => vec![text.clone()],
        Value::Okay => vec!["OK".into()],
        Value::Nil => vec!["(nil)".into()],
        other => panic!("no page shows such a reply: {other:?}"),
    }
}

/// Elements behind their numbers, which are as wide as the last one; what an element has on further
/// lines stands below its first.
fn numbered(elements: &[Value]) -> Vec<String> {
    let width = elements.len().to_string().len();
    let mut all = Vec::new();
    for (index, element) in elements.iter().enumerate() {
        let mut before = format!("{:>width$}) ", index + 1);
        for line in lines(element) {
            all.push(format!("{before}{line}"));
            before = " ".repeat(before.len());
        }
    }
    all
}

fn quoted(bytes: &[u8]) -> String {
    let escaped = bytes.iter().map(|byte| match byte {
        b'"' => "\\\"".into(),
        b'\\' => "\\\\".into(),
        b'\n' => "\\n".into(),
        b'\r' => "\\r".into(),
        b'\t' => "\\t".into(),
        7 => "\\a".into(),
        8 => "\\b".into(),
        b' '..=b'~' => char::from(*byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[test]
fn replies_are_shown_as_redis_cli_shows_them() {
    let text = |bytes: &[u8]| Value::BulkString(bytes.to_vec());
    let pair = Value::Array(vec![text(b"a"), Value::Array(vec![Value::Int(-1), Value::Nil])]);
    let mut eleven = vec![pair, Value::Array(vec![]), Value::Okay];
    eleven.resize(11, Value::SimpleString("PONG".into()));
    let shown_lines = shown(&Ok(Value::Array(eleven)));
    let expected = [
        " 1) 1) \"a\"",
        "    2) 1) (integer) -1",
        "       2) (nil)",
        " 2) (empty array)",
        " 3) OK",
        " 4) PONG",
    ];
    assert_eq!(shown_lines[..6], expected);
    assert_eq!(shown_lines[12], "11) PONG");
    let escaped = shown(&Ok(text(b"a\"\\\n\r\t\x07\x08 ~\x7f\xff\0")));
    assert_eq!(escaped, [r#""a\"\\\n\r\t\a\b ~\x7f\xff\x00""#]);
    assert_eq!(shown(&Err("ERR no".into())), ["(error) ERR no"]);
}

/// A line without the escape codes that colour it.
fn without_colours(line: &str) -> String {
    let mut parts = line.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_string();
    let rest = parts.map(|part| part.split_once('m').map_or(part, |(_, text)| text));
    first + &rest.collect::<String>()
}

/// What `HELP` says of a command is what redis-cli hints at while somebody types it.
#[test]
fn redis_cli_hints_at_the_syntax_of_the_table() {
    let server = Setup::new().on_tcp().start();
    if server.lacks("COMMAND DOCS", "command|docs") {
        return;
    }
    let runs = |program: &&str| Command::new(program).arg("--version").output().is_ok();
    let program = ["redis-cli", "valkey-cli"].into_iter().find(runs);
    let program = program.expect("redis-cli or valkey-cli is installed: make setup");
    for command in table::ALL {
        let name = command.name.to_str().unwrap();
        let port = server.port().to_string();
        let output = Command::new(program).args(["-p", &port, "HELP", name]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let shown = text.lines().map(without_colours).map(|line| line.trim().to_string());
        let shown: Vec<String> = shown.filter(|line| !line.is_empty()).collect();
        // It leaves out the spaces around a choice.
        assert_eq!(shown[0], command.syntax().replace(" | ", "|"), "{text}");
        assert_eq!(shown[1], format!("summary: {}", command.summary.to_str().unwrap()), "{text}");
    }
}
