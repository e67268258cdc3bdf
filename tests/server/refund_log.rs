//! `RL.REFUND` on a log: the newest units go first, the last entry touched shrinks, and what is left
//! counts on as if the units had never been charged.

use crate::dataset::leaves_everything;
use crate::harness::{Server, Setup, compact_entries_option};
use crate::random::Random;

const LOG: [&str; 3] = ["1000000 a2+2", "1001000 a5+3", "1002000 a9+4"];

fn renew(server: &Server, log: &[&str]) {
    server.does("DEL k");
    server.plant("k", log);
    server.does("PEXPIRE k 600000");
}

#[test]
fn the_newest_units_go_first() {
    let server = Server::start();
    for (units, taken, left) in [
        (1, 1, ["1000000 a2+2", "1001000 a5+3", "1002000 a8+3"].as_slice()),
        (3, 3, &["1000000 a2+2", "1001000 a5+3", "1002000 a6+1"]),
        (4, 4, &["1000000 a2+2", "1001000 a5+3"]),
        (5, 5, &["1000000 a2+2", "1001000 a4+2"]),
        (7, 7, &["1000000 a2+2"]),
        (8, 8, &["1000000 a1+1"]),
        (9, 9, &[]),
        (10, 9, &[]),
        (9_007_199_254_740_991_i64, 9, &[]),
    ] {
        renew(&server, &LOG);
        let expiry = server.expiry("k");
        assert_eq!(server.refund(&format!("k {units}")), taken, "{units}");
        assert_eq!(server.entries("k"), left, "{units}");
        let expected = if left.is_empty() { -2 } else { expiry };
        assert_eq!(server.expiry("k"), expected, "{units}: an expiry stays as it is");
    }
    assert_eq!(server.run::<i64>("EXISTS k"), 0);
}

#[test]
fn what_is_given_back_can_be_taken_again() {
    let server = Server::start();
    server.slide("k 60s 10 COST 7 AT 1000000");
    server.slide("k 60s 10 COST 3 AT 1010000");
    assert_eq!(server.slide("k 60s 10 AT 1010000")[0], 0);
    assert_eq!(server.refund("k 5 AT 1010000"), 5);
    assert_eq!(server.peek("k 60s 10 AT 1010000"), [1, 10, 5, 0, 50_000, 60_000]);
    assert_eq!(server.slide("k 60s 10 COST 5 AT 1010000"), [1, 10, 0, 0, 60_000, 60_000]);
    assert_eq!(server.entries("k"), ["1000000 a5+5", "1010000 b10+5"]);
    assert_eq!(server.slide("k 60s 10 COST 6 AT 1010000"), [0, 10, 0, 60_000, 60_000, 60_000]);
    // Any command's units go, whoever took them.
    assert_eq!(server.refund("k 100 AT 1010000"), 10);
    assert_eq!(server.slide("k 60s 10 AT 1010000"), [1, 10, 9, 0, 60_000, 60_000]);
}

#[test]
fn totals_used_again_stay_unique_and_in_order() {
    let server = Server::start();
    renew(&server, &["1000000 a7+7", "1000000 b10+3"]);
    assert_eq!(server.refund("k 1"), 1);
    assert_eq!(server.entries("k"), ["1000000 a7+7", "1000000 a9+2"]);
    server.slide("k 60s 99 AT 1000000");
    assert_eq!(server.entries("k"), ["1000000 a7+7", "1000000 a9+2", "1000000 b10+1"]);
    assert_eq!(server.refund("k 3"), 3);
    assert_eq!(server.entries("k"), ["1000000 a7+7"]);
    for cost in [1, 1, 1, 2] {
        server.slide(&format!("k 60s 99 COST {cost} AT 1000000"));
    }
    let log = ["a7+7", "a8+1", "a9+1", "b10+1", "b12+2"].map(|member| format!("1000000 {member}"));
    assert_eq!(server.entries("k"), log);
    assert_eq!(server.peek("k 60s 99 AT 1000000")[2], 99 - 12);
}

#[test]
fn a_refund_across_the_wrap_leaves_valid_entries() {
    let server = Server::start();
    let before = "1000000 t18446744073709551610+5";
    for (units, newest) in [
        (3, "1000001 a1+7"),
        // Total 0, and a total before the wrap, are as valid as a cost above the total.
        (4, "1000001 a0+6"),
        (6, "1000001 t18446744073709551614+4"),
        (9, "1000001 t18446744073709551611+1"),
    ] {
        renew(&server, &[before]);
        server.slide("k 60s 99 COST 10 AT 1000000");
        assert_eq!(server.entries("k"), [before, "1000001 a4+10"]);
        assert_eq!(server.refund(&format!("k {units}")), units);
        assert_eq!(server.entries("k"), [before, newest]);
        assert_eq!(server.peek("k 60s 99 AT 1000001")[2], 99 - (15 - units));
        // Added to again, order holds: by total, or by a stamp behind the wrap.
        server.slide("k 60s 99 COST 8 AT 1000001");
        assert_eq!(server.entries("k")[..2], [before, newest]);
        assert_eq!(server.peek("k 60s 99 AT 1000001")[2], 99 - (15 - units) - 8);
        assert_eq!(server.refund("k 8"), 8);
        assert_eq!(server.entries("k"), [before, newest]);
    }
    assert_eq!(server.refund("k 3"), 3);
    assert_eq!(server.entries("k"), ["1000000 t18446744073709551608+3"]);
    assert_eq!(server.refund("k 9"), 3);
    assert_eq!(server.run::<i64>("EXISTS k"), 0);
}

#[test]
fn a_total_that_wraps_again_is_stamped_behind_the_newest() {
    let server = Server::start();
    renew(&server, &["1000000 t18446744073709551610+5", "1000001 a4+10"]);
    assert_eq!(server.refund("k 6"), 6);
    server.slide("k 60s 99 COST 3 AT 1000001");
    let newest = ["1000001 t18446744073709551614+4", "1000002 a1+3"];
    assert_eq!(server.entries("k")[1..], newest);
}

#[test]
fn at_most_4096_entries_a_call() {
    let server = Server::start();
    let log: Vec<String> = (100_000..105_000).map(|i| format!("{i} f{i}+1")).collect();
    server.plant("k", &log);
    assert_eq!(server.refund("k 5000"), 4096);
    assert_eq!(server.entries("k"), log[..904]);
    assert_eq!(server.refund("k 5000"), 904);
    assert_eq!(server.run::<i64>("EXISTS k"), 0);
}

#[test]
fn the_entry_that_shrinks_is_one_of_the_4096() {
    let server = Server::start();
    let log: Vec<String> =
        (0..5_000).map(|i| format!("{} f{}+2", 1_000 + i, 100_000 + 2 * i)).collect();
    for (units, taken, left) in [(8_191, 8_191, 905), (8_192, 8_192, 904), (8_193, 8_192, 904)] {
        server.does("DEL k");
        server.plant("k", &log);
        assert_eq!(server.refund(&format!("k {units}")), taken);
        assert_eq!(server.run::<i64>("ZCARD k"), left, "{units}");
    }
}

#[test]
fn a_merged_entry_shrinks_like_any_other() {
    let server = Server::start();
    for _ in 0..3 {
        server.slide("k 60s 99 COST 4 PRECISION 10s AT 1000001");
    }
    assert_eq!(server.refund("k 7"), 7);
    assert_eq!(server.entries("k"), ["1010000 a5+5"]);
    server.slide("k 60s 99 COST 4 PRECISION 10s AT 1000001");
    assert_eq!(server.entries("k"), ["1010000 a9+9"]);
}

/// What a log holds, by the documentation's words alone: newest last, a stamp and units each.
#[derive(Default)]
struct Units(Vec<(u64, u64)>);

impl Units {
    fn take_back(&mut self, units: u64) -> u64 {
        let mut taken = 0;
        while let Some((_, cost)) = self.0.last_mut().filter(|_| taken < units) {
            let part = (units - taken).min(*cost);
            taken += part;
            *cost -= part;
            self.0.retain(|(_, cost)| *cost > 0);
        }
        taken
    }

    /// As it is stored, if no entry was ever trimmed.
    fn entries(&self) -> Vec<String> {
        let mut total = 0;
        let member = |(stamp, cost): &(u64, u64)| {
            total += cost;
            let digits = total.to_string();
            let letter = char::from(b'a' + digits.len() as u8 - 1);
            format!("{stamp} {letter}{digits}+{cost}")
        };
        self.0.iter().map(member).collect()
    }
}

#[test]
fn a_random_stream_leaves_what_a_list_of_units_leaves() {
    for most in [128, 0] {
        let server = Setup::new().option(&compact_entries_option(most)).start();
        let mut random = Random::seeded();
        let (mut units, mut stamp) = (Units::default(), 1_000_000);
        for _ in 0..400 {
            if random.below(3) == 0 {
                let asked = 1 + random.below(12);
                let taken = server.refund(&format!("k {asked}"));
                assert_eq!(taken as u64, units.take_back(asked));
            } else {
                // An empty log takes any stamp; a filled one none before its newest.
                stamp += random.below(3);
                let cost = 1 + random.below(9);
                server.slide(&format!("k 1h 9999 COST {cost} AT {stamp}"));
                units.0.push((stamp, cost));
            }
            assert_eq!(server.entries("k"), units.entries());
        }
        assert!(units.0.len() > 20, "the log has grown");
    }
}

/// A refund of this log gets an error, and changes nothing.
fn refuses_log(server: &Server, log: &[&str], units: u64) {
    renew(server, log);
    let what = format!("{log:?} less {units}");
    let refund = || match server.try_run(&format!("RL.REFUND k {units}")) {
        Err(error) => error,
        Ok(taken) => panic!("{what}: {taken:?} was taken"),
    };
    let error = leaves_everything(server, &what, refund);
    assert!(error.starts_with("ERR "), "{what}: {error}");
}

#[test]
fn foreign_entries_leave_all_as_it_is() {
    let server = Server::start();
    for (log, units) in [
        // The newest.
        (["1000000 a2+2", "1001000 a5+3", "1002000 alice"], 1),
        (["1000000 a2+2", "1001000 a5+3", "1002000.5 a9+4"], 1),
        (["1000000 a2+2", "1001000 a5+3", "-1 a9+4"], 8),
        // One that the refund would take or shrink.
        (["1000000 a2+2", "1001000 alice", "1002000 a9+4"], 5),
        (["1000000 a2+2", "1001000 b5+3", "1002000 a9+4"], 6),
        (["1000000 alice", "1001000 a5+3", "1002000 a9+4"], 8),
        (["1000000 alice", "1001000 a5+3", "1002000 a9+4"], 100),
        // The one behind the part taken.
        (["1000000 a2+2", "1001000 alice", "1002000 a9+4"], 4),
        (["1000000 alice", "1001000 a5+3", "1002000 a9+4"], 7),
    ] {
        refuses_log(&server, &log, units);
    }
}

#[test]
fn the_oldest_is_looked_at_by_every_refund() {
    let server = Server::start();
    let log = ["1000000 alice", "1001000 a5+3", "1002000 a9+4"];
    for units in [1, 3, 5, 6] {
        refuses_log(&server, &log, units);
    }
}
