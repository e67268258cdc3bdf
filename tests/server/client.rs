//! A connection to the server, spoken to in lines as one would type them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use redis::{ConnectionAddr, FromRedisValue, IntoConnectionInfo, Value};

use crate::harness::{read_log, server_is_at_least, skipped, socket_path};

/// No answer takes longer; a server that hangs fails the test instead of holding it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// A connection. Every method that can fail stops the test and shows the server's log.
pub struct Client {
    connection: RefCell<redis::Connection>,
    dir: PathBuf,
}

impl Client {
    /// Connects to the server in `dir`.
    pub fn connect(dir: &Path) -> Client {
        Client::try_connect(dir)
            .unwrap_or_else(|| panic!("cannot connect; the log:\n{}", read_log(dir)))
    }

    /// Connects if the server is there.
    pub fn try_connect(dir: &Path) -> Option<Client> {
        let connection = open_connection(dir).ok()?;
        Some(Client { connection: RefCell::new(connection), dir: dir.into() })
    }

    /// Sends arguments as they are. An error is the text as the server sent it.
    pub fn try_args<A: AsRef<[u8]>>(&self, args: &[A]) -> Result<Value, String> {
        let mut command = redis::Cmd::new();
        for arg in args {
            command.arg(arg.as_ref());
        }
        let answer = command.query::<Value>(&mut *self.connection.borrow_mut());
        answer.map_err(|error| match (error.code(), error.detail()) {
            (Some(code), Some(detail)) => format!("{code} {detail}"),
            (Some(code), None) => code.to_string(),
            (None, _) => self.lost(&error.to_string()),
        })
    }

    /// Sends the words of a line.
    pub fn try_run(&self, line: &str) -> Result<Value, String> {
        self.try_args(&line.split_ascii_whitespace().collect::<Vec<_>>())
    }

    /// Sends arguments as they are; an error fails the test.
    pub fn args<T: FromRedisValue>(&self, args: &[impl AsRef<[u8]>]) -> T {
        let answer = self.try_args(args).unwrap_or_else(|error| {
            let sent: Vec<_> =
                args.iter().map(|arg| String::from_utf8_lossy(arg.as_ref())).collect();
            panic!("{sent:?} was answered: {error}")
        });
        redis::from_redis_value(answer).expect("an answer of the type asked for")
    }

    /// Sends the words of a line; an error fails the test.
    pub fn run<T: FromRedisValue>(&self, line: &str) -> T {
        self.args(&line.split_ascii_whitespace().collect::<Vec<_>>())
    }

    /// Sends the words of a line for their effect; an error fails the test.
    pub fn does(&self, line: &str) {
        let _: Value = self.run(line);
    }

    /// Sends the words of a line and expects an error: its text.
    pub fn error(&self, line: &str) -> String {
        match self.try_run(line) {
            Err(error) => error,
            Ok(answer) => panic!("{line:?} was answered without an error: {answer:?}"),
        }
    }

    /// A command with a verdict, as the words of a line: the six fields.
    pub fn verdict(&self, line: &str) -> [i64; 6] {
        let answer = self.try_run(line);
        six_fields(answer.unwrap_or_else(|error| panic!("{line} was answered: {error}")))
    }

    /// `RL.SLIDE` with the words of a line: the six fields.
    pub fn slide(&self, line: &str) -> [i64; 6] {
        self.verdict(&format!("RL.SLIDE {line}"))
    }

    /// `RL.SWC` with the words of a line: the six fields.
    pub fn swc(&self, line: &str) -> [i64; 6] {
        self.verdict(&format!("RL.SWC {line}"))
    }

    /// `RL.PEEK` with the words of a line: the six fields.
    pub fn peek(&self, line: &str) -> [i64; 6] {
        self.verdict(&format!("RL.PEEK {line}"))
    }

    /// `RL.REFUND` with the words of a line: the units taken back, which must be an integer.
    pub fn refund(&self, line: &str) -> i64 {
        match self.try_run(&format!("RL.REFUND {line}")) {
            Ok(Value::Int(units)) => units,
            other => panic!("RL.REFUND {line} was answered: {other:?}"),
        }
    }

    /// The members of a sorted set, each as `score member`.
    pub fn entries(&self, key: &str) -> Vec<String> {
        let flat: Vec<String> = self.run(&format!("ZRANGE {key} 0 -1 WITHSCORES"));
        flat.chunks(2).map(|pair| format!("{} {}", pair[1], pair[0])).collect()
    }

    /// Puts entries, each as `score member`, into a sorted set, past the module.
    pub fn plant(&self, key: &str, entries: &[impl AsRef<str>]) {
        for batch in entries.chunks(500) {
            let pairs: Vec<&str> = batch.iter().map(AsRef::as_ref).collect();
            let added: usize = self.run(&format!("ZADD {key} {}", pairs.join(" ")));
            assert_eq!(added, batch.len(), "each planted entry is new");
        }
    }

    /// The counters in a hash, each as `window start current previous`, the shortest window first.
    pub fn counters(&self, key: &str) -> Vec<String> {
        let mut fields: BTreeMap<String, String> = self.run(&format!("HGETALL {key}"));
        let names = fields.keys().filter_map(|name| name.strip_suffix(":start"));
        let mut windows: Vec<u64> = names.map(|window| window.parse().unwrap()).collect();
        windows.sort();
        let mut counters = Vec::new();
        for window in windows {
            let mut take = |part: &str| fields.remove(&format!("{window}:{part}")).unwrap();
            let parts = ["start", "current", "previous"].map(&mut take);
            counters.push(format!("{window} {}", parts.join(" ")));
        }
        assert!(fields.is_empty(), "fields of no counter: {fields:?}");
        counters
    }

    /// Puts counters, each as `window start current previous`, into a hash, past the module.
    pub fn plant_counters(&self, key: &str, counters: &[impl AsRef<str>]) {
        for counter in counters {
            let words: Vec<&str> = counter.as_ref().split(' ').collect();
            let [window, start, current, previous] = words[..] else {
                panic!("no counter: {words:?}")
            };
            let added: i64 = self.run(&format!(
                "HSET {key} {window}:start {start} {window}:current {current} {window}:previous {previous}"
            ));
            assert_eq!(added, 3, "each planted counter is new");
        }
    }

    /// The server's clock in Unix milliseconds.
    pub fn now(&self) -> i64 {
        let [seconds, micros]: [i64; 2] = self.run("TIME");
        seconds * 1000 + micros / 1000
    }

    /// When a key expires, in Unix milliseconds; -1 never, -2 when there is no key.
    pub fn expiry(&self, key: impl AsRef<[u8]>) -> i64 {
        if server_is_at_least(7, 0) {
            return self.args(&[b"PEXPIRETIME", key.as_ref()]);
        }
        // Older servers tell only the time left, which says when only if the clock stands meanwhile.
        loop {
            let before = self.now();
            match self.args::<i64>(&[b"PTTL", key.as_ref()]) {
                left @ ..0 => return left,
                left if self.now() == before => return before + left,
                _ => {}
            }
        }
    }

    /// A field of `INFO everything`.
    pub fn info(&self, field: &str) -> String {
        let info: String = self.run("INFO everything");
        let mut lines = info.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(name, _)| *name == field);
        found.unwrap_or_else(|| panic!("no {field} in INFO")).1.to_string()
    }

    /// Whether the server is without something, told by a command that came with it, such as `eval_ro`
    /// or `command|docs`. Says so if it is: there is nothing to test then.
    pub fn lacks(&self, what: &str, command: &str) -> bool {
        let found: Vec<Value> = self.run(&format!("COMMAND INFO {command}"));
        let lacks = found == [Value::Nil];
        if lacks {
            skipped(&format!("the server has no {what}"));
        }
        lacks
    }

    /// Whether the server is a node of a cluster, which forbids this. Says so if it is: there is nothing to
    /// test then.
    pub fn forbids(&self, what: &str) -> bool {
        let forbids = self.info("cluster_enabled") == "1";
        if forbids {
            skipped(&format!("a cluster forbids {what}"));
        }
        forbids
    }

    /// How many changes an RDB save would have to catch up with.
    pub fn dirty(&self) -> i64 {
        self.info("rdb_changes_since_last_save").parse().unwrap()
    }

    /// The names of the commands that the server has run, in lower case.
    pub fn commands_run(&self) -> Vec<String> {
        let info: String = self.run("INFO commandstats");
        let names = info.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(':'));
        names.map(|(name, _)| name.to_string()).collect()
    }

    fn lost(&self, error: &str) -> ! {
        panic!("the connection is lost: {error}; the server's log:\n{}", read_log(&self.dir))
    }
}

/// A plain connection of the client library, for what a [`Client`] does not do.
pub fn open_connection(dir: &Path) -> redis::RedisResult<redis::Connection> {
    let info = ConnectionAddr::Unix(socket_path(dir)).into_connection_info()?;
    let plain = info.redis_settings().clone().set_skip_set_lib_name();
    let connection = redis::Client::open(info.set_redis_settings(plain))?.get_connection()?;
    connection.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    Ok(connection)
}

/// A reply must be six integers and nothing else.
pub fn six_fields(answer: Value) -> [i64; 6] {
    let Value::Array(fields) = &answer else { panic!("no array: {answer:?}") };
    let integers: Vec<i64> = fields
        .iter()
        .map(|field| match field {
            Value::Int(integer) => *integer,
            other => panic!("no integer: {other:?} in {answer:?}"),
        })
        .collect();
    integers.try_into().unwrap_or_else(|_| panic!("not six fields: {answer:?}"))
}
