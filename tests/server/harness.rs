//! One `redis-server` per test: its own directory, socket and log, stopped by its own handle.

mod topology;

use std::fs::{self, File};
use std::net::TcpListener;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Client, open_connection};
use crate::harness::topology::{Heir, Topology};
use crate::journal::Journal;
use crate::wire::Wire;

/// How long a server may take to start, and how long any condition may take to come true.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// How often something that is not yet true is looked at again.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// What a sanitizer's reports have in common, which are in the server's log.
const REPORT: &str = "Sanitizer";

/// What a server is started with.
#[derive(Clone)]
pub struct Setup {
    module: Option<String>,
    module_arguments: Vec<String>,
    tcp: bool,
    options: Vec<String>,
    env: Vec<(&'static str, PathBuf)>,
    alone: bool,
    outlives_full_files: bool,
    topology: Option<Topology>,
}

impl Setup {
    /// A server with the module, a socket in its own directory, and nothing kept on disk.
    pub fn new() -> Setup {
        Setup {
            module: Some(module_path()),
            module_arguments: Vec::new(),
            tcp: false,
            options: Vec::new(),
            env: Vec::new(),
            alone: false,
            outlives_full_files: false,
            topology: None,
        }
    }

    /// The server does not load the module.
    pub fn without_module(mut self) -> Setup {
        self.module = None;
        self
    }

    /// The server loads the module in this file, and not the one under test.
    pub fn module_file(mut self, path: &Path) -> Setup {
        self.module = Some(path.to_str().expect("the path is text").to_string());
        self
    }

    /// The server loads the module with the words of a line as its arguments.
    pub fn module_arguments(mut self, line: &str) -> Setup {
        self.module_arguments = line.split(' ').map(String::from).collect();
        self
    }

    /// The server listens on a free port of the loopback interface too.
    pub fn on_tcp(mut self) -> Setup {
        self.tcp = true;
        self
    }

    /// A line of the server's configuration, such as `"maxmemory 1mb"`.
    pub fn option(mut self, line: &str) -> Setup {
        let (name, values) = line.split_once(' ').expect("an option has a value");
        self.options.push(format!("--{name}"));
        self.options.extend(values.split(' ').map(String::from));
        self
    }

    /// Whatever the topology of the tests, the server is in none: for those that count its memory, or
    /// bring it down.
    pub fn alone(mut self) -> Setup {
        self.alone = true;
        self
    }

    /// A file that may not grow any more is an error to the server, and no signal that ends it.
    pub fn outlives_full_files(mut self) -> Setup {
        self.outlives_full_files = true;
        self
    }

    /// A path in the server's environment.
    pub fn env(mut self, name: &'static str, path: PathBuf) -> Setup {
        self.env.push((name, path));
        self
    }

    /// Every write is in the AOF before it is answered.
    pub fn with_aof(self) -> Setup {
        self.option("appendonly yes").option("appendfsync always")
    }

    /// Starts the server and waits until it answers.
    pub fn start(self) -> Server {
        Server::start_with(self)
    }

    /// Starts the server, which must give up by itself: what it logged.
    pub fn gives_up(self) -> String {
        let dir = Dir::fresh();
        let mut process = Process::spawn(&dir, &self, None);
        wait_until("the server's end", || process.child.try_wait().unwrap().is_some());
        let (status, log) = (process.child.wait().unwrap(), read_log(&dir));
        let clean = !log.contains(REPORT);
        assert!(!status.success() && clean, "the server ended with {status}; its log:\n{log}");
        log
    }
}

/// A running server; everything that a [`Client`] can do can be asked of it directly.
pub struct Server {
    process: Process,
    client: Client,
    heir: Option<Heir>,
    // Last, for it is to be removed when the process has ended.
    dir: Dir,
}

impl Deref for Server {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        if let Some(heir) = self.heir.take() {
            heir.must_hold_the_same(self);
        }
        if server_is_sanitized() {
            self.process.end_in_good_order(&self.dir);
        }
    }
}

impl Server {
    /// A server with the module and nothing else.
    pub fn start() -> Server {
        Setup::new().start()
    }

    fn start_with(setup: Setup) -> Server {
        let setup = setup.in_topology();
        let dir = Dir::fresh();
        let process = Process::start(&dir, &setup);
        let client = Client::connect(&dir);
        let mut server = Server { process, client, heir: None, dir };
        server.heir = Heir::of(&server, &setup);
        server
    }

    /// Kills the server as a crash would, and starts another in its directory. What must be the same
    /// then is for the test to say: this one has no heir.
    pub fn restart(&mut self, setup: Setup) {
        self.heir = None;
        self.process.kill();
        self.process = Process::start(&self.dir, &setup);
        self.client = Client::connect(&self.dir);
    }

    /// Another connection, for when the server has closed the one that is here.
    pub fn another_client(&self) -> Client {
        Client::connect(&self.dir)
    }

    /// Another connection, on which bytes are sent and read as they are.
    pub fn wire(&self) -> Wire {
        Wire::connect(&self.dir)
    }

    /// Another connection, of the client library as it is: for what a [`Client`] does not do.
    pub fn plain_connection(&self) -> redis::Connection {
        open_connection(&self.dir).expect("the server takes connections")
    }

    /// What the server writes to its AOF from here on. Needs [`Setup::with_aof`].
    pub fn journal(&self) -> Journal {
        Journal::from_here(&self.dir)
    }

    /// The TCP port of a server set up [`Setup::on_tcp`].
    pub fn port(&self) -> u16 {
        self.process.port.expect("the server was set up on TCP")
    }

    /// The lines in the server's log that the module wrote, or a second load that has no name yet.
    pub fn module_log(&self) -> Vec<String> {
        let log = read_log(&self.dir);
        let ours = |line: &&str| line.contains("<rl>") || line.contains("<module>");
        log.lines().filter(ours).map(String::from).collect()
    }
}

/// The server's process; it never outlives its handle.
struct Process {
    child: Child,
    port: Option<u16>,
}

impl Process {
    fn start(dir: &Path, setup: &Setup) -> Process {
        if !setup.tcp {
            return Process::launch(dir, setup, None).unwrap_or_else(|| died(dir));
        }
        // A port that was free may be taken before the server binds it: then the server gives up.
        (0..10)
            .find_map(|_| Process::launch(dir, setup, Some(free_port())))
            .unwrap_or_else(|| died(dir))
    }

    /// `None` when the server gave up before it answered.
    fn launch(dir: &Path, setup: &Setup, port: Option<u16>) -> Option<Process> {
        let mut process = Process::spawn(dir, setup, port);
        process.wait_until_ready(dir).then_some(process)
    }

    fn spawn(dir: &Path, setup: &Setup, port: Option<u16>) -> Process {
        let _ = fs::remove_file(socket_path(dir));
        let log = File::options().create(true).append(true).open(log_path(dir)).unwrap();
        let child = server_command(setup)
            .args(base_options(dir, port))
            .args(&setup.options)
            .args(module_options(setup))
            .envs(setup.env.iter().cloned())
            .stdin(Stdio::null())
            .stderr(log.try_clone().unwrap())
            .stdout(log)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", server_binary()));
        Process { child, port }
    }

    fn wait_until_ready(&mut self, dir: &Path) -> bool {
        let start = Instant::now();
        while start.elapsed() < DEADLINE {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            if answers(dir) {
                let answering: u32 = Client::connect(dir).info("process_id").parse().unwrap();
                assert_eq!(answering, self.child.id(), "another server answers on this socket");
                return true;
            }
            thread::sleep(POLL_INTERVAL);
        }
        panic!("the server is not ready after {DEADLINE:?}; its log:\n{}", read_log(dir));
    }

    /// Lets the server exit, for only then a sanitizer looks for leaks; what it found fails the test.
    fn end_in_good_order(&mut self, dir: &Path) {
        if let Ok(mut connection) = open_connection(dir) {
            let _ = redis::cmd("SHUTDOWN").arg("NOSAVE").exec(&mut connection);
        }
        wait_until("the server's end", || self.child.try_wait().unwrap().is_some());
        let (status, log) = (self.child.wait().unwrap(), read_log(dir));
        let clean = status.success() && !log.contains(REPORT);
        assert!(clean, "the server ended with {status}; its log:\n{log}");
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Whether a server answers on the socket there. One that gives up takes connections before it does.
fn answers(dir: &Path) -> bool {
    open_connection(dir)
        .is_ok_and(|mut connection| redis::cmd("PING").exec(&mut connection).is_ok())
}

/// Waits until `condition` holds; fails the test when it does not come true.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "still waiting for {what} after {DEADLINE:?}");
        thread::sleep(POLL_INTERVAL);
    }
}

/// Whether the server under test is at least of this version.
pub fn server_is_at_least(major: u32, minor: u32) -> bool {
    static VERSION: OnceLock<(u32, u32)> = OnceLock::new();
    let version = VERSION.get_or_init(|| {
        let output = Command::new(server_binary()).arg("--version").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let digits = text.split_once("v=").unwrap_or_else(|| panic!("no version in {text:?}")).1;
        let mut parts = digits.split(['.', ' ']).map(|part| part.parse().unwrap());
        (parts.next().unwrap(), parts.next().unwrap())
    });
    *version >= (major, minor)
}

/// Says that the test, or the rest of it, is not for this server. `scripts/test-matrix.sh` counts this.
pub fn skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// Whether the server under test looks for memory errors: then its runtime knows this option.
pub fn server_is_sanitized() -> bool {
    static SANITIZED: OnceLock<bool> = OnceLock::new();
    *SANITIZED.get_or_init(|| {
        let mut server = Command::new(server_binary());
        let output = server.arg("--version").env("ASAN_OPTIONS", "help=1").output().unwrap();
        String::from_utf8_lossy(&output.stderr).contains("AddressSanitizer")
    })
}

/// What the server calls the encoding of a small sorted set or hash.
pub fn compact_encoding() -> &'static str {
    if server_is_at_least(7, 0) { "listpack" } else { "ziplist" }
}

/// The option that lets sorted sets of at most so many members be stored compactly.
pub fn compact_entries_option(most: u32) -> String {
    format!("zset-max-{}-entries {most}", compact_encoding())
}

/// The option that lets hashes of at most so many fields be stored compactly.
pub fn compact_fields_option(most: u32) -> String {
    format!("hash-max-{}-entries {most}", compact_encoding())
}

/// The absolute path of the module under test.
pub fn module_path() -> String {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let path = std::env::var("RL_MODULE").unwrap_or_else(|_| build_module());
        assert!(Path::new(&path).is_file(), "there is no module at {path}");
        path
    })
    .clone()
}

fn build_module() -> String {
    let target_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let status = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
        .args(["build", "--release", "--lib", "--target-dir"])
        .arg(target_dir)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the module does not build");
    target_dir.join("release/librl.so").to_str().unwrap().to_string()
}

/// Compiles a C file that lies beside these tests, into `dir`: the library's path.
pub fn shared_library(dir: &Path, source: &str) -> PathBuf {
    let library = dir.join(source).with_extension("so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server").join(source);
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-shared", "-fPIC", "-o"]).args([&library, &source]);
    let output = cc.output().expect("cc runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} does not compile:\n{errors}", source.display());
    library
}

/// The server under test.
pub fn server_binary() -> &'static str {
    static BINARY: OnceLock<String> = OnceLock::new();
    BINARY.get_or_init(|| {
        let runs = |name: &str| Command::new(name).arg("--version").output().is_ok();
        std::env::var("REDIS_SERVER").unwrap_or_else(|_| {
            let known = ["redis-server", "valkey-server"];
            let found = known.into_iter().find(|name| runs(name));
            found.expect("redis-server or valkey-server is installed").to_string()
        })
    })
}

fn server_command(setup: &Setup) -> Command {
    if !setup.outlives_full_files {
        return Command::new(server_binary());
    }
    // What is ignored here stays so in the program that takes the shell's place.
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"trap "" XFSZ && exec "$0" "$@""#, server_binary()]);
    shell
}

fn base_options(dir: &Path, port: Option<u16>) -> Vec<String> {
    let path = |path: PathBuf| path.to_str().expect("temporary paths are text").to_string();
    let port = port.unwrap_or(0).to_string();
    let mut options: Vec<String> = Vec::new();
    options.extend(["--port", &port, "--bind", "127.0.0.1"].map(String::from));
    options.extend([
        "--dir".into(),
        path(dir.into()),
        "--unixsocket".into(),
        path(socket_path(dir)),
    ]);
    options.extend(["--save", "", "--appendonly", "no"].map(String::from));
    if server_is_at_least(7, 0) {
        options.extend(
            ["--enable-module-command", "yes", "--enable-debug-command", "yes"].map(String::from),
        );
    }
    options
}

fn module_options(setup: &Setup) -> Vec<String> {
    let Some(module) = &setup.module else { return Vec::new() };
    let mut options = vec!["--loadmodule".into(), module.clone()];
    options.extend_from_slice(&setup.module_arguments);
    options
}

/// A directory of one server, or of a clock, removed with all that is in it.
pub struct Dir(PathBuf);

impl Dir {
    /// A new and empty one.
    pub fn fresh() -> Dir {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("rl-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        // Another process of the same number may have been ended before it could remove its own.
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir)
            .unwrap_or_else(|error| panic!("cannot create {}: {error}", dir.display()));
        Dir(dir)
    }
}

impl Deref for Dir {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A port that nobody listens on now.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Where the server in this directory listens.
pub fn socket_path(dir: &Path) -> PathBuf {
    dir.join("s.sock")
}

fn log_path(dir: &Path) -> PathBuf {
    dir.join("server.log")
}

/// What the server in this directory has logged.
pub fn read_log(dir: &Path) -> String {
    String::from_utf8_lossy(&fs::read(log_path(dir)).unwrap_or_default()).into_owned()
}

fn died(dir: &Path) -> ! {
    panic!("the server gave up at its start; its log:\n{}", read_log(dir))
}
