//! The benchmarks themselves, for a moment each: what they measure is checked as they go.

use std::process::Command;

/// Runs one with these settings: what it prints.
fn run(binary: &str, settings: &[(&str, &str)]) -> String {
    let output = Command::new(binary).envs(settings.iter().copied()).output().expect("it runs");
    let (text, errors) = (String::from_utf8(output.stdout).unwrap(), output.stderr);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&errors));
    text
}

#[test]
fn time_is_measured_and_judged() {
    let settings = [("ONLY", "counter"), ("ROUNDS", "1"), ("CALLS", "50"), ("BACKLOG", "1000")];
    let text = run(env!("CARGO_BIN_EXE_time"), &settings);
    for contender in ["RL.SWC denied", "Lua counter denied", "INCR admitted"] {
        assert!(text.contains(contender), "{contender}:\n{text}");
    }
    assert!(text.contains("goal: RL.SWC admitted <= 0.17 x Lua counter admitted"), "{text}");
}

#[test]
fn memory_is_measured() {
    let text = run(env!("CARGO_BIN_EXE_memory"), &[("MOST", "10"), ("USERS", "20")]);
    for keeper in ["RL.SLIDE PRECISION 1s", "RL.SWC", "Lua log of UUIDs"] {
        assert!(text.contains(keeper), "{keeper}:\n{text}");
    }
}
