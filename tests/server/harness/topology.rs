//! The same tests over topologies. `RL_TOPOLOGY` names what becomes of each server that a test starts:
//!
//! - `replica`: it has a replica.
//! - `aof`: it keeps an AOF.
//! - `cluster`: it is a cluster by itself, and serves every slot.
//!
//! When a test that has passed lets go of a server, its replica, or another server that starts from its
//! AOF, must hold the same keys with the same contents until the same times. Neither loads the module.

use std::collections::BTreeMap;

use super::{Process, Server, Setup, server_is_at_least, skipped, wait_until};
use crate::client::Client;
use crate::cluster_harness::{SLOTS, is_serving, serve};
use crate::replication::{primary_setup, replica_of};

#[derive(Clone, Copy)]
pub enum Topology {
    Replica,
    Aof,
    Cluster,
}

/// Who must hold what a server held.
pub enum Heir {
    Replica(Box<Server>),
    /// A server that is started so, in the same directory.
    OfAof(Setup),
}

impl Topology {
    fn asked_for() -> Option<Topology> {
        match std::env::var("RL_TOPOLOGY").unwrap_or_default().as_str() {
            "" => None,
            "replica" => Some(Topology::Replica),
            "aof" => Some(Topology::Aof),
            "cluster" => Some(Topology::Cluster),
            other => panic!("RL_TOPOLOGY is replica, aof or cluster, and not {other}"),
        }
    }

    /// The one for a server of this setup, unless the test has one of its own, which is said.
    fn of(setup: &Setup) -> Option<Topology> {
        let topology = Topology::asked_for().filter(|_| setup.module.is_some())?;
        let obstacle = match topology {
            _ if setup.alone => "the test counts the memory of its server, or brings it down",
            _ if setup.tcp || setup.sets("replicaof") => "the test makes one of its own",
            Topology::Cluster if !setup.env.is_empty() => {
                "a node waits for two seconds before it serves, and this one's clock may stand"
            }
            _ => return Some(topology),
        };
        skipped(&format!("the topology: {obstacle}"));
        None
    }
}

impl Setup {
    /// What the server is started with in the topology that was asked for.
    pub(super) fn in_topology(self) -> Setup {
        let topology = Topology::of(&self);
        let setup = match topology {
            None => self,
            // Steps of a clock are no silence of the link, and the backlog is soon as large as it gets.
            Some(Topology::Replica) => {
                let setup = primary_setup(self).option("repl-timeout 1000000");
                setup.option("repl-backlog-size 16kb")
            }
            Some(Topology::Aof) if self.sets("appendonly") => self,
            // It is closed in good order, which needs no sync.
            Some(Topology::Aof) => self.option("appendonly yes").option("appendfsync no"),
            Some(Topology::Cluster) => self.on_tcp().option("cluster-enabled yes"),
        };
        Setup { topology, ..setup }
    }

    fn sets(&self, option: &str) -> bool {
        self.options.contains(&format!("--{option}"))
    }

    /// A server without the module that goes by the same clock, if that is a test's own.
    fn heir(&self) -> Setup {
        Setup { env: self.env.clone(), ..Setup::new().without_module() }
    }
}

impl Heir {
    /// Completes the topology of a server that has just started.
    pub(super) fn of(server: &Server, setup: &Setup) -> Option<Heir> {
        match setup.topology? {
            Topology::Replica => {
                let replica = replica_of(server, setup.heir().option("repl-timeout 1000000"));
                // The save for it ends a little later, and resets what tests count.
                let saves = || server.info("rdb_bgsave_in_progress") == "1";
                wait_until("the replica's save", || !saves());
                Some(Heir::Replica(Box::new(replica)))
            }
            Topology::Aof => Some(Heir::OfAof(setup.heir().option("appendonly yes"))),
            Topology::Cluster => {
                serve(server, 0..SLOTS);
                wait_until("the node to serve", || is_serving(server));
                None
            }
        }
    }

    /// Fails unless the heir holds what the server does, which ends with that.
    pub(super) fn must_hold_the_same(self, server: &mut Server) {
        let Some(client) = Client::try_connect(&server.dir) else {
            return skipped("the topology: the test has ended the server");
        };
        let held = Holdings::of(&client);
        match self {
            Heir::Replica(replica) => {
                let offset =
                    |client: &Client| -> i64 { client.info("master_repl_offset").parse().unwrap() };
                let written = offset(&client);
                wait_until("the replica to have all", || offset(&replica) >= written);
                // Before 7.0 a client's own `PEXPIRE` is sent on as it is, and runs from when it arrives.
                held.must_be_held_by(&replica, !server_is_at_least(7, 0));
            }
            Heir::OfAof(setup) => {
                server.process.end_in_good_order(&server.dir);
                server.process = Process::start(&server.dir, &setup);
                held.must_be_held_by(&Client::connect(&server.dir), false);
            }
        }
    }
}

/// A key: its database, and its name.
type Key = (String, Vec<u8>);

/// What each key of a server holds, and when it expires. The contents are told by their digest: a `DUMP`
/// tells also how they are encoded, which settings and a longer past decide.
struct Holdings(BTreeMap<Key, (String, i64)>);

impl Holdings {
    fn of(client: &Client) -> Holdings {
        let keyspace: String = client.run("INFO keyspace");
        let databases =
            keyspace.lines().filter_map(|line| line.strip_prefix("db")?.split_once(':'));
        let mut holdings = BTreeMap::new();
        for (database, _) in databases {
            client.does(&format!("SELECT {database}"));
            for name in client.run::<Vec<Vec<u8>>>("KEYS *") {
                let [digest]: [String; 1] =
                    client.args(&[b"DEBUG".as_slice(), b"DIGEST-VALUE", &name]);
                let expiry_ms = client.expiry(&name);
                holdings.insert((database.to_string(), name), (digest, expiry_ms));
            }
        }
        Holdings(holdings)
    }

    /// Keys that expire meanwhile may be gone from either side. With `or_longer`, those that expire may do
    /// so later at the heir.
    fn must_be_held_by(self, heir: &Client, or_longer: bool) {
        let (Holdings(mut held), Holdings(mut found)) = (self, Holdings::of(heir));
        let now_ms = heir.now();
        let lives =
            |_: &Key, (_, expiry_ms): &mut (String, i64)| *expiry_ms == -1 || *expiry_ms > now_ms;
        held.retain(lives);
        found.retain(lives);
        let longer = |theirs_ms, ours_ms| or_longer && 0 < ours_ms && ours_ms < theirs_ms;
        for (key @ (database, name), (digest, expiry_ms)) in &held {
            let same = found.get(key).is_some_and(|(their_digest, their_expiry_ms)| {
                let until = their_expiry_ms == expiry_ms || longer(*their_expiry_ms, *expiry_ms);
                their_digest == digest && until
            });
            let (name, theirs) = (String::from_utf8_lossy(name), found.get(key));
            let ours = (digest, expiry_ms);
            assert!(same, "{name} in database {database} is {ours:?}, and at the heir {theirs:?}");
        }
        assert_eq!(found.len(), held.len(), "the heir holds no more");
    }
}
