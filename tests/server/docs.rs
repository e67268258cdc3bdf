//! The documentation's examples, run as they are written.
//!
//! A block marked `redis` is a session of redis-cli: a prompt and a command, then the reply, with a
//! remark behind two spaces or more. Lines of a block marked `sh` that begin with `redis-cli` are
//! commands too.

use std::fs;
use std::path::Path;

use redis::Value;

use crate::harness::Server;

const PROMPT: &str = "127.0.0.1:6379> ";

/// The lines inside the blocks of a page that are marked with `language`.
fn block_lines<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let opening = format!("```{language}");
    let mut lines = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line.starts_with("```") {
            true => inside = line == opening,
            false if inside => lines.push(line),
            false => {}
        }
    }
    lines
}

/// A command of a session, and the lines of its reply.
fn sessions(page: &str) -> Vec<(String, Vec<String>)> {
    let mut sessions: Vec<(String, Vec<String>)> = Vec::new();
    for line in block_lines(page, "redis") {
        if let Some(command) = line.strip_prefix(PROMPT) {
            sessions.push((command.to_string(), Vec::new()));
        } else {
            let reply = line.split("  ").next().unwrap_or_default();
            sessions.last_mut().expect("a session begins with a prompt").1.push(reply.to_string());
        }
    }
    sessions
}

/// A reply as redis-cli shows it.
fn shown(reply: &Value) -> Vec<String> {
    let element = |value: &Value| match value {
        Value::Int(number) => format!("(integer) {number}"),
        Value::BulkString(bytes) => format!("\"{}\"", String::from_utf8_lossy(bytes)),
        other => panic!("no example has such a reply: {other:?}"),
    };
    match reply {
        Value::Array(elements) => {
            let numbered = elements.iter().enumerate();
            numbered.map(|(index, value)| format!("{}) {}", index + 1, element(value))).collect()
        }
        single => vec![element(single)],
    }
}

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

#[test]
fn the_readme_shows_what_the_server_answers() {
    let server = Server::start();
    let sessions = sessions(&page("README.md"));
    assert!(sessions.len() >= 5, "only {} examples were found", sessions.len());
    for (command, reply) in sessions {
        let answer = server.try_run(&command).unwrap_or_else(|error| panic!("{command}: {error}"));
        assert_eq!(shown(&answer), reply, "{command}");
    }
}

#[test]
fn the_readme_types_commands_that_work() {
    let server = Server::start();
    let page = page("README.md");
    let lines = block_lines(&page, "sh").into_iter();
    let commands: Vec<&str> = lines.filter_map(|line| line.strip_prefix("redis-cli ")).collect();
    assert!(!commands.is_empty(), "no command was found");
    for command in commands {
        let answer = server.try_run(command).unwrap_or_else(|error| panic!("{command}: {error}"));
        assert!(matches!(answer, Value::Array(_)), "{command}: {answer:?}");
    }
}
