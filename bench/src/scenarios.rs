//! What `make bench` times: contenders side by side, in one table.

use crate::contenders::*;
use crate::workloads::*;

/// Contenders that are timed in turn, each on a server of its own.
pub struct Scenario {
    /// As it is called in tables.
    pub name: &'static str,
    /// Who is put to what.
    pub pairs: Vec<Pair>,
    /// How many calls are sent before a reply is read.
    pub pipelines: &'static [u64],
    /// Lines of the servers' configuration.
    pub options: &'static [&'static str],
    /// For every so many calls of other scenarios there is one of this: its calls take long.
    pub calls_to_one: u64,
    /// Whether each server has a replica.
    pub replica: bool,
}

/// A contender and its workload.
pub type Pair = (&'static Contender, Workload);

/// The sizes of logs.
pub const SIZES: [u64; 6] = [10, 100, 1_000, 10_000, 100_000, 1_000_000];

const BOTH: &[u64] = &[1, 50];
const DEEP: &[u64] = &[50];

/// All of them.
pub fn all() -> Vec<Scenario> {
    let logs = [&SLIDE, &LUA_LOG, &CLASSIC, &MULTI];
    let counters = [&SWC, &LUA_COUNTER, &THROTTLE, &INCR];
    let mut all = vec![
        scenario(
            "admitted",
            BOTH,
            [each(&logs, &SPREAD), each(&[&THROTTLE, &INCR, &PING], &COUNTED)],
        ),
        scenario("steady", BOTH, [each(&logs, &STEADY), each(&[&THROTTLE, &INCR], &COUNTED)]),
        scenario("steady listpack", DEEP, [each(&logs, &STEADY_LISTPACK)]),
        scenario(
            "denied",
            BOTH,
            [
                each(&[&SLIDE, &PEEK, &LUA_LOG, &CLASSIC], &DENIED),
                each(&[&THROTTLE], &COUNTED_OUT),
                each(&[&INCR, &PING], &COUNTED),
            ],
        ),
        scenario("counter admitted", BOTH, [each(&counters, &COUNTED)]),
        scenario("counter denied", BOTH, [each(&counters[..3], &COUNTED_OUT)]),
        scenario("one hot key", DEEP, [each(&logs, &GROWING)]),
        Scenario {
            calls_to_one: 50,
            ..scenario(
                "cost 500",
                DEEP,
                [each(&[&SLIDE, &LUA_LOG], &STEADY_500), each(&[&SWC, &THROTTLE], &COUNTED_500)],
            )
        },
        scenario(
            "one window and three",
            DEEP,
            [
                each(&[&SLIDE], &GROWING),
                each(&[&SLIDE], &GROWING_THREE),
                each(&[&SWC], &COUNTED),
                each(&[&SWC], &COUNTED_THREE),
            ],
        ),
        Scenario {
            options: &["appendonly yes", "appendfsync everysec"],
            ..scenario("AOF everysec", DEEP, written())
        },
        Scenario { replica: true, ..scenario("with a replica", DEEP, written()) },
    ];
    for (name, keys) in [("a thousand keys", 1_000), ("a million keys", 1_000_000)] {
        let denied = Workload { keys: Keys::Among(keys), ..DENIED_SMALL };
        let counted = Workload { keys: Keys::Among(keys), ..COUNTED };
        let logs = each(&[&SLIDE, &LUA_LOG], &denied);
        all.push(scenario(name, DEEP, [logs, each(&counters, &counted)]));
    }
    for entries in SIZES {
        let name = format!("a log of {entries}").leak();
        let pairs = [
            each(&[&SLIDE, &LUA_LOG], &denied_by(entries)),
            each(&[&SLIDE, &LUA_LOG], &steady_at(entries)),
        ];
        all.push(scenario(name, DEEP, pairs));
    }
    all
}

/// What writes, which is what the AOF and replicas are told of.
fn written() -> [Vec<Pair>; 2] {
    [each(&[&SLIDE, &LUA_LOG], &STEADY), each(&[&SWC, &LUA_COUNTER, &THROTTLE, &INCR], &COUNTED)]
}

fn scenario<const N: usize>(
    name: &'static str,
    pipelines: &'static [u64],
    pairs: [Vec<Pair>; N],
) -> Scenario {
    let options = &[UNBOUNDED];
    Scenario { name, pairs: pairs.concat(), pipelines, options, calls_to_one: 1, replica: false }
}

fn each(contenders: &[&'static Contender], workload: &Workload) -> Vec<Pair> {
    contenders.iter().map(|contender| (*contender, workload.clone())).collect()
}
