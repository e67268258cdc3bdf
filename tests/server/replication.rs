//! Replicas hold what the primary holds, byte for byte, whether or not they load the module, and see
//! native commands only.

use crate::client::Client;
use crate::dataset::{digest, expiries};
use crate::harness::{Server, Setup, wait_until};
use crate::random_calls::run_stream;

/// A server that replicas may follow.
pub fn primary() -> Server {
    primary_with(Setup::new())
}

/// The same, started with more.
pub fn primary_with(setup: Setup) -> Server {
    primary_setup(setup).start()
}

/// What that is started with.
pub fn primary_setup(setup: Setup) -> Setup {
    setup.on_tcp().option("repl-diskless-sync-delay 0")
}

/// A replica of `primary` that has finished its first synchronisation.
pub fn replica_of(primary: &Server, setup: Setup) -> Server {
    let replica = setup.option(&format!("replicaof 127.0.0.1 {}", primary.port())).start();
    wait_until("the replica's link", || replica.info("master_link_status") == "up");
    replica
}

/// Waits until the replicas have all that this connection wrote.
pub fn wait_for_replicas(primary: &Client, replicas: i64) {
    assert_eq!(primary.run::<i64>(&format!("WAIT {replicas} 100000")), replicas);
}

#[test]
fn replicas_hold_the_same_after_a_random_stream() {
    let primary = primary();
    let with_module = replica_of(&primary, Setup::new());
    let without_module = replica_of(&primary, Setup::new().without_module());
    run_stream(&primary);
    wait_for_replicas(&primary, 2);

    let keys: i64 = primary.run("DBSIZE");
    assert_eq!(keys, 13, "five logs and five counters of the stream, and three of the drops");
    for replica in [&with_module, &without_module] {
        assert_eq!(digest(replica), digest(&primary));
        assert_eq!(expiries(replica), expiries(&primary));
    }
    assert!(expiries(&primary).values().all(|expiry| *expiry > primary.now()), "every key expires");
}

#[test]
fn replicas_see_native_commands_only() {
    let primary = primary();
    let replica = replica_of(&primary, Setup::new());
    run_stream(&primary);
    wait_for_replicas(&primary, 1);
    assert!(primary.commands_run().contains(&"rl.slide".to_string()));
    let seen = replica.commands_run();
    assert!(!seen.iter().any(|command| command.starts_with("rl.")), "{seen:?}");
    for native in ["zadd", "zremrangebyrank", "zrem", "unlink", "hset", "hdel", "pexpireat"] {
        assert!(seen.iter().any(|command| command == native), "no {native} in {seen:?}");
    }
}

#[test]
fn an_ordinary_admission_is_one_zadd() {
    let server = Setup::new().with_aof().start();
    let mut journal = server.journal();
    server.slide("k 60s 9 AT 1000000");
    let expiry = format!("PEXPIREAT k {}", server.expiry("k"));
    assert_eq!(journal.commands(), ["MULTI", "ZADD k 1000000 a1+1", &expiry, "EXEC"]);
    server.slide("k 60s 9 1h 50 COST 0 AT 1000001");
    server.slide("k 60s 9 COST 3 AT 1000001");
    assert_eq!(journal.commands(), ["ZADD k 1000001 a4+3"]);
    server.slide("k 60s 0 COST 9 FORCE AT 1000001");
    assert_eq!(journal.commands(), ["ZADD k 1000001 b13+9"]);
    server.slide("k 60s 99 PRECISION 1s AT 1001500");
    assert_eq!(journal.commands(), ["ZADD k 1002000 b14+1"]);
}

#[test]
fn a_merge_is_a_new_member_for_the_old_one() {
    let server = Setup::new().with_aof().start();
    server.slide("k 60s 9 PRECISION 1s AT 1000000");
    let mut journal = server.journal();
    server.slide("k 60s 9 COST 2 PRECISION 1s AT 1000000");
    let commands = journal.commands();
    // The new one comes first: otherwise the key would go for a moment, and its expiry with it.
    assert_eq!(commands, ["MULTI", "ZADD k 1000000 a3+3", "ZREM k a1+1", "EXEC"]);
}

#[test]
fn a_trim_and_an_expiry_come_only_when_due() {
    let server = Setup::new().with_aof().start();
    server.slide("k 60s 9 AT 1000000");
    server.slide("k 60s 9 AT 1000001");
    server.does("PEXPIRE k 30000");
    let mut journal = server.journal();
    server.slide("k 60s 9 AT 1060001");
    let commands = journal.commands();
    assert_eq!(commands.len(), 5, "{commands:?}");
    assert_eq!(commands[1], "ZADD k 1060001 a3+1");
    assert!(commands[2].starts_with("ZREM"), "{commands:?}");
    assert_eq!(commands[3], format!("PEXPIREAT k {}", server.expiry("k")));
}

#[test]
fn a_replica_refuses_the_call() {
    let primary = primary();
    let replica = replica_of(&primary, Setup::new());
    primary.slide("k 60s 1 AT 1000000");
    wait_for_replicas(&primary, 1);
    for call in ["k 60s 1 AT 1000000", "k 60s 5 AT 1000000", "k 60s 5 COST 0"] {
        assert!(replica.error(&format!("RL.SLIDE {call}")).starts_with("READONLY"), "{call}");
    }
    assert_eq!(digest(&replica), digest(&primary));
}

#[test]
fn a_promoted_replica_goes_on_where_the_primary_was() {
    let primary = primary();
    let replica = replica_of(&primary, Setup::new());
    primary.slide("k 60s 3 AT 1000000");
    primary.slide("k 60s 3 COST 2 AT 1010000");
    wait_for_replicas(&primary, 1);
    replica.does("REPLICAOF NO ONE");
    let call = "k 60s 3 AT 1020000";
    assert_eq!(replica.slide(call), [0, 3, 0, 40_000, 50_000, 60_000]);
    assert_eq!(primary.slide(call), [0, 3, 0, 40_000, 50_000, 60_000]);
}

#[test]
fn an_expired_key_starts_afresh_on_the_replica_too() {
    let primary = primary();
    let replica = replica_of(&primary, Setup::new().without_module());
    for server in [&primary, &replica] {
        server.does("DEBUG SET-ACTIVE-EXPIRE 0");
    }
    primary.slide("k 60s 3 COST 3");
    primary.does("PEXPIRE k 1");
    let over = primary.now() + 2;
    wait_until("the key's expiry", || primary.now() > over);
    assert_eq!(primary.slide("k 60s 3")[..3], [1, 3, 2]);
    wait_for_replicas(&primary, 1);
    assert_eq!(digest(&replica), digest(&primary));
    assert_eq!(expiries(&replica), expiries(&primary));
}
