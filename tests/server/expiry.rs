//! Every key expires: late enough that nothing counted is lost, soon enough that idle keys go, and
//! seldom moved. Expiries run on the server's clock whatever `AT` says.

use std::ops::RangeInclusive;

use crate::harness::{Server, Setup, wait_until};

/// Runs an admission and returns when its key expires, with the bounds that the documentation sets:
/// `least_ms` after the call, and at most a quarter of the longest window plus one second more.
fn admit(server: &Server, call: &str, least_ms: i64, window_ms: i64) -> (i64, RangeInclusive<i64>) {
    let before = server.now();
    let reply = server.slide(call);
    let after = server.now();
    assert_eq!(reply[0], 1, "{call} is admitted");
    let key = call.split_once(' ').unwrap().0;
    (server.expiry(key), before + least_ms..=after + least_ms + window_ms / 4 + 1000)
}

#[test]
fn a_key_expires_when_its_entries_have_left_and_not_much_later() {
    let server = Server::start();
    let now = server.now();
    for (call, least_ms, window_ms) in [
        ("a 60s 5".to_string(), 60_000, 60_000),
        ("b 60s 5 10h 9 5m 7".to_string(), 36_000_000, 36_000_000),
        ("c 1ms 5 1h 5".to_string(), 3_600_000, 3_600_000),
        ("d 3650d 5".to_string(), 315_360_000_000, 315_360_000_000),
        // The expiry counts from the server's now, not from the time given.
        ("e 60s 5 AT 0".to_string(), 60_000, 60_000),
        ("f 60s 5 AT 1000000".to_string(), 60_000, 60_000),
        (format!("g 60s 5 AT {}", now + 86_400_000), 60_000, 60_000),
        // Rounded up to 1800000, the entry stays 799 s longer.
        ("h 1h 5 PRECISION 30m AT 1001000".to_string(), 4_399_000, 3_600_000),
        ("i 1h 5 COST 5 FORCE".to_string(), 3_600_000, 3_600_000),
    ] {
        let (expiry, bounds) = admit(&server, &call, least_ms, window_ms);
        assert!(bounds.contains(&expiry), "{call}: expires at {expiry}, not in {bounds:?}");
    }
}

#[test]
fn a_late_request_keeps_the_key_until_its_stamp_has_left() {
    let server = Server::start();
    server.slide("k 60s 5 AT 1000000");
    let (expiry, bounds) = admit(&server, "k 60s 5 AT 900000", 160_000, 60_000);
    assert!(bounds.contains(&expiry), "expires at {expiry}, not in {bounds:?}");
    // No stamp that is believed leaves later than in three windows.
    let (expiry, bounds) = admit(&server, "k 60s 5 AT 400000", 180_000, 60_000);
    assert!(bounds.contains(&expiry), "expires at {expiry}, not in {bounds:?}");
}

#[test]
fn most_calls_do_not_move_the_expiry() {
    let server = Server::start();
    let (first, _) = admit(&server, "k 60s 50", 60_000, 60_000);
    for _ in 0..20 {
        assert_eq!(admit(&server, "k 60s 50", 60_000, 60_000).0, first);
    }
    // Earlier than the least, it is pushed out.
    server.does("PEXPIRE k 59999");
    let (pushed, bounds) = admit(&server, "k 60s 50", 60_000, 60_000);
    assert!(bounds.contains(&pushed), "expires at {pushed}, not in {bounds:?}");
}

#[test]
fn a_denial_does_not_move_the_expiry() {
    let server = Server::start();
    server.slide("k 60s 1");
    server.does("PEXPIRE k 30000");
    let expiry = server.expiry("k");
    assert_eq!(server.slide("k 60s 1")[0], 0);
    assert_eq!(server.slide("k 60s 1 COST 0")[0], 1);
    assert_eq!(server.expiry("k"), expiry);
    let (pushed, bounds) = admit(&server, "k 60s 2", 60_000, 60_000);
    assert!(bounds.contains(&pushed), "an admission moves it");
}

#[test]
fn a_shorter_window_does_not_shorten_the_expiry() {
    let server = Server::start();
    let (long, bounds) = admit(&server, "k 10h 5", 36_000_000, 36_000_000);
    assert!(bounds.contains(&long));
    assert_eq!(server.slide("k 60s 5")[0], 1);
    assert_eq!(server.expiry("k"), long);
    // A longer one pushes it out.
    let (longer, bounds) = admit(&server, "k 20h 5", 72_000_000, 72_000_000);
    assert!(bounds.contains(&longer));
}

#[test]
fn a_key_without_an_expiry_gets_one_at_the_next_admission() {
    let server = Server::start();
    server.slide("persisted 60s 2");
    assert_eq!(server.run::<i64>("PERSIST persisted"), 1);
    server.plant("planted", &["1000000 a1+1"]);
    for key in ["persisted", "planted"] {
        assert_eq!(server.expiry(key), -1);
        assert_eq!(server.slide(&format!("{key} 60s 0"))[0], 0);
        assert_eq!(server.expiry(key), -1, "a denial writes nothing");
        let (expiry, bounds) = admit(&server, &format!("{key} 60s 2"), 60_000, 60_000);
        assert!(bounds.contains(&expiry), "{key} expires at {expiry}, not in {bounds:?}");
    }
}

#[test]
fn a_key_keeps_an_expiry_when_all_its_old_entries_go() {
    let server = Server::start();
    let stale = |n: usize| {
        (1..=n).map(|total| format!("{} {}", 1_000_000 + total, entry(total))).collect::<Vec<_>>()
    };
    // One entry; as many as one call may trim; so many that the log is dropped whole.
    for entries in [1, 128, 129] {
        for expiry in ["PERSIST k", "PEXPIRE k 1000", "PEXPIRE k 65000"] {
            server.does("DEL k");
            server.plant("k", &stale(entries));
            server.does(expiry);
            let (expiry_ms, bounds) = admit(&server, "k 60s 5 AT 9000000", 60_000, 60_000);
            assert_eq!(server.run::<i64>("ZCARD k"), 1);
            assert!(
                bounds.contains(&expiry_ms),
                "{entries} entries, {expiry}: {expiry_ms} is not in {bounds:?}"
            );
        }
    }
}

#[test]
fn a_merge_of_the_only_member_keeps_the_expiry() {
    let server = Server::start();
    let (first, _) = admit(&server, "k 60s 9 PRECISION 10s AT 1000000", 60_000, 60_000);
    let (merged, _) = admit(&server, "k 60s 9 PRECISION 10s AT 1000000", 60_000, 60_000);
    assert_eq!(server.entries("k"), ["1000000 a2+2"]);
    assert_eq!(merged, first);
}

#[test]
fn a_log_from_far_ahead_starts_afresh_with_a_fresh_expiry() {
    let server = Server::start();
    for expiry in ["PERSIST k", "PEXPIRE k 1000", "PEXPIRE k 65000"] {
        server.does("DEL k");
        server.plant("k", &[format!("{} a1+1", server.now() + 3_600_000)]);
        server.does(expiry);
        let (expiry_ms, bounds) = admit(&server, "k 60s 5", 60_000, 60_000);
        assert!(bounds.contains(&expiry_ms), "{expiry}: {expiry_ms} is not in {bounds:?}");
    }
}

#[test]
fn an_expired_key_is_a_fresh_one() {
    let server = Server::start();
    server.does("DEBUG SET-ACTIVE-EXPIRE 0");
    server.slide("k 60s 3 COST 3");
    assert_eq!(server.slide("k 60s 3")[0], 0);
    server.does("PEXPIRE k 1");
    let over = server.now() + 2;
    wait_until("the key's expiry", || server.now() > over);
    let (expiry, bounds) = admit(&server, "k 60s 3", 60_000, 60_000);
    assert!(bounds.contains(&expiry), "expires at {expiry}, not in {bounds:?}");
    assert!(server.entries("k")[0].ends_with(" a1+1"));
}

#[test]
fn an_idle_limiter_goes() {
    let server = Setup::new().option("hz 100").start();
    server.slide("k 20ms 5");
    assert_ne!(server.expiry("k"), -1);
    wait_until("an idle key to expire", || server.run::<i64>("DBSIZE") == 0);
}

fn entry(total: usize) -> String {
    let digits = total.to_string();
    format!("{}{digits}+1", (b'a' + digits.len() as u8 - 1) as char)
}
