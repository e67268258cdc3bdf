//! A slot that moves from node to node under load: clients follow, and no decision is lost.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::cluster_harness::{Caller, Cluster};
use crate::dataset::{digest, expiries};
use crate::harness::{server_is_at_least, wait_until};
use crate::model::{Call, CounterModel, Model, Reply};
use crate::random::Random;

/// The windows of every limiter under load, and how they are written.
const WINDOWS: [(u64, u64); 2] = [(600_000, 5), (3_600_000, 20)];
const WINDOWS_WRITTEN: &str = "10m 5 1h 20";

/// Logs of one client, and as many counters.
const LIMITERS: usize = 8;

/// The limiters that one client calls, all in the slot of `{shared}`, and their models.
struct Load {
    client: &'static str,
    random: Random,
    clock_ms: u64,
    at_ms: u64,
    logs: Vec<Model>,
    counters: Vec<CounterModel>,
    denied: u32,
}

impl Load {
    fn new(client: &'static str, random: Random, clock_ms: u64) -> Load {
        Load {
            client,
            random,
            clock_ms,
            at_ms: clock_ms,
            logs: vec![Model::default(); LIMITERS],
            counters: vec![CounterModel::default(); LIMITERS],
            denied: 0,
        }
    }

    /// Calls every limiter once; each answer must be the model's. One is refunded and one deleted, so that
    /// new keys come up in a slot that is on the move.
    fn call_all(&mut self, caller: &mut impl Caller) {
        for number in 0..LIMITERS {
            self.at_ms += self.random.below(60_000);
            let call = Call {
                cost: self.random.below(4),
                clock_ms: self.clock_ms,
                ..Call::new(&WINDOWS, self.at_ms)
            };
            let modelled = self.logs[number].slide(&call);
            self.compare(caller, "SLIDE", number, &call, modelled);
            let modelled = self.counters[number].swc(&call);
            self.compare(caller, "SWC", number, &call, modelled);
        }
        let number = self.random.below(LIMITERS as u64) as usize;
        let name = self.name("SLIDE", number);
        assert_eq!(
            caller.call(&format!("RL.REFUND {name} 1")),
            [self.logs[number].refund(1) as i64]
        );
        let number = self.random.below(LIMITERS as u64) as usize;
        caller.call(&format!("DEL {}", self.name("SLIDE", number)));
        self.logs[number] = Model::default();
    }

    fn name(&self, command: &str, number: usize) -> String {
        format!("{{shared}}:{}:{command}:{number}", self.client)
    }

    fn compare(
        &mut self,
        caller: &mut impl Caller,
        command: &str,
        number: usize,
        call: &Call,
        modelled: Reply,
    ) {
        let (name, cost, at_ms) = (self.name(command, number), call.cost, call.now_ms);
        let line = format!("RL.{command} {name} {WINDOWS_WRITTEN} COST {cost} AT {at_ms}");
        assert_eq!(caller.call(&line), modelled, "{}: {line}", self.client);
        self.denied += u32::from(modelled[0] == 0);
    }

    /// Calls all, again and again; tells each time, and ends when nobody listens.
    fn run(&mut self, mut caller: impl Caller, done: &Sender<()>) {
        let mut rounds = 0;
        while done.send(()).is_ok() {
            self.call_all(&mut caller);
            rounds += 1;
        }
        let calls = rounds * 2 * LIMITERS as u32;
        println!("{}: {calls} decisions as modelled, {} of them denials", self.client, self.denied);
        assert!(self.denied > 0 && self.denied < calls, "both verdicts are common");
    }
}

/// Waits until each load has gone through all its limiters from here on.
fn wait_for_rounds(loads: &[Receiver<()>]) {
    for rounds in loads {
        rounds.try_iter().for_each(drop);
        // The round that was under way, and a whole one.
        (0..2).for_each(|_| rounds.recv().expect("the load goes on"));
    }
}

#[test]
fn no_decision_is_lost_while_a_slot_moves_under_load() {
    let cluster = Cluster::start();
    let slot = cluster.slot("{shared}");
    let home = cluster.home("{shared}");
    let clock_ms = cluster.primaries[0].now() as u64;
    let rust = cluster.client().get_connection().unwrap();
    let python = cluster.redis_py();
    thread::scope(|scope| {
        let mut random = Random::seeded();
        let (of_rust, of_python) = (Random(random.below(1 << 32)), Random(random.below(1 << 32)));
        let (rust_done, rust_rounds) = channel();
        let (python_done, python_rounds) = channel();
        scope.spawn(move || Load::new("rust", of_rust, clock_ms).run(rust, &rust_done));
        scope.spawn(move || Load::new("python", of_python, clock_ms).run(python, &python_done));
        let loads = [rust_rounds, python_rounds];
        let mut owner = home;
        for step in [1, 1, 1, 2, 2] {
            let next = (owner + step) % 3;
            let (moved, asked) = (cluster.errors("MOVED"), cluster.errors("ASK"));
            cluster.move_slot(slot, owner, next, || wait_for_rounds(&loads));
            wait_for_rounds(&loads);
            assert!(cluster.errors("ASK") > asked, "clients were sent after keys that had moved");
            assert!(cluster.errors("MOVED") > moved, "clients were told that the slot has moved");
            owner = next;
        }
    });
    println!("ASK {}, MOVED {}", cluster.errors("ASK"), cluster.errors("MOVED"));
    for (primary, replica) in cluster.primaries.iter().zip(&cluster.replicas) {
        replica.does("READONLY");
        wait_until("the replicas to catch up", || digest(primary) == digest(replica));
        assert!(expiries(primary).values().all(|expiry| *expiry > 0), "every key expires");
        // Before 7.0 servers tell replicas the time left of a key that comes from another node.
        if server_is_at_least(7, 0) {
            assert_eq!(expiries(primary), expiries(replica));
        }
        assert_eq!(primary.info("rl_panics"), "0");
    }
}
