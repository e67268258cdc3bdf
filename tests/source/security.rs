//! What docs/SECURITY.md names is there: the test behind each statement, and each dependency.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The crates of this repository, and what the page calls their dependencies.
const DEPENDENCIES: [(&str, &str, &str); 5] = [
    ("Cargo.toml", "[dependencies]", "the module"),
    ("Cargo.toml", "[dev-dependencies]", "its tests"),
    ("bench/Cargo.toml", "[dependencies]", "`bench/`"),
    ("fuzz/Cargo.toml", "[dependencies]", "`fuzz/`"),
    ("examples/rust/Cargo.toml", "[dependencies]", "`examples/rust/`"),
];

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The items of the page's lists, each with its further lines.
fn statements(page: &str) -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if let Some(first) = line.strip_prefix("- ") {
            statements.push(first.into());
            inside = true;
        } else if let (true, Some(further)) = (inside, line.strip_prefix("  ")) {
            let statement = statements.last_mut().unwrap();
            statement.push(' ');
            statement.push_str(further);
        } else {
            inside = false;
        }
    }
    statements
}

/// The tests that a statement names in backticks, each as its file and its name.
fn tests_named(statement: &str) -> Vec<(&str, &str)> {
    let words = statement.split('`').skip(1).step_by(2);
    words
        .filter_map(|words| words.split_once(": "))
        .filter(|(file, _)| file.ends_with(".rs"))
        .collect()
}

/// Whether a file has a test of that name.
fn is_there(file: &str, name: &str) -> bool {
    let source = read(file);
    let before = source.split(&format!("fn {name}(")).next().unwrap();
    before.len() < source.len() && before.trim_end().ends_with("#[test]")
}

#[test]
fn every_statement_on_security_names_tests_that_are_there() {
    let page = read("docs/SECURITY.md");
    let statements = statements(&page);
    assert!(statements.len() >= 30, "only {} statements were found", statements.len());
    for statement in &statements {
        let tests = tests_named(statement);
        assert!(!tests.is_empty(), "no test shows: {statement}");
        for (file, name) in tests {
            assert!(is_there(file, name), "{file} has no test {name}");
        }
    }
}

/// The crates in a section of a manifest.
fn crates(manifest: &str, section: &str) -> BTreeSet<String> {
    let manifest = read(manifest);
    let lines = manifest.lines().skip_while(|line| *line != section).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| Some(line.split_once(" = ")?.0.to_string())).collect()
}

#[test]
fn every_dependency_has_its_reason() {
    let page = read("docs/SECURITY.md");
    for (manifest, section, place) in DEPENDENCIES {
        let rows = page.lines().filter_map(|line| line.strip_prefix(&format!("| {place} | `")));
        let reasons: Vec<(&str, &str)> =
            rows.map(|row| row.split_once("` | ").expect("a row has a reason")).collect();
        assert!(reasons.iter().all(|(_, reason)| reason.len() > " |".len()), "{place}");
        let explained: BTreeSet<String> =
            reasons.iter().map(|(name, _)| name.to_string()).collect();
        assert_eq!(explained, crates(manifest, section), "{manifest}");
    }
}

#[test]
fn unsafe_code_is_allowed_in_two_places_and_each_has_its_reason() {
    let manifest = read("Cargo.toml");
    for lint in ["unsafe_code", "unsafe_op_in_unsafe_fn", "undocumented_unsafe_blocks"] {
        assert!(manifest.contains(&format!("\n{lint} = \"deny\"\n")), "{lint}");
    }
    let mut allowed = Vec::new();
    visit(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut |line| {
        if line.contains("allow(") && line.contains("unsafe") {
            allowed.push(line.trim().to_string());
        }
    });
    assert_eq!(allowed.len(), 2, "{allowed:?}");
    let with_reason = "#[allow(unsafe_code, reason = \"";
    assert!(allowed.iter().all(|line| line.starts_with(with_reason)), "{allowed:?}");
}

/// Shows each line of the files in a folder and the folders in it.
fn visit(folder: &Path, each: &mut impl FnMut(&str)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => visit(&path, each),
            false => fs::read_to_string(&path).unwrap().lines().for_each(&mut *each),
        }
    }
}
