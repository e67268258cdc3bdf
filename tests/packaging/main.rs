//! What surrounds the module, used as its users use it: the make targets, the scripts behind them and
//! `redis.conf.example`.
//!
//! Nothing here waits for luck: ports are found free and given up if lost, servers are asked until they
//! answer or a deadline has passed, and what a test starts or writes is gone when it ends.

mod dist;

use redis::{Connection, ErrorKind, RedisResult};
use serial_test::file_serial;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const INSTALLED: &str = "/usr/lib/redis/modules/librl.so";
/// The user and group `nobody`, for what must not run as root.
const NOBODY: u32 = 65534;
/// For what should take a second; never waited for in full unless something is broken.
const SOON: Duration = Duration::from_secs(30);
/// For what may have to build the module first.
const AFTER_A_BUILD: Duration = Duration::from_secs(600);

// --- make install, make uninstall ----------------------------------------------------------------

#[test]
fn install_puts_an_executable_library_in_place_and_uninstall_takes_it_away() {
    let library = library();
    let stage = TempDir::new();
    // The strictest umask there is must not make a library that the server's user cannot read.
    let mut install = Command::new("sh");
    install.args(["-c", "umask 077; exec make \"$@\"", "sh", "install"]);
    let output = succeed(install.arg(stage.setting("DESTDIR", "")));

    let installed = stage.path(&INSTALLED[1..]);
    assert_eq!(fs::read(&installed).unwrap(), fs::read(library).unwrap());
    assert_eq!(mode(&installed), 0o755);
    for folder in ["usr", "usr/lib", "usr/lib/redis", "usr/lib/redis/modules"] {
        assert_eq!(mode(&stage.path(folder)), 0o755, "{folder}");
    }
    // The line to add names the place where the server will find it, not where it was staged.
    let line = format!("    loadmodule {INSTALLED}\n");
    assert!(output.contains(&line), "{output}");

    succeed(make("uninstall").arg(stage.setting("DESTDIR", "")));
    assert!(!installed.exists());
}

#[test]
fn install_obeys_prefix() {
    library();
    let stage = TempDir::new();
    let output = succeed(make("install").arg("PREFIX=/opt/it").arg(stage.setting("DESTDIR", "")));
    assert_eq!(mode(&stage.path("opt/it/lib/redis/modules/librl.so")), 0o755);
    assert!(output.contains("    loadmodule /opt/it/lib/redis/modules/librl.so\n"), "{output}");
}

#[test]
fn the_installed_library_loads_as_the_servers_own_user() {
    library();
    if id(&["-u"]) == Some(0) {
        return install_for_real_and_load();
    }
    eprintln!(
        "Not root: instead of installing to {INSTALLED} and loading as another user, only the mode is looked at."
    );
    let stage = TempDir::new();
    succeed(make("install").arg(stage.setting("DESTDIR", "")));
    assert_eq!(mode(&stage.path(&INSTALLED[1..])) & 0o005, 0o005, "others may read and execute it");
}

/// Debian's service runs as user `redis` and loads libraries from /usr/lib only, of which a machine has one.
#[file_serial(installed_library)]
fn install_for_real_and_load() {
    let _restored = Restored::new(INSTALLED);
    succeed(&mut make("install"));

    let user =
        ["redis", "valkey"].iter().find_map(|name| Some((id(&["-u", name])?, id(&["-g", name])?)));
    let (uid, gid) = user.unwrap_or((NOBODY, NOBODY));
    let folder = TempDir::new();
    chown(&folder.0, Some(uid), Some(gid)).unwrap();
    let socket = folder.path("s.sock");
    let mut server = Command::new(server_program());
    server.uid(uid).gid(gid).current_dir(&folder.0);
    server
        .args(["--port", "0", "--save", "", "--loadmodule", INSTALLED, "--unixsocket"])
        .arg(&socket);
    let mut job = Job::start(&mut server);

    let mut connection = job
        .connect(&format!("redis+unix://{}", socket.display()), SOON)
        .unwrap_or_else(|| panic!("the server stopped:\n{}", job.output()));
    let pong: String = redis::cmd("PING").query(&mut connection).unwrap();
    assert_eq!(pong, "PONG");
    assert_eq!(slide(&mut connection, "k", 5).unwrap()[0], 1);
    assert_eq!(fs::metadata(&socket).unwrap().uid(), uid, "it runs as the other user");
    job.signal("TERM");
    assert!(job.wait(SOON).success(), "{}", job.output());
}

// --- make run --------------------------------------------------------------------------------------

#[test]
fn run_starts_a_server_whose_limits_survive_its_restart() {
    let folder = TempDir::new();
    let run_dir = folder.setting("RUN_DIR", "data");

    // To the whole process group, as Ctrl-C does.
    for (signal, left) in [("INT", 4), ("TERM", 3)] {
        let (mut job, port, mut connection) = run(&[&run_dir], "");
        assert_eq!(slide(&mut connection, "user:42", 5).unwrap()[..3], [1, 5, left]);
        for (name, value) in [
            ("bind", "127.0.0.1"),
            ("appendonly", "yes"),
            ("maxmemory-policy", "noeviction"),
            ("dir", folder.path("data").to_str().unwrap()),
        ] {
            assert_eq!(config(&mut connection, name).unwrap(), value);
        }
        let next = format!("-p {port} RL.SLIDE user:42 60s 5\n");
        assert!(job.output().contains(&next), "it says what to type next:\n{}", job.output());

        job.signal(signal);
        job.wait(SOON);
        assert!(job.output().contains("bye bye"), "the server ended in order:\n{}", job.output());
        assert!(!job.is_alive(), "nothing is left running");
    }
    for litter in ["dump.rdb", "appendonlydir", "appendonly.aof"] {
        assert!(!Path::new(ROOT).join(litter).exists(), "{litter} in the checkout");
    }
}

#[test]
fn run_refuses_a_taken_port() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let output = fail(make("run").arg(format!("PORT={port}")));
    assert!(output.contains(&format!("Port {port} on 127.0.0.1 is taken")), "{output}");
    assert!(output.contains("make run PORT="), "it says what to do: {output}");
}

#[test]
fn run_refuses_what_is_no_port() {
    for port in ["0", "65536", "x", "", "63 79"] {
        let output = fail(make("run").arg(format!("PORT={port}")));
        assert!(output.contains(&format!("PORT={port} is not a port")), "{output}");
    }
}

#[test]
fn run_refuses_a_server_that_is_too_old_or_none() {
    let folder = TempDir::new();
    let started = folder.path("started");
    let server = |version: &str| {
        let script =
            format!("[ \"$1\" = --version ] || touch '{}'\necho '{version}'", started.display());
        folder.script("server", &script);
        folder.setting("REDIS_SERVER", "server")
    };
    for version in ["6.2.1", "6.0.16", "5.0.14"] {
        let output = run_fails(&server(&format!(
            "Redis server v={version} sha=00000000:0 malloc=jemalloc-5.2.1 bits=64"
        )));
        assert!(output.contains(&format!("is version {version}, which is too old")), "{output}");
        assert!(output.contains("6.2.2") && output.contains("make run REDIS_SERVER="), "{output}");
    }
    for nonsense in [server("Hello"), folder.setting("REDIS_SERVER", "nowhere")] {
        let output = run_fails(&nonsense);
        assert!(output.contains("is it a redis-server?"), "{output}");
    }
    assert!(!started.exists());
}

// --- redis.conf.example ----------------------------------------------------------------------------

#[test]
fn the_settings_that_are_off_in_the_example_work_when_turned_on() {
    let folder = TempDir::new();
    let example = fs::read_to_string(Path::new(ROOT).join("redis.conf.example")).unwrap();
    let mut turned_on = 0;
    let mut text = String::from("user admin on nopass allkeys allchannels allcommands\n");
    for line in example.lines() {
        let setting = line
            .strip_prefix('#')
            .filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
        turned_on += usize::from(setting.is_some());
        text.push_str(setting.unwrap_or(line));
        text.push('\n');
    }
    assert_eq!(turned_on, 4, "the log's bound, notifications, the user, the default user");
    fs::write(folder.path("all.conf"), text).unwrap();

    let settings = [folder.setting("CONF", "all.conf"), folder.setting("RUN_DIR", "data")];
    let (mut job, port, mut admin) = run(&[&settings[0], &settings[1]], "admin:any@");
    let mut connect =
        |login: &str| job.connect(&format!("redis://{login}127.0.0.1:{port}"), SOON).unwrap();

    // The limiter's user may do the one thing it is for.
    let mut limiter = connect("limiter:change-me@");
    assert_eq!(slide(&mut limiter, "rl:x", 1).unwrap()[0], 1);
    assert_no_permission(slide(&mut limiter, "other", 1));
    for forbidden in [
        &["GET", "rl:x"][..],
        &["DEL", "rl:x"],
        &["ZRANGE", "rl:x", "0", "-1"],
        &["CONFIG", "GET", "dir"],
        &["PUBLISH", "c", "m"],
    ] {
        let mut command = redis::cmd(forbidden[0]);
        assert_no_permission(command.arg(&forbidden[1..]).query::<redis::Value>(&mut limiter));
    }
    // Nobody gets in without a name.
    let stranger = slide(&mut connect(""), "rl:x", 1).unwrap_err();
    assert_eq!(stranger.code(), Some("NOAUTH"), "{stranger}");

    // Each denial is published, the key being the message.
    admin.set_read_timeout(Some(SOON)).unwrap();
    let mut watching = admin.as_pubsub();
    watching.psubscribe("__keyevent@*__:rl.denied").unwrap();
    assert_eq!(slide(&mut limiter, "rl:x", 1).unwrap()[0], 0);
    let message = watching.get_message().unwrap();
    assert_eq!(message.get_channel_name(), "__keyevent@0__:rl.denied");
    assert_eq!(message.get_payload::<String>().unwrap(), "rl:x");

    job.signal("TERM");
    job.wait(SOON);
}

// --- scripts/setup.sh, on machines that are made up ------------------------------------------------

#[test]
fn setup_says_what_to_install_where_it_cannot() {
    let machine = Machine::new();
    let output = fail(&mut machine.setup(&["cc", "server"]));
    assert!(output.contains("there is no apt-get here"), "{output}");
    assert!(output.contains("gcc libc6-dev redis-server"), "{output}");

    // There is apt-get, but the user may not use it.
    machine.fake("apt-get", "exit 0");
    let output = fail(as_nobody(&mut machine.setup(&["cc", "server"])));
    assert!(output.contains("without root or sudo"), "{output}");
    assert!(output.contains("gcc libc6-dev redis-server"), "{output}");
    assert_eq!(machine.calls(), "");

    machine.fake("apt-get", "exit 100");
    machine.fake("sudo", "exec \"$@\"");
    let output = fail(&mut machine.setup(&["cc", "server"]));
    assert!(output.contains("apt-get failed"), "{output}");
    assert!(output.contains("gcc libc6-dev redis-server"), "{output}");

    fs::remove_file(machine.0.path("bin/cargo")).unwrap();
    let output = fail(&mut machine.setup(&["cc"]));
    assert!(output.contains("Rust is missing"), "{output}");
}

#[test]
fn setup_installs_what_is_missing_and_says_so() {
    let machine = Machine::new();
    machine.fake("apt-get", "exit 0");
    machine.fake("sudo", "exec \"$@\"");
    machine.fake("systemctl", "exit 0"); // called where systemd runs, once the server is installed
    let output = succeed(&mut machine.setup(&["cc", "server"]));
    assert!(
        output.contains("Installing what is missing: gcc libc6-dev redis-server\n"),
        "{output}"
    );
    let wanted = "apt-get update -qq\napt-get install -y -q --no-install-recommends gcc libc6-dev redis-server\n";
    assert!(machine.calls_without_sudo().starts_with(wanted), "{}", machine.calls());
}

#[test]
fn setup_is_silent_where_nothing_is_missing() {
    for server in ["redis-server", "valkey-server"] {
        let machine = Machine::new();
        for program in ["apt-get", "sudo", "cc", server] {
            machine.fake(program, "exit 0");
        }
        assert_eq!(
            succeed(machine.setup(&["cc", "libclang", "server"]).env("LIBCLANG_PATH", "/anywhere")),
            ""
        );
        assert_eq!(machine.calls(), "");
    }
}

// --- The harness -----------------------------------------------------------------------------------

/// The library that `make build` makes. `make test`, which sets RL_MODULE, has just built it.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        if std::env::var_os("RL_MODULE").is_none() {
            succeed(&mut make("build"));
        }
        let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into());
        let library = Path::new(ROOT).join(target).join("release/librl.so");
        assert!(library.is_file(), "{} is missing: run make build", library.display());
        library
    })
}

/// The server that `make` would take.
fn server_program() -> String {
    std::env::var("REDIS_SERVER").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| {
        let choice = "command -v redis-server || command -v valkey-server";
        succeed(Command::new("sh").args(["-c", choice])).trim().to_owned()
    })
}

fn make(target: &str) -> Command {
    let mut make = Command::new("make");
    make.arg(target);
    make
}

/// `make run` with these settings on a free port, once it answers.
fn run(settings: &[&str], login: &str) -> (Job, u16, Connection) {
    for _ in 0..5 {
        // Free now; whoever takes it before the server does sends us round again.
        let port = free_port();
        let mut job = Job::start(make("run").arg(format!("PORT={port}")).args(settings));
        match job.connect(&format!("redis://{login}127.0.0.1:{port}"), AFTER_A_BUILD) {
            Some(connection) => return (job, port, connection),
            None => assert!(lost_its_port(&job.output()), "the server stopped:\n{}", job.output()),
        }
    }
    panic!("no port stays free");
}

/// What `make run` says as it fails, with this setting on a free port.
fn run_fails(setting: &str) -> String {
    for _ in 0..5 {
        let output = fail(make("run").arg(format!("PORT={}", free_port())).arg(setting));
        if !lost_its_port(&output) {
            return output;
        }
    }
    panic!("no port stays free");
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn lost_its_port(output: &str) -> bool {
    output.contains("is taken") || output.contains("Address already in use")
}

fn slide(connection: &mut Connection, key: &str, limit: u32) -> RedisResult<Vec<i64>> {
    redis::cmd("RL.SLIDE").arg(key).arg("60s").arg(limit).query(connection)
}

fn config(connection: &mut Connection, name: &str) -> RedisResult<String> {
    let (_, value): (String, String) =
        redis::cmd("CONFIG").arg("GET").arg(name).query(connection)?;
    Ok(value)
}

#[track_caller]
fn assert_no_permission<T>(result: RedisResult<T>) {
    assert_eq!(result.err().expect("it was allowed").code(), Some("NOPERM"));
}

#[track_caller]
fn succeed(command: &mut Command) -> String {
    let (status, output) = Job::start(command).finish();
    assert!(status.success(), "{command:?} failed, {status}:\n{output}");
    output
}

#[track_caller]
fn fail(command: &mut Command) -> String {
    let (status, output) = Job::start(command).finish();
    assert!(!status.success(), "{command:?} should have failed:\n{output}");
    output
}

/// What `id` answers, if it knows the user.
fn id(arguments: &[&str]) -> Option<u32> {
    let output = Command::new("id").args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().ok()
}

/// Run by root, a command loses root's rights; run by another user, it has none to lose.
fn as_nobody(command: &mut Command) -> &mut Command {
    match id(&["-u"]) {
        Some(0) => command.uid(NOBODY).gid(NOBODY),
        _ => command,
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).mode() & 0o7777
}

/// A command in a process group of its own, in the checkout, which does not outlive this value.
struct Job {
    child: Child,
    log: TempDir,
    status: Option<ExitStatus>,
}

impl Job {
    fn start(command: &mut Command) -> Job {
        let log = TempDir::new();
        let output = File::create(log.path("output")).unwrap();
        // A make above us has settings of its own, which are not for the one that is tested.
        for variable in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"] {
            command.env_remove(variable);
        }
        if command.get_current_dir().is_none() {
            command.current_dir(ROOT);
        }
        command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Job { child, log, status: None }
    }

    fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.log.path("output")).unwrap()).into_owned()
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().unwrap();
        }
        self.status
    }

    #[track_caller]
    fn wait(&mut self, limit: Duration) -> ExitStatus {
        let deadline = Instant::now() + limit;
        loop {
            match self.ended() {
                Some(status) => return status,
                None if Instant::now() > deadline => panic!("it does not end:\n{}", self.output()),
                None => sleep(Duration::from_millis(10)),
            }
        }
    }

    #[track_caller]
    fn finish(mut self) -> (ExitStatus, String) {
        (self.wait(AFTER_A_BUILD), self.output())
    }

    /// A connection to the server that this job is or has started, or `None` if the job ends first.
    #[track_caller]
    fn connect(&mut self, url: &str, limit: Duration) -> Option<Connection> {
        let client = redis::Client::open(url).unwrap();
        let deadline = Instant::now() + limit;
        loop {
            if self.ended().is_some() {
                return None;
            }
            // A server that is still loading its data accepts and refuses to work.
            let loaded =
                client.get_connection_with_timeout(SOON).and_then(
                    |mut connection| match redis::cmd("PING").query::<String>(&mut connection) {
                        Err(error)
                            if error.kind()
                                == ErrorKind::Server(redis::ServerErrorKind::BusyLoading) =>
                        {
                            Err(error)
                        }
                        _ => Ok(connection),
                    },
                );
            match loaded {
                Ok(connection) => return Some(connection),
                Err(error) if Instant::now() > deadline => {
                    panic!("{url}: {error}\n{}", self.output())
                }
                Err(_) => sleep(Duration::from_millis(10)),
            }
        }
    }

    fn signal(&self, name: &str) -> bool {
        let kill = format!("kill -s {name} -- -{}", self.child.id());
        Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status().unwrap().success()
    }

    /// Whether anything of its process group lives.
    fn is_alive(&self) -> bool {
        self.signal("0")
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.signal("KILL");
            let _ = self.child.wait();
        }
    }
}

/// A machine on which there is nothing but Rust, and what a test adds. No real program can be reached
/// from there, so that nothing is ever installed on this one.
struct Machine(TempDir);

impl Machine {
    fn new() -> Machine {
        let machine = Machine(TempDir::new());
        fs::create_dir(machine.0.path("bin")).unwrap();
        // A copy, as the checkout may be in a place that other users cannot read.
        fs::copy(Path::new(ROOT).join("scripts/setup.sh"), machine.0.path("setup.sh")).unwrap();
        for program in ["bash", "env"] {
            symlink(Path::new("/usr/bin").join(program), machine.0.path("bin").join(program))
                .unwrap();
        }
        machine.fake("cargo", "exit 0");
        machine
    }

    /// A program that does as the script says and leaves a note of having been called.
    fn fake(&self, program: &str, script: &str) {
        let calls = self.0.path("calls");
        let note = format!("echo \"{program} $*\" >> '{}'\n{script}", calls.display());
        self.0.script(&format!("bin/{program}"), &note);
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.0.path("calls")).unwrap_or_default()
    }

    fn calls_without_sudo(&self) -> String {
        self.calls()
            .lines()
            .filter(|call| !call.starts_with("sudo "))
            .map(|call| format!("{call}\n"))
            .collect()
    }

    fn setup(&self, things: &[&str]) -> Command {
        let mut setup = Command::new("/bin/bash");
        setup.env_clear().env("PATH", self.0.path("bin")).current_dir(&self.0.0);
        setup.arg("setup.sh").args(things);
        setup
    }
}

/// A folder of its own, gone with this value.
struct TempDir(PathBuf);

impl TempDir {
    fn new() -> TempDir {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("redis-rl-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().canonicalize().unwrap().join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        TempDir(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// `NAME=path`, as make takes it.
    fn setting(&self, name: &str, path: &str) -> String {
        format!("{name}={}", self.path(path).display())
    }

    fn script(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A file, and the folders above it, that will be as they were when this value is gone.
struct Restored {
    path: PathBuf,
    before: Option<(Vec<u8>, Permissions)>,
    new_folders: Vec<PathBuf>,
}

impl Restored {
    fn new(path: impl AsRef<OsStr>) -> Restored {
        let path = PathBuf::from(path.as_ref());
        let before = path
            .exists()
            .then(|| (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().permissions()));
        let new_folders = path
            .ancestors()
            .skip(1)
            .filter(|folder| !folder.exists())
            .map(Path::to_owned)
            .collect();
        Restored { path, before, new_folders }
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        // A new file instead of new content: somebody's server may have the library mapped.
        let _ = fs::remove_file(&self.path);
        if let Some((content, permissions)) = self.before.take() {
            let _ = fs::write(&self.path, content);
            let _ = fs::set_permissions(&self.path, permissions);
        }
        for folder in &self.new_folders {
            let _ = fs::remove_dir(folder);
        }
    }
}
