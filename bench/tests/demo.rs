//! The show, without a terminal.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

fn demo() -> Command {
    Command::new(env!("CARGO_BIN_EXE_demo"))
}

#[test]
fn it_is_plain_without_a_terminal_and_ends_in_a_table() {
    let output = demo().env("SPEED", "0").output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("it is text");
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains('\x1b'), "{text:?}");
    assert!(text.lines().all(|line| line.len() <= 79), "{text}");
    let table = [
        "| fixed window | 40 | 33 | 18: 8 above the limit |",
        "| RL.SWC | 31 | 42 | 11: 1 above the limit |",
        "| RL.SLIDE | 34 | 39 | 10 |",
    ];
    assert!(text.ends_with(&(table.join("\n") + "\n")), "{text}");
}

#[test]
fn an_interrupt_ends_it_and_its_server() {
    let mut child = demo().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let answered = lines.by_ref().map(Result::unwrap).find(|line| line.contains("admitted"));
    assert!(answered.is_some(), "it ended before anything was answered");
    let servers = children_of(child.id());
    assert_eq!(servers.len(), 1, "{servers:?}");

    let number = child.id().to_string();
    let sent =
        Command::new("sh").args(["-c", "kill -s INT \"$1\"", "sh", &number]).status().unwrap();
    assert!(sent.success());
    assert!(lines.all(|line| !line.unwrap().contains('\x1b')), "no escape codes");
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{errors}");
    assert_eq!(errors, "");
    for server in servers {
        assert!(!std::path::Path::new(&format!("/proc/{server}")).exists(), "the server goes on");
    }
}

/// The processes that this one has started.
fn children_of(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.split_whitespace().map(|number| number.parse().unwrap()).collect()
}
