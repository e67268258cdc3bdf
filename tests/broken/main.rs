//! Whether the tests would notice: each deliberate bug must make the group of tests fail that is named
//! beside it, and without a bug the same build must pass the same groups.

#[path = "mod.rs"]
mod broken;

use std::path::Path;
use std::process::Command;

use broken::bugs::{BUGS, Bug, Group};
use broken::build;

/// Runs a group of tests on the broken build with `bug` switched on; what it said, and whether all
/// passed.
fn run(group: &Group, bug: &str) -> (String, bool) {
    let (mut cargo, suite, tests) = match group {
        Group::Limiter(tests) => (build::cargo(), "limiter", tests),
        Group::Server(tests) => (cargo_here(), "server", tests),
    };
    cargo.args(["test", "--locked", "--test", suite, "--", tests]).env("RL_BUG", bug);
    let output = cargo.output().expect("cargo runs");
    let said = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&said).into_owned(), output.status.success())
}

/// Cargo for the tests of the server as they are, which load the broken module.
fn cargo_here() -> Command {
    let mut cargo = build::cargo_in(Path::new(env!("CARGO_MANIFEST_DIR")));
    cargo.env("RL_MODULE", build::module());
    cargo
}

fn is_caught(Bug { name, caught_by, .. }: &Bug) -> Result<(), String> {
    let (said, passed) = run(caught_by, name);
    if said.contains("test result: FAILED") && !passed {
        return Ok(());
    }
    Err(format!("the bug '{name}' was not caught:\n{said}"))
}

#[test]
fn each_bug_is_caught_by_the_group_beside_it() {
    let missed: Vec<String> = BUGS.iter().filter_map(|bug| is_caught(bug).err()).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn without_a_bug_the_same_build_passes() {
    let mut groups: Vec<&Group> = BUGS.iter().map(|bug| &bug.caught_by).collect();
    groups.sort();
    groups.dedup();
    for group in groups {
        let (said, passed) = run(group, "");
        assert!(passed && !said.contains(" 0 passed"), "{group:?}:\n{said}");
    }
}
