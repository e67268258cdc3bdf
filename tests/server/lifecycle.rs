//! Loading, unloading and loading again inside a running server: keys stay and limits go on.

use redis::Value;

use crate::dataset::{dataset, leaves_everything};
use crate::harness::{Dir, Server, Setup, module_path, shared_library, skipped};

/// The names of the modules that are loaded; some servers bring their own.
pub fn loaded_modules(server: &Server) -> Vec<String> {
    let list: Vec<Vec<Value>> = server.run("MODULE LIST");
    list.into_iter().map(|module| redis::from_redis_value(module[1].clone()).unwrap()).collect()
}

#[test]
fn the_module_is_called_rl() {
    let ours = |server: Server| loaded_modules(&server).contains(&"rl".to_string());
    assert!(ours(Server::start()));
    assert!(!ours(Setup::new().without_module().start()));
}

#[test]
fn keys_stay_and_limits_go_on_over_an_unload() {
    let server = Server::start();
    server.slide("k 60s 3 AT 1000000");
    server.slide("k 60s 3 COST 2 AT 1010000");
    for _ in 0..3 {
        leaves_everything(&server, "unloading and loading", || {
            server.does("MODULE UNLOAD rl");
            assert!(server.error("RL.SLIDE k 60s 3").contains("unknown command"));
            assert_eq!(server.entries("k"), ["1000000 a1+1", "1010000 a3+2"]);
            server.does(&format!("MODULE LOAD {}", module_path()));
        });
        assert_eq!(server.slide("k 60s 3 AT 1020000"), [0, 3, 0, 40_000, 50_000, 60_000]);
    }
    assert_eq!(server.slide("k 60s 3 AT 1060000"), [1, 3, 0, 0, 60_000, 60_000]);
}

/// Whether the server lives on when a client calls what was unloaded since it called last. Asked with a
/// module that has nothing of ours.
fn server_survives_unloads() -> bool {
    let dir = Dir::fresh();
    let other = shared_library(&dir, "other_module.c");
    let server = Setup::new().module_file(&other).alone().start();
    let mut client = server.plain_connection();
    let mut call = || redis::cmd("OTHER.ANSWER").query::<i64>(&mut client);
    assert_eq!(call(), Ok(1));
    server.does("MODULE UNLOAD other");
    !call().unwrap_err().is_io_error()
}

#[test]
fn an_unload_under_connected_clients_is_survived() {
    if !server_survives_unloads() {
        return skipped(
            "the server crashes by itself on a call of what was unloaded, of any module",
        );
    }
    let server = Server::start();
    let mut client = server.wire();
    for _ in 0..20 {
        assert!(client.ask("RL.SLIDE k 60s 1000").starts_with("*6\r\n:1\r\n"));
        server.does("MODULE UNLOAD rl");
        assert!(client.ask("RL.SLIDE k 60s 1000").starts_with("-ERR unknown command"));
        server.does(&format!("MODULE LOAD {}", module_path()));
    }
    assert_eq!(server.slide("k 60s 1000")[2], 979);
}

#[test]
fn a_module_loaded_late_finds_what_was_stored() {
    let server = Setup::new().without_module().start();
    server.plant("k", &["1000000 a1+1", "1010000 a3+2"]);
    server.does(&format!("MODULE LOAD {}", module_path()));
    let before = dataset(&server);
    assert_eq!(server.slide("k 60s 3 AT 1020000"), [0, 3, 0, 40_000, 50_000, 60_000]);
    assert!(dataset(&server) == before);
}

#[test]
fn a_second_load_is_refused_and_the_log_says_why() {
    let server = Server::start();
    assert!(server.error(&format!("MODULE LOAD {}", module_path())).starts_with("ERR "));
    let said = server.module_log();
    assert!(said.iter().any(|line| line.contains("rl is loaded already: MODULE UNLOAD rl first")));
    assert_eq!(server.slide("k 60s 3")[0], 1);
}

/// The commands that replicas and the AOF are sent.
const REPLICATED: [&str; 7] =
    ["ZADD", "ZREM", "ZREMRANGEBYRANK", "HSET", "HDEL", "UNLINK", "PEXPIREAT"];

#[test]
fn a_server_without_a_command_that_replicas_are_sent_is_refused_and_the_log_says_why() {
    for command in REPLICATED {
        let log = Setup::new().option(&format!("rename-command {command} other")).gives_up();
        let said = format!("<rl> this server has no command {command}, by which replicas");
        assert!(log.contains(&said), "{log}");
    }
}

#[test]
fn other_commands_may_be_renamed() {
    let server = Setup::new().option("rename-command FLUSHALL other").start();
    assert_eq!(server.slide("k 60s 3")[0], 1);
}
