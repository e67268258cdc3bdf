//! In a cluster, clients find the limiters of every node; scripts, functions and replicas know which are
//! theirs.

use crate::client::six_fields;
use crate::cluster_harness::{Caller, Cluster};
use crate::harness::{Server, server_is_at_least, skipped};
use crate::replication::wait_for_replicas;

/// A client is asked for limiters on every node, more often than they admit.
fn finds_every_limiter(cluster: &Cluster, caller: &mut impl Caller, client: &str) {
    let at_ms = cluster.primaries[0].now();
    for number in 0..60 {
        let key = format!("{client}:{number}");
        for (command, kind) in [("SLIDE", "log"), ("SWC", "counters")] {
            let call = |command: &str| format!("RL.{command} {kind}:{key} 1h 2 AT {at_ms}");
            assert_eq!(caller.call(&call(command))[..3], [1, 2, 1]);
            assert_eq!(caller.call(&call(command))[..3], [1, 2, 0]);
            assert_eq!(caller.call(&call(command))[..3], [0, 2, 0]);
            assert_eq!(caller.call(&call("PEEK"))[..3], [0, 2, 0]);
            assert_eq!(caller.call(&format!("RL.REFUND {kind}:{key} 1 AT {at_ms}")), [1]);
        }
    }
}

#[test]
fn clients_find_limiters_on_every_node() {
    let cluster = Cluster::start();
    let keys_before = cluster.primaries.iter().map(|node| node.run::<i64>("DBSIZE")).sum::<i64>();
    finds_every_limiter(&cluster, &mut cluster.client().get_connection().unwrap(), "rust");
    finds_every_limiter(&cluster, &mut cluster.redis_py(), "python");
    let keys: Vec<i64> = cluster.primaries.iter().map(|node| node.run("DBSIZE")).collect();
    assert_eq!((keys_before, keys.iter().sum()), (0, 240));
    assert!(keys.iter().all(|keys| *keys > 20), "limiters are spread over the nodes: {keys:?}");

    other_nodes_point_to_the_right_one(&cluster);
    hash_tags_bring_limiters_together(&cluster);
    scripts_reach_keys_of_their_own_node(&cluster);
    if server_is_at_least(7, 0) {
        functions_reach_keys_of_their_own_node(&cluster);
    } else {
        skipped("FUNCTION needs 7.0");
    }
    replicas_answer_peeks(&cluster);
}

/// The node that serves a key, and one that does not.
fn own_and_other<'a>(cluster: &'a Cluster, key: &str) -> (&'a Server, &'a Server) {
    let home = cluster.home(key);
    (&cluster.primaries[home], &cluster.primaries[(home + 1) % 3])
}

fn other_nodes_point_to_the_right_one(cluster: &Cluster) {
    let (own, other) = own_and_other(cluster, "k");
    let moved = format!("MOVED {} 127.0.0.1:{}", cluster.slot("k"), own.port());
    for call in ["RL.SLIDE k 1h 5", "RL.SWC k 1h 5", "RL.PEEK k 1h 5", "RL.REFUND k 1"] {
        assert_eq!(other.error(call), moved, "{call}");
    }
    let denied: Vec<redis::Value> = other.run("RL.DENIED");
    assert!(denied.len() <= 10, "it has no key, so any node answers");
}

fn hash_tags_bring_limiters_together(cluster: &Cluster) {
    let (own, other) = own_and_other(cluster, "{user:7}");
    for key in ["{user:7}:minute", "{user:7}:hour", "api:{user:7}"] {
        assert_eq!(cluster.slot(key), cluster.slot("{user:7}"));
        assert_eq!(own.slide(&format!("{key} 1h 5"))[0], 1);
        assert!(other.error(&format!("RL.SLIDE {key} 1h 5")).starts_with("MOVED"));
    }
    assert_eq!(own.run::<i64>("DEL {user:7}:minute {user:7}:hour api:{user:7}"), 3);
    assert!(own.error("DEL {user:7}:hour {user:8}:hour").starts_with("CROSSSLOT"));
}

const BOTH: &str = "local first = redis.call('RL.SLIDE', KEYS[1], '1h', '1')
    return redis.call('RL.SWC', KEYS[2] or ARGV[1], '1h', '1')";

fn scripts_reach_keys_of_their_own_node(cluster: &Cluster) {
    let (own, other) = own_and_other(cluster, "{script}");
    let both = |node: &Server, keys: &[&str], argument: &str| {
        let count = keys.len().to_string();
        node.try_args(&[&["EVAL", BOTH, &count], keys, &[argument]].concat())
    };
    let keys = ["{script}:log", "{script}:counters"];
    assert_eq!(six_fields(both(own, &keys, "").unwrap())[..3], [1, 1, 0]);
    assert_eq!(six_fields(both(own, &keys, "").unwrap())[..3], [0, 1, 0]);
    assert!(both(other, &keys, "").unwrap_err().starts_with("MOVED"));
    assert!(both(own, &[keys[0], "{elsewhere}"], "").unwrap_err().starts_with("CROSSSLOT"));

    // A key that is not declared, of another node: the call is refused, and charges nothing.
    let foreign = (0..).map(|number| format!("foreign:{number}"));
    let foreign =
        foreign.into_iter().find(|key| cluster.home(key) != cluster.home("{script}")).unwrap();
    let error = both(own, &["{script}:log"], &foreign).unwrap_err();
    assert!(error.contains("non local key"), "{error}");
    let home = &cluster.primaries[cluster.home(&foreign)];
    assert_eq!(home.run::<i64>(&format!("EXISTS {foreign}")), 0);
}

fn functions_reach_keys_of_their_own_node(cluster: &Cluster) {
    let library = "#!lua name=limits
        redis.register_function('limit', function(keys, args) return redis.call('RL.SLIDE', keys[1], unpack(args)) end)";
    for primary in &cluster.primaries {
        assert_eq!(primary.args::<String>(&["FUNCTION", "LOAD", library]), "limits");
    }
    let (own, other) = own_and_other(cluster, "f");
    let reply = own.try_run("FCALL limit 1 f 1h 1").unwrap();
    assert_eq!(six_fields(reply)[..3], [1, 1, 0]);
    assert_eq!(own.slide("f 1h 1")[0], 0);
    assert!(other.error("FCALL limit 1 f 1h 1").starts_with("MOVED"));
    let error = own.error("FCALL limit 2 f {elsewhere} 1h 1");
    assert!(error.starts_with("CROSSSLOT"), "{error}");
}

/// On a connection that says `READONLY`; what writes is sent to the primary still.
fn replicas_answer_peeks(cluster: &Cluster) {
    let home = cluster.home("peeked");
    let (primary, replica) = (&cluster.primaries[home], &cluster.replicas[home]);
    primary.slide("peeked 1h 3");
    wait_for_replicas(primary, 1);
    assert!(replica.error("RL.PEEK peeked 1h 3").starts_with("MOVED"));
    replica.does("READONLY");
    assert_eq!(replica.peek("peeked 1h 3")[..3], [1, 3, 2]);
    assert!(replica.error("RL.SLIDE peeked 1h 0").starts_with("MOVED"));
}
