//! What was admitted survives a restart: from the AOF, rewritten or not, and from an RDB, with the
//! module or without it.

use std::collections::BTreeMap;

use crate::client::Client;
use crate::dataset::dataset;
use crate::harness::{Server, Setup, wait_until};
use crate::random_calls::run_stream;

/// What must be the same after a restart.
fn contents(server: &Client) -> (String, BTreeMap<String, i64>) {
    let contents = crate::dataset::contents(server);
    assert!(!contents.1.is_empty(), "there is something to keep");
    contents
}

#[test]
fn an_aof_holds_all_of_it() {
    let mut server = Setup::new().with_aof().start();
    run_stream(&server);
    let before = contents(&server);
    server.restart(Setup::new().with_aof());
    assert_eq!(contents(&server), before);
    // The module is not needed to read it.
    server.restart(Setup::new().with_aof().without_module());
    assert_eq!(contents(&server), before);
    assert!(server.error("RL.SLIDE k 60s 5").contains("unknown command"));
}

#[test]
fn a_rewritten_aof_holds_all_of_it() {
    for preamble in ["aof-use-rdb-preamble yes", "aof-use-rdb-preamble no"] {
        let mut server = Setup::new().with_aof().option(preamble).start();
        server.slide("k 60s 9 COST 2 AT 1000000");
        server.slide("other 60s 9 PRECISION 1s");
        server.does("BGREWRITEAOF");
        wait_until("the rewrite", || {
            server.info("aof_rewrite_in_progress") == "0"
                && server.info("aof_rewrite_scheduled") == "0"
        });
        assert_eq!(server.info("aof_last_bgrewrite_status"), "ok");
        server.slide("k 60s 9 COST 3 AT 1000001");
        let before = contents(&server);
        server.restart(Setup::new().with_aof());
        assert_eq!(contents(&server), before);
        assert_eq!(server.slide("k 60s 9 COST 5 AT 1000002"), [0, 9, 4, 59_998, 59_999, 60_000]);
    }
}

#[test]
fn an_rdb_holds_all_of_it() {
    let mut server = Server::start();
    run_stream(&server);
    server.does("SAVE");
    let before = contents(&server);
    server.restart(Setup::new());
    assert_eq!(contents(&server), before);
    server.restart(Setup::new().without_module());
    assert_eq!(contents(&server), before);
}

#[test]
fn a_restart_forgets_and_forgives_nothing() {
    let mut server = Setup::new().with_aof().start();
    server.slide("k 60s 3 AT 1000000");
    server.slide("k 60s 3 COST 2 AT 1010000");
    for _ in 0..3 {
        server.restart(Setup::new().with_aof());
        assert_eq!(server.slide("k 60s 3 AT 1020000"), [0, 3, 0, 40_000, 50_000, 60_000]);
    }
    assert_eq!(server.slide("k 60s 3 AT 1060000"), [1, 3, 0, 0, 60_000, 60_000]);
}

#[test]
fn a_reload_in_place_changes_nothing() {
    let server = Server::start();
    for i in 0..300 {
        server.slide(&format!("k 60s 1000 AT {}", 1_000_000 + i));
    }
    let before = dataset(&server);
    server.does("DEBUG RELOAD");
    assert!(dataset(&server) == before);
    assert_eq!(server.slide("k 60s 1000 AT 1000300"), [1, 1000, 699, 0, 60_000, 60_000]);
}

#[test]
fn a_dumped_key_is_restored_where_the_module_is_not() {
    let server = Server::start();
    let elsewhere = Setup::new().without_module().start();
    server.slide("k 60s 9 COST 2 AT 1000000");
    server.slide("k 60s 9 COST 3 AT 1000001");
    let payload: Vec<u8> = server.run("DUMP k");
    elsewhere.args::<()>(&[b"RESTORE".as_slice(), b"k", b"60000", &payload]);
    assert_eq!(elsewhere.entries("k"), ["1000000 a2+2", "1000001 a5+3"]);
}
