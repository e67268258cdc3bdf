//! Inside a transaction, a script or a function a call is what it is outside.

use redis::Value;

use crate::client::six_fields;
use crate::harness::{Server, Setup};

const CALL_SLIDE: &str = "return redis.call('RL.SLIDE', KEYS[1], unpack(ARGV))";

/// `EVAL` or `EVAL_RO` of a script with the key `k` and these arguments.
pub fn eval(
    server: &Server,
    command: &str,
    script: &str,
    arguments: &str,
) -> Result<Value, String> {
    let mut args = vec![command, script, "1", "k"];
    args.extend(arguments.split(' '));
    server.try_args(&args)
}

#[test]
fn a_transaction_answers_call_by_call() {
    let server = Server::start();
    server.does("MULTI");
    for call in [
        "k 60s 2 AT 1000000",
        "k 60s 2 AT 1000001",
        "k 60s 2 AT 1000002",
        "other:{k} 60s 2 COST 2 AT 1000002",
    ] {
        assert_eq!(server.run::<String>(&format!("RL.SLIDE {call}")), "QUEUED");
    }
    let replies: Vec<Vec<i64>> = server.run("EXEC");
    assert_eq!(
        replies,
        [
            [1, 2, 1, 0, 60_000, 60_000],
            [1, 2, 0, 0, 60_000, 60_000],
            [0, 2, 0, 59_998, 59_999, 60_000],
            [1, 2, 0, 0, 60_000, 60_000],
        ]
    );
    assert_eq!(server.entries("k"), ["1000000 a1+1", "1000001 a2+1"]);
}

#[test]
fn an_error_in_a_transaction_stops_nothing_else() {
    let server = Server::start();
    let mut wire = server.wire();
    server.does("SET text:{k} v");
    wire.ask("MULTI");
    for call in ["k 60s 2 AT 1000000", "text:{k} 60s 2", "k 60s x", "k 60s 2 AT 1000001"] {
        assert_eq!(wire.ask(&format!("RL.SLIDE {call}")), "+QUEUED\r\n");
    }
    let answer = wire.ask("EXEC");
    assert!(
        answer.starts_with("*4\r\n*6\r\n:1\r\n:2\r\n:1\r\n:0\r\n:60000\r\n:60000\r\n-WRONGTYPE "),
        "{answer}"
    );
    assert!(answer.contains("\r\n-ERR "), "{answer}");
    assert!(answer.ends_with("\r\n*6\r\n:1\r\n:2\r\n:0\r\n:0\r\n:60000\r\n:60000\r\n"), "{answer}");
}

#[test]
fn a_transaction_is_propagated_as_one() {
    let server = Setup::new().with_aof().start();
    server.slide("k 60s 9 AT 1000000");
    let mut journal = server.journal();
    for call in [
        "MULTI",
        "RL.SLIDE k 60s 9 AT 1000001",
        "RL.SLIDE k 60s 0",
        "RL.SLIDE k 60s 9 AT 1000002",
        "EXEC",
    ] {
        server.does(call);
    }
    assert_eq!(journal.commands(), ["MULTI", "ZADD k 1000001 a2+1", "ZADD k 1000002 a3+1", "EXEC"]);
}

#[test]
fn a_script_may_call_it() {
    let server = Server::start();
    let run = |arguments: &str| six_fields(eval(&server, "EVAL", CALL_SLIDE, arguments).unwrap());
    assert_eq!(run("60s 2 AT 1000000"), [1, 2, 1, 0, 60_000, 60_000]);
    assert_eq!(run("60s 2 COST 2 AT 1000001"), [0, 2, 1, 59_999, 59_999, 60_000]);
    assert_eq!(run("60s 2 COST 2 FORCE AT 1000001"), [0, 2, 0, 60_000, 60_000, 60_000]);
    assert_eq!(server.entries("k"), ["1000000 a1+1", "1000001 a3+2"]);
}

#[test]
fn a_script_may_call_it_again_and_again() {
    let server = Server::start();
    let script = "local passed = 0
        for i = 1, 1000 do passed = passed + redis.call('RL.SLIDE', KEYS[1], unpack(ARGV))[1] end
        return passed";
    assert_eq!(eval(&server, "EVAL", script, "60s 300"), Ok(Value::Int(300)));
    assert_eq!(server.run::<i64>("ZCARD k"), 300);
    assert_eq!(server.slide("k 60s 300")[..3], [0, 300, 0]);
}

#[test]
fn a_script_is_propagated_as_its_writes() {
    let server = Setup::new().with_aof().start();
    server.slide("k 60s 9 AT 1000000");
    let mut journal = server.journal();
    let twice = "redis.call('RL.SLIDE', KEYS[1], unpack(ARGV)) return redis.call('RL.SLIDE', KEYS[1], unpack(ARGV))";
    eval(&server, "EVAL", twice, "60s 9 AT 1000001").unwrap();
    assert_eq!(journal.commands(), ["MULTI", "ZADD k 1000001 a2+1", "ZADD k 1000001 a3+1", "EXEC"]);
    eval(&server, "EVAL", twice, "60s 0 AT 1000001").unwrap();
    assert!(journal.commands().is_empty());
}

#[test]
fn a_script_catches_its_errors() {
    let server = Server::start();
    let caught = "local answer = redis.pcall('RL.SLIDE', KEYS[1], unpack(ARGV)) return answer.err";
    let error = |arguments: &str| -> String {
        redis::from_redis_value(eval(&server, "EVAL", caught, arguments).unwrap()).unwrap()
    };
    assert_eq!(error("60 5"), "ERR window '60' is 60 milliseconds: write 60ms, or 60s for seconds");
    server.does("SET k v");
    assert!(error("60s 5").starts_with("WRONGTYPE"));
    // Uncaught, it ends the script; servers before 7.0 put words of their own before it.
    assert!(eval(&server, "EVAL", CALL_SLIDE, "60s 5").unwrap_err().contains("WRONGTYPE"));
}

#[test]
fn a_read_only_script_may_not_call_it() {
    let server = Server::start();
    if server.lacks("EVAL_RO", "eval_ro") {
        return;
    }
    for arguments in ["60s 5", "60s 0", "60s 5 COST 0"] {
        let error = eval(&server, "EVAL_RO", CALL_SLIDE, arguments).unwrap_err();
        assert!(error.contains("read-only script"), "{error}");
        assert!(eval(&server, "EVAL", CALL_SLIDE, arguments).is_ok());
    }
    assert_eq!(server.run::<i64>("ZCARD k"), 1);
}

#[test]
fn a_function_may_call_it() {
    let server = Server::start();
    if server.lacks("FUNCTION", "function") {
        return;
    }
    let library = "#!lua name=limits
        redis.register_function('limit', function(keys, args) return redis.call('RL.SLIDE', keys[1], unpack(args)) end)";
    assert_eq!(server.args::<String>(&["FUNCTION", "LOAD", library]), "limits");
    let reply = server.try_run("FCALL limit 1 k 60s 2 AT 1000000").unwrap();
    assert_eq!(six_fields(reply), [1, 2, 1, 0, 60_000, 60_000]);
    assert_eq!(server.slide("k 60s 2 AT 1000000"), [1, 2, 0, 0, 60_000, 60_000]);
    let error = server.error("FCALL_RO limit 1 k 60s 2");
    assert!(error.contains("read-only") || error.contains("write"), "{error}");
}
