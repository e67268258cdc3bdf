//! The commands that the server propagates, as its AOF holds them: what replicas and a restart see.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::server_is_at_least;

/// Reads the AOF from where it last stopped.
pub struct Journal {
    file: PathBuf,
    read_bytes: usize,
}

impl Journal {
    /// A journal of the server in `dir` that starts at the end of what is there.
    pub fn from_here(dir: &Path) -> Journal {
        let mut journal = Journal { file: newest_aof(dir), read_bytes: 0 };
        journal.skip();
        journal
    }

    /// Forgets what was propagated since the last call.
    pub fn skip(&mut self) {
        self.read_bytes = fs::read(&self.file).unwrap().len();
    }

    /// The commands propagated since the last call, each on a line, without the choice of the database.
    ///
    /// Servers before 7.0 put even a single command of a module, and in scripts none at all, between
    /// `MULTI` and `EXEC`; such a pair is left out.
    pub fn commands(&mut self) -> Vec<String> {
        let bytes = fs::read(&self.file).unwrap();
        let text =
            String::from_utf8(bytes[self.read_bytes..].to_vec()).expect("these keys are text");
        self.read_bytes = bytes.len();
        let mut lines = text.split("\r\n");
        let mut commands = Vec::new();
        while let Some(count) = lines.next().and_then(|head| head.strip_prefix('*')) {
            let args = (0..count.parse().unwrap()).map(|_| lines.nth(1).expect("a whole command"));
            commands.push(args.collect::<Vec<_>>().join(" "));
        }
        commands.retain(|command| !command.to_uppercase().starts_with("SELECT "));
        match commands.as_slice() {
            [multi, inside @ .., exec]
                if !server_is_at_least(7, 0)
                    && inside.len() < 2
                    && (multi.as_str(), exec.as_str()) == ("MULTI", "EXEC") =>
            {
                inside.to_vec()
            }
            _ => commands,
        }
    }
}

fn newest_aof(dir: &Path) -> PathBuf {
    let parts = fs::read_dir(dir.join("appendonlydir")).into_iter().flatten();
    let mut parts: Vec<PathBuf> = parts.map(|entry| entry.unwrap().path()).collect();
    parts.retain(|path| path.to_str().is_some_and(|name| name.ends_with(".incr.aof")));
    parts.sort();
    // Before 7.0 the AOF is one file.
    parts.pop().unwrap_or_else(|| dir.join("appendonly.aof"))
}
