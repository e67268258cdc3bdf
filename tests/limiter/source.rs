//! What the limiter's source must not contain: the rules of its folder, held by reading it.

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

/// The lines of code of a file, without comments.
fn code(source: &str) -> impl Iterator<Item = &str> {
    source.lines().map(|line| line.split("//").next().unwrap_or_default())
}

#[test]
fn the_limiter_is_arithmetic_alone() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/limiter");
    let mut lines = 0;
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let source = fs::read_to_string(&path).unwrap();
        for line in code(&source) {
            let found = FORBIDDEN.iter().find(|word| line.contains(**word));
            assert_eq!(found, None, "in {}: {line}", path.display());
            lines += 1;
        }
    }
    assert!(lines > 300, "only {lines} lines were read");
}
