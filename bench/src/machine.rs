//! Where figures are from: the machine, and the versions of what ran on it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::server::{self, Setup};

/// The core of the load, where there is more than one.
pub const LOAD_CORE: usize = 0;

/// The core of the servers.
pub const SERVER_CORE: usize = 1;

/// The version of the server that is measured, and the machine, in one line.
pub fn origin() -> String {
    let server = Setup::plain().start();
    let version = server::version(&mut server.connect());
    format!("{version}, {} cores of {}", cores(), processor())
}

/// The cores of the machine, whichever of them this process may use.
pub fn cores() -> usize {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines().filter(|line| line.starts_with("processor")).count().max(1)
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or("an unknown processor", |(_, name)| name.trim()).to_string()
}

/// A file of the project, by its path from the project's folder.
pub fn project_file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(path)
}
