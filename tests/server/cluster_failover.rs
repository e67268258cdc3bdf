//! A primary that dies under load: its replica goes on with what it had received.

use std::sync::mpsc::{Sender, channel};
use std::thread;

use redis::cluster::{ClusterClient, ClusterConnection};

use crate::cluster_harness::{Caller, Cluster, try_call};
use crate::harness::{Server, wait_until};
use crate::replication::wait_for_replicas;

/// Each is called with one time, so that all that is ever admitted stays in its window.
const CHARGED: [(&str, &str); 2] = [("SLIDE", "{dies}:log"), ("SWC", "{dies}:counters")];

/// Charges until the connection fails; how often it was admitted.
fn charge_until_lost(mut connection: ClusterConnection, call: &str, done: &Sender<()>) -> i64 {
    let mut admitted = 0;
    while let Ok(reply) = try_call(&mut connection, &format!("{call} 1h 1000000000 AT 3600000")) {
        admitted += 1;
        assert_eq!(reply[2], 1_000_000_000 - admitted);
        // Nobody counts them any more once the primary is to die.
        let _ = done.send(());
    }
    admitted
}

/// Charges until the limit denies; how often it was admitted.
fn charge_until_denied(client: &ClusterClient, call: &str, limit: i64) -> i64 {
    let line = format!("{call} 1h {limit} AT 3600000");
    let mut connection = client.get_connection().expect("the cluster is there");
    (0..).take_while(|_| connection.call(&line)[0] == 1).count() as i64
}

/// What redis-py asks, before its primary dies and after.
const BY_PYTHON: &str = "RL.SLIDE {dies}:python 1h 1000 AT 3600000";

/// The charges that a replica holds.
fn received(replica: &Server, command: &str, key: &str) -> i64 {
    replica.does("READONLY");
    match command {
        "SLIDE" => replica.run(&format!("ZCARD {key}")),
        _ => replica.run::<Option<i64>>(&format!("HGET {key} 3600000:current")).unwrap_or(0),
    }
}

#[test]
fn a_replica_that_takes_over_forgets_what_it_had_not_received_and_no_more() {
    let mut cluster = Cluster::start();
    let home = cluster.home("{dies}");
    // A request that is sent again would be charged again: none is.
    let client = cluster.client_of_retries(0);
    let mut python = cluster.redis_py();
    let acknowledged = thread::scope(|scope| {
        let running = CHARGED.map(|(command, key)| {
            let (done, charges) = channel();
            let connection = client.get_connection().unwrap();
            let call = format!("RL.{command} {key}");
            (scope.spawn(move || charge_until_lost(connection, &call, &done)), charges)
        });
        for (_, charges) in &running {
            (0..500).for_each(|_| charges.recv().expect("the charges go on"));
        }
        (1..=100).for_each(|used| assert_eq!(python.call(BY_PYTHON)[2], 1000 - used));
        let primary = cluster.primaries.remove(home);
        primary.slide("{dies}:waited 1h 1");
        wait_for_replicas(&primary, 1);
        drop(primary);
        running.map(|(charging, _)| charging.join().unwrap())
    });

    let replica = &cluster.replicas[home];
    wait_until("the replica to notice", || replica.info("master_link_status") == "down");
    let held = CHARGED.map(|(command, key)| received(replica, command, key));
    cluster.find_out_who_is_gone();
    others_go_on_meanwhile(&cluster, home);
    let error = python.try_call(BY_PYTHON).expect_err("nobody serves it");
    assert!(error.ends_with("Error\n"), "{error}");
    cluster.fail_over_to(replica);
    assert_eq!(replica.slide("{dies}:waited 1h 1")[0], 0, "what was waited for is not lost");
    wait_until("redis-py to find it", || {
        // What was refused meanwhile, and is not sent again, is not charged.
        python.try_call(BY_PYTHON).is_ok_and(|answer| answer[..3] == [1, 1000, 899])
    });
    for (number, (command, key)) in CHARGED.into_iter().enumerate() {
        let (acknowledged, held) = (acknowledged[number], held[number]);
        let limit = acknowledged + 100;
        let admitted = charge_until_denied(&client, &format!("RL.{command} {key}"), limit);
        let lost = acknowledged - held;
        println!("RL.{command}: {acknowledged} acknowledged, {lost} of them lost");
        assert_eq!(admitted, limit - held, "it goes on where the replica was");
        // One may have been received and not been answered any more.
        assert!(lost >= -1 && acknowledged + admitted - limit == lost);
    }
}

/// The limiters of other primaries, as the cluster need not be whole to serve what it has.
fn others_go_on_meanwhile(cluster: &Cluster, dead: usize) {
    let keys: Vec<String> = (0..100).map(|number| format!("other:{number}")).collect();
    for key in keys.iter().filter(|key| cluster.home(key) != dead) {
        let admits = |primary: &Server| primary.try_run(&format!("RL.SLIDE {key} 1h 5")).is_ok();
        wait_until("its primary's answer", || cluster.primaries.iter().any(admits));
    }
    // Those of the dead one are sent there still.
    let error = cluster.primaries[0].error("RL.SLIDE {dies}:log 1h 5");
    assert!(error.starts_with("MOVED"), "{error}");
}
