//! Rules of the source that no compiler knows, held by reading it.

mod security;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Words that stand for what the limiter does not do: import from the rest of the crate, know
/// Redis, read a clock, use a float, allocate, or be unsafe.
const FORBIDDEN: [&str; 13] = [
    "crate::",
    "redis",
    "std::time",
    "Instant",
    "f32",
    "f64",
    "Vec<",
    "vec!",
    "String",
    "format!",
    "Box<",
    "static ",
    "unsafe",
];

/// The lines of code of a folder's files, without comments.
fn code(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut lines = Vec::new();
    for file in fs::read_dir(folder).unwrap() {
        let source = fs::read_to_string(file.unwrap().path()).unwrap();
        lines.extend(source.lines().map(|line| line.split("//").next().unwrap().to_string()));
    }
    assert!(lines.len() > 300, "only {} lines were read", lines.len());
    lines
}

/// The names between each `before` and the next `after` in the code.
fn names_between(lines: &[String], before: &str, after: char) -> BTreeSet<String> {
    let rest = lines.iter().flat_map(|line| line.split(before).skip(1));
    rest.map(|rest| rest.split(after).next().unwrap().to_string()).collect()
}

#[test]
fn the_limiter_is_arithmetic_alone() {
    for line in code("src/limiter") {
        let found = FORBIDDEN.iter().find(|word| line.contains(**word));
        assert_eq!(found, None, "in {line}");
    }
}

#[test]
fn every_function_called_without_looking_is_checked_at_load() {
    let lines = code("src/redis");
    let called = names_between(&lines, "required(raw::RedisModule_", ')');
    let checked = names_between(&lines, "present(raw::RedisModule_", ')');
    assert!(called.len() > 20, "only {called:?}");
    assert_eq!(called, checked);
}

#[test]
fn every_command_that_is_replicated_is_checked_at_load() {
    let lines = code("src/redis");
    let is_command =
        |name: &String| name.len() > 2 && name.bytes().all(|byte| byte.is_ascii_uppercase());
    let named = |lines: &[String]| -> BTreeSet<String> {
        names_between(lines, "c\"", '"').into_iter().filter(is_command).collect()
    };
    let list = lines.iter().position(|line| line.starts_with("const REPLICATED")).unwrap();
    let (checked, sent) = (&lines[list..list + 3], [&lines[..list], &lines[list + 3..]].concat());
    assert_eq!(named(checked), named(&sent));
    assert_eq!(named(checked).len(), 7);
}

#[test]
fn the_version_is_the_packages() {
    let [major, minor, patch]: [u32; 3] = env!("CARGO_PKG_VERSION")
        .split('.')
        .map(|part| part.parse().unwrap())
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let said = format!("const VERSION: c_int = {};", major * 10_000 + minor * 100 + patch);
    let source = include_str!("../../src/lib.rs");
    assert!(source.contains(&said), "src/lib.rs does not have {said}");
}
