//! Three primaries and three replicas that make a cluster, and real cluster clients of it.

use redis::Value;
use redis::cluster::{ClusterClient, ClusterConnection};

use crate::harness::{Server, Setup, wait_until};
use crate::redis_py::RedisPy;

pub const SLOTS: usize = 16_384;
const PRIMARIES: usize = 3;

/// A cluster. The slots are spread evenly over the primaries; each has the replica of its number.
pub struct Cluster {
    pub primaries: Vec<Server>,
    pub replicas: Vec<Server>,
}

impl Cluster {
    /// A cluster that serves every slot, each primary with its replica in step.
    pub fn start() -> Cluster {
        let cluster = Cluster { primaries: start_nodes(), replicas: start_nodes() };
        for (number, primary) in cluster.primaries.iter().enumerate() {
            serve(primary, (0..SLOTS).filter(|slot| number_of_home(*slot) == number));
        }
        cluster.introduce_nodes();
        for (primary, replica) in cluster.primaries.iter().zip(&cluster.replicas) {
            replica.does(&format!("CLUSTER REPLICATE {}", id(primary)));
        }
        cluster.wait_until_settled();
        cluster.be_patient();
        cluster
    }

    /// A client of redis-py.
    pub fn redis_py(&self) -> RedisPy {
        RedisPy::run("cluster_client.py", self.nodes().map(Server::port))
    }

    fn nodes(&self) -> impl Iterator<Item = &Server> {
        self.primaries.iter().chain(&self.replicas)
    }

    fn introduce_nodes(&self) {
        for (epoch, node) in self.nodes().enumerate() {
            node.does(&format!("CLUSTER SET-CONFIG-EPOCH {}", epoch + 1));
            node.does(&format!("CLUSTER MEET 127.0.0.1 {}", self.primaries[0].port()));
        }
        let knows_all = |node: &Server| self.nodes().all(|other| known(node).contains(&id(other)));
        wait_until("the nodes to know each other", || self.nodes().all(knows_all));
    }

    fn wait_until_settled(&self) {
        let follows = |(primary, replica): (&Server, &Server)| {
            let (primary_id, replica_id) = (id(primary), id(replica));
            let is_told = |line: &str| line.starts_with(&replica_id) && line.contains(&primary_id);
            self.nodes().all(|node| known(node).lines().any(is_told))
                && replica.info("master_link_status") == "up"
        };
        wait_until("the cluster to serve all slots", || {
            self.nodes().all(is_serving) && self.primaries.iter().zip(&self.replicas).all(follows)
        });
    }

    /// A short timeout makes the news of a young cluster travel faster; with a long one, a machine
    /// that is slow does not look like one that is gone.
    fn be_patient(&self) {
        self.nodes().for_each(|node| node.does("CONFIG SET cluster-node-timeout 60000"));
    }

    /// Lets the nodes find out that a primary is gone.
    pub fn find_out_who_is_gone(&self) {
        self.nodes().for_each(|node| node.does("CONFIG SET cluster-node-timeout 2000"));
        let knows = |primary: &Server| known(primary).contains(" master,fail,nofailover ");
        wait_until("the primary to be missed", || self.primaries.iter().all(knows));
    }

    /// Lets a replica take over from its primary, which is gone.
    pub fn fail_over_to(&self, replica: &Server) {
        replica.does("CONFIG SET cluster-replica-no-failover no");
        wait_until("the replica to take over", || {
            replica.info("role") == "master"
                && is_serving(replica)
                && self.primaries.iter().all(is_serving)
        });
        self.be_patient();
    }

    /// The slot of a key.
    pub fn slot(&self, key: &str) -> usize {
        self.primaries[0].run(&format!("CLUSTER KEYSLOT {key}"))
    }

    /// The number of the primary that serves a key, as long as no slot was moved.
    pub fn home(&self, key: &str) -> usize {
        number_of_home(self.slot(key))
    }

    /// Moves a slot with its keys, one by one, and calls `at_stage` before, amidst and after that,
    /// while the slot is half here and half there.
    pub fn move_slot(&self, slot: usize, from: usize, to: usize, mut at_stage: impl FnMut()) {
        let (source, target) = (&self.primaries[from], &self.primaries[to]);
        target.does(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", id(source)));
        source.does(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", id(target)));
        at_stage();
        let keys: Vec<String> = source.run(&format!("CLUSTER GETKEYSINSLOT {slot} 100000"));
        let (first, second) = keys.split_at(keys.len() / 2);
        for half in [first, second] {
            for key in half {
                source.does(&format!("MIGRATE 127.0.0.1 {} {key} 0 100000", target.port()));
            }
            at_stage();
        }
        assert_eq!(source.run::<i64>(&format!("CLUSTER COUNTKEYSINSLOT {slot}")), 0);
        for node in [target, source].into_iter().chain(&self.primaries) {
            node.does(&format!("CLUSTER SETSLOT {slot} NODE {}", id(target)));
        }
    }

    /// How often the primaries have answered with errors of this code.
    pub fn errors(&self, code: &str) -> u64 {
        self.primaries.iter().map(|primary| errors(primary, code)).sum()
    }

    /// A client of the Rust library.
    pub fn client(&self) -> ClusterClient {
        self.client_of_retries(16)
    }

    /// The same, which gives up after so many attempts more.
    pub fn client_of_retries(&self, retries: u32) -> ClusterClient {
        let urls = self.nodes().map(|node| format!("redis://127.0.0.1:{}", node.port()));
        ClusterClient::builder(urls).retries(retries).build().expect("the addresses are ones")
    }
}

fn start_nodes() -> Vec<Server> {
    let setup = Setup::new()
        .on_tcp()
        .option("cluster-enabled yes")
        .option("cluster-node-timeout 1000")
        .option("cluster-replica-no-failover yes")
        .option("cluster-replica-validity-factor 0")
        .option("cluster-require-full-coverage no")
        .option("repl-diskless-sync-delay 0");
    (0..PRIMARIES).map(|_| setup.clone().start()).collect()
}

/// Gives slots to a node that serves none yet.
pub fn serve(node: &Server, slots: impl Iterator<Item = usize>) {
    let slots: Vec<String> = slots.map(|slot| slot.to_string()).collect();
    node.does(&format!("CLUSTER ADDSLOTS {}", slots.join(" ")));
}

fn number_of_home(slot: usize) -> usize {
    slot * PRIMARIES / SLOTS
}

fn id(node: &Server) -> String {
    node.run("CLUSTER MYID")
}

fn known(node: &Server) -> String {
    node.run("CLUSTER NODES")
}

/// Whether the node takes the whole cluster for well.
pub fn is_serving(node: &Server) -> bool {
    let info: String = node.run("CLUSTER INFO");
    info.contains("cluster_state:ok") && info.contains("cluster_slots_ok:16384")
}

fn errors(node: &Server, code: &str) -> u64 {
    let info: String = node.run("INFO errorstats");
    let found =
        info.lines().find_map(|line| line.strip_prefix(&format!("errorstat_{code}:count=")));
    found.map_or(0, |count| count.parse().unwrap())
}

/// A client of a cluster, to be spoken to in lines. It follows `MOVED` and `ASK` as it sees fit.
pub trait Caller {
    /// Sends the words of a line; the integers of the answer.
    fn call(&mut self, line: &str) -> Vec<i64>;
}

impl Caller for RedisPy {
    fn call(&mut self, line: &str) -> Vec<i64> {
        self.try_call(line).unwrap_or_else(|error| panic!("{line} was answered: {error}"))
    }
}

impl Caller for ClusterConnection {
    fn call(&mut self, line: &str) -> Vec<i64> {
        try_call(self, line).unwrap_or_else(|error| panic!("{line} was answered: {error}"))
    }
}

/// Sends the words of a line; the integers of the answer.
pub fn try_call(connection: &mut ClusterConnection, line: &str) -> redis::RedisResult<Vec<i64>> {
    let (name, arguments) = line.split_once(' ').expect("a command and a key");
    let answer =
        redis::cmd(name).arg(arguments.split(' ').collect::<Vec<_>>()).query(connection)?;
    match answer {
        Value::Int(integer) => Ok(vec![integer]),
        fields => Ok(redis::from_redis_value(fields)?),
    }
}
