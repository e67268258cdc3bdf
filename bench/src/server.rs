//! A server with the module: its own directory and socket, ended by its own handle.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

use crate::wire::Wire;

/// How long a server may take to start, also under valgrind on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// What a server is started with.
pub struct Setup {
    before: Vec<OsString>,
    options: Vec<String>,
    dir: Dir,
}

impl Setup {
    /// A server with the module, and redis-cell where it is given; nothing is kept on disk.
    pub fn plain() -> Setup {
        Setup { before: Vec::new(), options: Vec::new(), dir: Dir::fresh() }
    }

    /// A word of a command line that the server's own stands behind: `valgrind`, `taskset`.
    pub fn behind(mut self, word: impl Into<OsString>) -> Setup {
        self.before.push(word.into());
        self
    }

    /// The same, of a word that ends with the path of a file in the server's directory.
    pub fn behind_file(self, word: &str, file: &str) -> Setup {
        let path = self.dir.0.join(file);
        self.behind(format!("{word}{}", path.display()))
    }

    /// The server runs on that core and no other.
    pub fn on_core(self, core: usize) -> Setup {
        self.behind("taskset").behind("--cpu-list").behind(core.to_string())
    }

    /// A line of the server's configuration.
    pub fn option(mut self, line: &str) -> Setup {
        let (name, values) = line.split_once(' ').expect("an option has a value");
        self.options.push(format!("--{name}"));
        self.options.extend(values.split(' ').map(String::from));
        self
    }

    /// Starts the server and waits until it answers.
    pub fn start(self) -> Server {
        let dir = self.dir;
        let log = File::create(dir.0.join("log")).expect("the directory can be written to");
        let mut words = self.before;
        words.push(server_binary().into());
        let child = Command::new(&words[0])
            .args(&words[1..])
            .args(["--port", "0", "--save", "", "--appendonly", "no"])
            .arg("--dir")
            .arg(&dir.0)
            .arg("--unixsocket")
            .arg(dir.0.join("socket"))
            .args(self.options)
            .args(module_options())
            .stdin(Stdio::null())
            .stderr(log.try_clone().unwrap())
            .stdout(log)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {words:?}: {error}"));
        let mut server = Server { child, dir };
        server.wait_until_ready();
        server
    }
}

/// A running server. It never outlives its handle.
pub struct Server {
    child: Child,
    // Last, for it is removed when the process has ended.
    dir: Dir,
}

impl Server {
    /// Another connection.
    pub fn connect(&self) -> Wire {
        Wire::connect(&self.dir.0.join("socket")).expect("the server takes connections")
    }

    /// Where the server keeps its files.
    pub fn dir(&self) -> &Path {
        &self.dir.0
    }

    fn wait_until_ready(&mut self) {
        let start = Instant::now();
        loop {
            let ended = self.child.try_wait().unwrap();
            if ended.is_some() || start.elapsed() > DEADLINE {
                let log = fs::read_to_string(self.dir.0.join("log")).unwrap_or_default();
                panic!("the server does not start ({ended:?}); its log:\n{log}");
            }
            if let Ok(mut wire) = Wire::connect(&self.dir.0.join("socket")) {
                wire.run("PING");
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Dir(PathBuf);

impl Dir {
    fn fresh() -> Dir {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = env::temp_dir().join(format!("rl-bench-{}-{number}", std::process::id()));
        // Another process of the same number may have been ended before it could remove its own.
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).expect("a temporary directory can be made");
        Dir(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A port that nobody listens on.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap().port()
}

/// The server's name and version, such as `redis 7.0.15`.
pub fn version(wire: &mut Wire) -> String {
    let info = wire.run("INFO server");
    let field = |name| info_field(info.text(), name);
    match field("valkey_version") {
        Some(version) => format!("valkey {version}"),
        None => format!("redis {}", field("redis_version").expect("a server has a version")),
    }
}

/// A field of what `INFO` answers.
pub fn info_field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

/// Whether the server has what a contender of this name needs: for redis-cell's, that its library is given.
pub fn has(contender: &str) -> bool {
    contender != "CL.THROTTLE" || setting("REDIS_CELL").is_some()
}

/// A setting out of the environment; an empty one is none.
pub fn setting(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// A setting that is a number.
pub fn number(name: &str, otherwise: u64) -> u64 {
    setting(name).map_or(otherwise, |value| {
        value.parse().unwrap_or_else(|_| panic!("{name} is no number: {value:?}"))
    })
}

fn server_binary() -> String {
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    setting("REDIS_SERVER").unwrap_or_else(|| {
        let found = ["redis-server", "valkey-server"].into_iter().find(runs);
        found.expect("redis-server or valkey-server is installed").to_string()
    })
}

fn module_options() -> Vec<String> {
    let module = setting("RL_MODULE").expect("RL_MODULE names the library: use the make targets");
    let modules = [Some(module), setting("REDIS_CELL")];
    modules.into_iter().flatten().flat_map(|path| ["--loadmodule".to_string(), path]).collect()
}
