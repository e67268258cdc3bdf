//! A fault before each write of a call: a panic, and a write that the server refuses.
//!
//! The module is a build with such faults in it. Whatever the step, the client gets an error, the server
//! lives, the key is closed, and the key, its replica and the AOF are as one.

use std::fs;
use std::path::PathBuf;

use crate::broken::build;
use crate::client::Client;
use crate::dataset::contents;
use crate::harness::{Server, Setup};
use crate::replication::{replica_of, wait_for_replicas};

/// A call that writes in several steps, and what it finds.
struct Case {
    what: &'static str,
    /// Calls and commands before it, of the key `KEY`.
    before: &'static [&'static str],
    call: &'static str,
    /// Writes to the key that it takes.
    writes: u32,
}

const CASES: [Case; 13] = [
    Case { what: "a new log", before: &[], call: "RL.SLIDE KEY 1h 5", writes: 2 },
    Case {
        what: "an admission",
        before: &["RL.SLIDE KEY 1h 5"],
        call: "RL.SLIDE KEY 1h 5",
        writes: 1,
    },
    Case {
        what: "an expiry that is due",
        before: &["RL.SLIDE KEY 1h 5"],
        call: "RL.SLIDE KEY 2h 5",
        writes: 2,
    },
    Case {
        what: "a merge",
        before: &["RL.SLIDE KEY 1h 5 PRECISION 1h AT 3600000"],
        call: "RL.SLIDE KEY 1h 5 PRECISION 1h AT 3600000",
        writes: 2,
    },
    Case {
        what: "a trim",
        before: &[
            "RL.SLIDE KEY 1h 5 AT 1000000",
            "RL.SLIDE KEY 1h 5 AT 1000001",
            "RL.SLIDE KEY 1h 5 AT 1000002",
        ],
        call: "RL.SLIDE KEY 1h 5 AT 4600002",
        writes: 4,
    },
    Case {
        what: "a log from far ahead",
        before: &["RL.SLIDE KEY 1h 5 AT AHEAD"],
        call: "RL.SLIDE KEY 1h 5",
        writes: 3,
    },
    Case {
        what: "a forced charge",
        before: &["RL.SLIDE KEY 1h 1"],
        call: "RL.SLIDE KEY 1h 1 FORCE",
        writes: 1,
    },
    Case {
        what: "a refund of entries and a part of one",
        before: &["RL.SLIDE KEY 1h 50 COST 9", "RL.SLIDE KEY 1h 50", "RL.SLIDE KEY 1h 50 COST 2"],
        call: "RL.REFUND KEY 5",
        writes: 4,
    },
    Case {
        what: "a refund of the whole log",
        before: &["RL.SLIDE KEY 1h 5", "RL.SLIDE KEY 1h 5"],
        call: "RL.REFUND KEY 9",
        writes: 2,
    },
    Case { what: "new counters", before: &[], call: "RL.SWC KEY 1h 5 2h 9", writes: 3 },
    Case {
        what: "counters that run",
        before: &["RL.SWC KEY 1h 5 2h 9 AT 7200000"],
        call: "RL.SWC KEY 1h 5 2h 9 AT 7200000",
        writes: 2,
    },
    Case {
        what: "counters beside one that has passed",
        before: &["RL.SWC KEY 1h 5 1m 9 AT 7200000"],
        call: "RL.SWC KEY 1h 5 AT 10800000",
        writes: 3,
    },
    Case {
        what: "a refund of counters",
        before: &["RL.SWC KEY 1h 5 2h 9 AT 3600000", "RL.SWC KEY 1h 5 2h 9 AT 7200000"],
        call: "RL.REFUND KEY 2 AT 7200000",
        writes: 4,
    },
];

/// How a write goes wrong, and what the client is told.
const FAULTS: [(&str, &str); 2] =
    [("panic", "ERR internal error"), ("fail", "ERR the server refused a write")];

/// A primary with the broken module, a replica without any, and the file that orders a fault.
struct Bench {
    primary: Server,
    replica: Server,
    order: PathBuf,
}

impl Bench {
    fn start(name: &str) -> Bench {
        let order = std::env::temp_dir().join(format!("rl-fault-{}-{name}", std::process::id()));
        let setup = Setup::new()
            .module_file(&build::module())
            .env("RL_FAULT_FILE", order.clone())
            .option("repl-diskless-sync-delay 0");
        let primary = setup.with_aof().on_tcp().start();
        let replica = replica_of(&primary, Setup::new().without_module());
        Bench { primary, replica, order }
    }

    /// Runs `call` with a fault ordered at the write behind `writes` others; says whether it struck.
    fn with_fault<T>(&self, kind: &str, writes: u32, call: impl FnOnce(&Server) -> T) -> (T, bool) {
        fs::write(&self.order, format!("{kind} {writes}")).unwrap();
        let answer = call(&self.primary);
        (answer, fs::remove_file(&self.order).is_err())
    }

    fn panics(&self) -> u64 {
        self.primary.info("rl_panics").parse().unwrap()
    }

    /// Fails unless the replica holds what the primary does.
    fn compare(&self, what: &str) {
        wait_for_replicas(&self.primary, 1);
        assert_eq!(contents(&self.replica), contents(&self.primary), "{what}");
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.order);
    }
}

impl Case {
    /// A line of the case, of a key and the times of this server.
    fn line(line: &str, key: &str, server: &Client) -> String {
        let ahead_ms = server.now() + 36_000_000;
        line.replace("KEY", key).replace("AHEAD", &ahead_ms.to_string())
    }

    /// Runs the call with a fault behind `writes` writes; says whether there was such a write.
    fn strike(&self, bench: &Bench, (kind, error): (&str, &str), writes: u32) -> bool {
        let Bench { primary, .. } = bench;
        let key = format!("{}:{kind}:{writes}", self.what.replace(' ', "-"));
        let what = format!("{key}: {}", self.call);
        self.before.iter().for_each(|line| primary.does(&Case::line(line, &key, primary)));
        let mut watcher = primary.wire();
        for line in [format!("WATCH {key}"), "MULTI".into(), "PING".into()] {
            watcher.ask(&line);
        }
        let panics = bench.panics();

        let call = Case::line(self.call, &key, primary);
        let (answer, struck) = bench.with_fault(kind, writes, |primary| primary.try_run(&call));
        bench.compare(&what);
        let panicked = u64::from(struck && kind == "panic");
        assert_eq!(bench.panics(), panics + panicked, "{what}");
        let answered = answer.map(drop).map_err(|said| said.starts_with(error));
        assert_eq!(answered, if struck { Err(true) } else { Ok(()) }, "{what}");
        // Whoever watches the key is told of what was written before the fault.
        let told = watcher.ask("EXEC") == "*-1\r\n";
        assert_eq!(told, writes > 0 || !struck, "{what}");

        // The limiter goes on, and no key stays for ever.
        primary.does(&call);
        bench.compare(&what);
        assert_ne!(primary.expiry(&key), -1, "{what}: no expiry");
        struck
    }
}

#[test]
fn at_each_step_of_each_call() {
    let mut bench = Bench::start("steps");
    for case in CASES {
        for fault in FAULTS {
            let steps = (0..).take_while(|writes| case.strike(&bench, fault, *writes));
            assert_eq!(steps.count() as u32, case.writes, "{} with a {}", case.what, fault.0);
        }
    }
    let panics: u32 = CASES.iter().map(|case| case.writes).sum();
    assert_eq!(bench.panics(), u64::from(panics));
    let logged = bench.primary.module_log();
    assert_eq!(logged.iter().filter(|line| line.contains("a bug: rl.")).count(), panics as usize);

    let before = contents(&bench.primary);
    bench.primary.restart(Setup::new().without_module().with_aof());
    assert_eq!(contents(&bench.primary), before, "what the AOF holds");
}

#[test]
fn inside_a_transaction_and_a_script() {
    let bench = Bench::start("inside");
    for (kind, error) in FAULTS {
        let (answer, struck) = bench.with_fault(kind, 1, |primary| {
            let mut wire = primary.wire();
            for line in ["MULTI", "RL.SLIDE k 1h 5", "SET other v"] {
                wire.ask(line);
            }
            let answer = wire.ask("EXEC");
            assert_eq!(wire.ask("WAIT 1 100000"), ":1\r\n");
            answer
        });
        assert!(struck && answer.starts_with(&format!("*2\r\n-{error}")), "{answer}");
        assert!(answer.ends_with("+OK\r\n"), "{answer}");
        bench.compare("a transaction");

        let script = "local answer = redis.pcall('RL.SLIDE', 's', '1h', '5') \
                      redis.call('SET', 'after', 'v') return answer";
        let (answer, struck) =
            bench.with_fault(kind, 1, |primary| primary.try_args(&["EVAL", script, "0"]));
        assert!(struck && answer.is_err_and(|said| said.contains(error)), "a script");
        bench.compare("a script");
        bench.primary.does("DEL k s");
    }
}
