//! A second build of the crate, broken on purpose.
//!
//! The source is copied and edited: each edit puts a choice in the place of a line or two, so that one
//! build holds every bug and every fault, and an environment variable picks (what mutation testing
//! calls schemata). The true source has no trace of any of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::bugs::BUGS;

/// The name of the broken crate, so that nobody takes its files for the true one's.
const CRATE: &str = "broken_rl";

/// Writes to a key, all there are, by the line that begins each; a fault comes first of all in it.
const WRITES: [&str; 7] = [
    "pub fn set_expires_at_ms(&mut self, at_ms: i64) -> bool {",
    "pub fn unlink(&mut self) -> bool {",
    "pub fn add(&mut self, score: f64, member: Text) -> bool {",
    "pub fn remove(&mut self, member: Text) -> bool {",
    "pub fn set_field(&mut self, name: Text, value: Text) -> bool {",
    "pub fn set_fields(&mut self, names: [Text; 3], values: [Text; 3]) -> bool {",
    "pub fn remove_fields(&mut self, names: [Text; 3]) -> bool {",
];

/// Where the copy is.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken");
        copy(Path::new(env!("CARGO_MANIFEST_DIR")), &folder);
        folder
    })
}

/// The broken module, built.
pub fn module() -> PathBuf {
    let status = cargo().args(["test", "--test", "limiter", "--no-run"]).status();
    assert!(status.expect("cargo runs").success(), "the broken build fails");
    // Building for tests leaves the library beside them.
    let this = std::env::current_exe().expect("a test knows where it is");
    this.with_file_name(format!("lib{CRATE}.so"))
}

/// Cargo, to run in the copy. It builds into the folder of the true crate: nothing but the crate
/// itself has to be built again.
pub fn cargo() -> Command {
    let mut cargo = cargo_in(folder());
    cargo.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap());
    cargo
}

/// Cargo, to run in a folder.
pub fn cargo_in(folder: &Path) -> Command {
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    cargo.current_dir(folder);
    cargo
}

/// Copies what a build needs, broken, and removes what is no longer there.
fn copy(from: &Path, to: &Path) {
    for file in files_in(&to.join("src")).iter().chain(&files_in(&to.join("tests"))) {
        let path = file.strip_prefix(to).unwrap();
        if !from.join(path).is_file() && path != Path::new("src/broken.rs") {
            fs::remove_file(file).unwrap();
        }
    }
    for file in ["Cargo.toml", "Cargo.lock", "README.md"] {
        write(&to.join(file), &broken(Path::new(file), fs::read(from.join(file)).unwrap()));
    }
    for folder in ["src", "tests/limiter", "tests/model", "tests/seeded"] {
        for file in files_in(&from.join(folder)) {
            let path = file.strip_prefix(from).unwrap();
            write(&to.join(path), &broken(path, fs::read(&file).unwrap()));
        }
    }
    let inject = fs::read(from.join("tests/broken/inject.rs")).unwrap();
    write(&to.join("src/broken.rs"), &inject);
}

/// The source of a file with every bug and fault in it.
fn broken(path: &Path, source: Vec<u8>) -> Vec<u8> {
    let mut source = String::from_utf8(source).expect("source is text");
    if path == Path::new("tests/limiter/main.rs") {
        source += &format!("extern crate {CRATE} as rl;\n");
    }
    let public = source.lines().filter(|line| line.contains("pub fn "));
    let writes = public.filter(|line| line.contains("(&mut self")).count();
    let mut edit = |right: &str, edited: String| {
        let found = source.matches(right).count();
        assert_eq!(found, 1, "{} holds this so often, and not once:\n{right}", path.display());
        source = source.replace(right, &edited);
    };
    if path == Path::new("Cargo.toml") {
        edit("name = \"rl\"", format!("name = \"{CRATE}\""));
    }
    if path == Path::new("src/lib.rs") {
        edit("pub mod commands;", "pub mod broken;\npub mod commands;".into());
    }
    if path == Path::new("src/redis/key.rs") {
        assert_eq!(writes, WRITES.len(), "{} has other writes than are known", path.display());
        for line in WRITES {
            edit(
                line,
                format!("{line}\n        if crate::broken::write_fails() {{ return false; }}"),
            );
        }
    }
    for bug in BUGS.iter().filter(|bug| path == Path::new(bug.file)) {
        let (name, wrong, right) = (bug.name, bug.wrong, bug.right);
        let choice = format!("if crate::broken::has({name:?}) {{ {wrong} }} else {{ {right} }}");
        edit(right, format!("({choice})"));
    }
    source.into_bytes()
}

/// Writes a file unless it is as it should be: cargo builds again what was written.
fn write(path: &Path, content: &[u8]) {
    if fs::read(path).is_ok_and(|present| present == content) {
        return;
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let (folders, mut files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| files_in(folder)));
    files
}
