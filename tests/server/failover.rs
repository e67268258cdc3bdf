//! A primary dies or steps down under load, and its replica takes its place: limits go on, and what is
//! admitted beyond them is what the replica had not received, counted here.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use redis::Value;

use crate::client::{Client, six_fields};
use crate::clock::DAY_MS;
use crate::dataset::digest;
use crate::harness::{Server, Setup, wait_until};
use crate::redis_py::RedisPy;
use crate::replicas::{calls, cut_off, cuttable_primary, cuttable_replica};
use crate::replication::wait_for_replicas;
use crate::sentinel::Sentinels;

const CLIENTS: usize = 3;

/// Units of a day, more than the clients can take before the test ends; a last call takes the rest.
const LIMIT: i64 = 1_000_000_000;

/// The two limiters, and the commands of which a replica receives one an admission.
const LIMITERS: [(&str, &[&str]); 2] = [("RL.SLIDE", &["zadd"]), ("RL.SWC", &["hset"])];

/// No call is sent again at once to a server that has just refused it.
const PAUSE: Duration = Duration::from_millis(1);

/// A primary, and the replica that will take its place.
fn pair() -> (Server, Server) {
    let old = cuttable_primary(Setup::new());
    let new = cuttable_replica(&old, Setup::new().on_tcp());
    // Right after its first synchronisation a replica may have to wait for what comes next.
    old.does("SET first write");
    wait_for_replicas(&old, 1);
    (old, new)
}

/// Clients of one limiter, and what they were told.
struct Load {
    call: String,
    /// The old primary's port, and the new one's.
    ports: [u16; 2],
    /// Which of the two the clients take for the primary.
    primary: AtomicUsize,
    /// A client lets pass only what a replica has confirmed.
    waits: bool,
    /// Calls that were answered, and those of them that the clients let pass, by either server.
    answered: AtomicI64,
    passed: [AtomicI64; 2],
    stop: AtomicBool,
}

/// Stops the clients, also when the test fails.
struct Stopping<'a>(&'a Load);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Relaxed);
    }
}

impl Load {
    /// Clients of `limiter`, of the old and the new primary on these ports.
    fn of(limiter: &str, ports: [u16; 2]) -> Load {
        Load {
            // One time for all calls, so that nothing leaves and no window begins.
            call: format!("{limiter} k 1d {LIMIT} AT 864000000000"),
            ports,
            primary: AtomicUsize::new(0),
            waits: false,
            answered: AtomicI64::new(0),
            passed: Default::default(),
            stop: AtomicBool::new(false),
        }
    }

    /// The clients ask while something happens to the primary.
    fn during(&self, happens: impl FnOnce()) {
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| self.ask());
            }
            let _stopping = Stopping(self);
            self.wait_for_more(500);
            happens();
            self.wait_for_more(50);
        });
    }

    /// Waits until the clients have so many more answers.
    fn wait_for_more(&self, more: i64) {
        let enough = self.answered.load(Relaxed) + more;
        wait_until("answers", || self.answered.load(Relaxed) >= enough);
    }

    /// From now on the clients ask the new primary.
    fn tell(&self) {
        self.primary.store(1, Relaxed);
    }

    /// Asks until it is stopped; whenever the server refuses or is gone, looks for the primary again.
    fn ask(&self) {
        while !self.stop.load(Relaxed) {
            let server = self.primary.load(Relaxed);
            if let Err(error) = self.ask_server(server) {
                let refused = matches!(error.code(), Some("READONLY" | "UNBLOCKED" | "LOADING"));
                assert!(refused || error.is_io_error(), "{error}");
                thread::sleep(PAUSE);
            }
        }
    }

    fn ask_server(&self, server: usize) -> redis::RedisResult<()> {
        let client = redis::Client::open(("127.0.0.1", self.ports[server]))?;
        let mut connection = client.get_connection()?;
        while !self.stop.load(Relaxed) && self.primary.load(Relaxed) == server {
            let reply: Value = command(&self.call).query(&mut connection)?;
            assert_eq!(six_fields(reply)[0], 1, "nobody is denied before the limit");
            let confirmed = !self.waits || command("WAIT 1 10").query::<i64>(&mut connection)? > 0;
            self.passed[server].fetch_add(i64::from(confirmed), Relaxed);
            self.answered.fetch_add(1, Relaxed);
        }
        Ok(())
    }
}

/// The words of a line as a command.
fn command(line: &str) -> redis::Cmd {
    let mut words = line.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    command.arg(words.collect::<Vec<_>>());
    command
}

/// What the new primary had received of the old one, and the units that passed beyond the limit.
struct Outcome {
    received: i64,
    beyond: i64,
}

/// Fails unless the limit goes on at the new primary from just what it had received. Takes the rest of
/// it there, and counts.
fn settle(load: &Load, new: &Client, what: &str) -> Outcome {
    let (_, writes) = LIMITERS.iter().find(|(limiter, _)| load.call.starts_with(limiter)).unwrap();
    let received: i64 = writes.iter().map(|write| calls(new, write) as i64).sum();
    let [by_old, by_new] = [0, 1].map(|server| load.passed[server].load(Relaxed));
    let left = new.verdict(&format!("{} COST 0", load.call))[2];
    // Where it waits for what no replica confirms, a client takes units that it does not let pass.
    if !load.waits {
        assert_eq!(left, LIMIT - received - by_new, "{what}: the limit goes on");
    }
    assert_eq!(new.verdict(&format!("{} COST {left}", load.call))[..3], [1, LIMIT, 0], "{what}");
    assert_eq!(new.verdict(&load.call)[..3], [0, LIMIT, 0], "{what}");
    let beyond = by_old + by_new + left - LIMIT;
    println!(
        "{what}: the old primary let {by_old} pass, the new one had received {received}; {} passed \
         beyond the limit",
        beyond.max(0)
    );
    assert!(beyond <= (by_old - received).max(0), "{what}: more than the replica had not received");
    Outcome { received, beyond }
}

/// Makes the replica the primary when it has read all that the lost one had sent.
fn promote(new: &Server, load: &Load) {
    wait_until("the replica's loss", || new.info("master_link_status") == "down");
    new.does("REPLICAOF NO ONE");
    load.tell();
}

// --- By hand ---------------------------------------------------------------------------------------

/// The primary goes on for a while when its replica has lost it, and then dies.
#[test]
fn what_the_replica_had_not_received_is_admitted_again_and_no_more() {
    for (limiter, _) in LIMITERS {
        let (old, new) = pair();
        let load = Load::of(limiter, [old.port(), new.port()]);
        let mut unseen = 0;
        load.during(|| {
            cut_off(&old);
            let at_cut = load.passed[0].load(Relaxed);
            load.wait_for_more(200);
            // One answer of each client may have been under way at the cut.
            unseen = load.passed[0].load(Relaxed) - at_cut - CLIENTS as i64;
            drop(old);
            promote(&new, &load);
        });
        let outcome = settle(&load, &new, &format!("{limiter}, cut off and killed"));
        assert!(outcome.received > 0 && outcome.beyond >= unseen, "{unseen} were not seen");
    }
}

#[test]
fn a_primary_that_is_killed_takes_with_it_only_what_it_had_not_sent() {
    for (limiter, _) in LIMITERS {
        let (old, new) = pair();
        let load = Load::of(limiter, [old.port(), new.port()]);
        load.during(|| {
            drop(old);
            promote(&new, &load);
        });
        let outcome = settle(&load, &new, &format!("{limiter}, killed"));
        assert!(outcome.received > 0);
    }
}

#[test]
fn who_lets_pass_only_what_a_replica_confirms_stays_within_the_limit() {
    let (old, new) = pair();
    let load = Load { waits: true, ..Load::of("RL.SLIDE", [old.port(), new.port()]) };
    load.during(|| {
        cut_off(&old);
        load.wait_for_more(20);
        drop(old);
        promote(&new, &load);
    });
    let outcome = settle(&load, &new, "RL.SLIDE with WAIT 1, cut off and killed");
    assert!(outcome.received > 0 && outcome.beyond <= 0);
}

/// The server's own `FAILOVER` holds back writes until the replica has all, calls of the module too.
#[test]
fn a_failover_that_waits_for_the_replica_loses_nothing() {
    for (limiter, _) in LIMITERS {
        let (old, new) = pair();
        let load = Load::of(limiter, [old.port(), new.port()]);
        load.during(|| {
            old.does("FAILOVER");
            wait_until("the promotion", || new.info("role") == "master");
            load.tell();
        });
        let outcome = settle(&load, &new, &format!("{limiter}, FAILOVER"));
        assert_eq!(outcome.beyond, 0);
        assert_follows(&old.another_client(), &new);
    }
}

/// Fails unless the old primary has given up what the new one does not have.
fn assert_follows(old: &Client, new: &Client) {
    wait_until("the old primary's link", || old.info("master_link_status") == "up");
    assert_eq!(new.verdict("RL.SLIDE last 1h 9")[0], 1);
    wait_for_replicas(new, 1);
    assert_eq!(digest(old), digest(new));
}

// --- By Sentinels ----------------------------------------------------------------------------------

#[test]
fn sentinel_replaces_a_primary_that_was_killed() {
    let (old, new) = pair();
    let sentinels = Sentinels::of(old.port());
    let load = Load::of("RL.SLIDE", [old.port(), new.port()]);
    load.during(|| {
        drop(old);
        sentinels.lose_patience();
        wait_until("the failover", || sentinels.name(new.port()));
        load.tell();
    });
    let outcome = settle(&load, &new.another_client(), "RL.SLIDE, killed, and Sentinel");
    assert!(outcome.received > 0);
}

/// Sentinel promotes the replica first and demotes the old primary seconds later: what that one admits
/// in between, to clients that have not heard of it, is lost, and counted.
#[test]
fn sentinel_replaces_a_primary_that_lives() {
    let (old, new) = pair();
    let sentinels = Sentinels::of(old.port());
    let load = Load::of("RL.SLIDE", [old.port(), new.port()]);
    load.during(|| {
        sentinels.fail_over();
        wait_until("the failover", || sentinels.name(new.port()));
        load.tell();
    });
    let outcome = settle(&load, &new.another_client(), "RL.SLIDE, SENTINEL FAILOVER");
    assert!(outcome.received > 0);
}

// --- By a real client ------------------------------------------------------------------------------

/// redis-py asks the Sentinels who the primary is, and goes on while that dies: each answer is the one
/// that follows from those before, and at the new primary from what that had received.
#[test]
fn a_client_that_asks_sentinels_finds_its_limit_at_the_new_primary() {
    let (old, new) = pair();
    let sentinels = Sentinels::of(old.port());
    let mut client = RedisPy::run("sentinel_client.py", sentinels.ports());
    let load = Load::of("RL.SLIDE", [old.port(), new.port()]);
    // A Sentinel cuts the connections of a server that it promotes.
    let held = || new.another_client().run::<i64>("ZCARD k");
    let (answers, received) = thread::scope(|scope| {
        let asking = scope.spawn(|| ask_through(&mut client, &load));
        let _stopping = Stopping(&load);
        load.wait_for_more(300);
        drop(old);
        wait_until("the replica's loss", || new.info("master_link_status") == "down");
        let received = held();
        sentinels.lose_patience();
        wait_until("the failover", || sentinels.name(new.port()));
        load.wait_for_more(100);
        load.stop.store(true, Relaxed);
        (asking.join().unwrap(), received)
    });
    let by_old = answers.len() as i64 - (held() - received);
    let used = (1..=by_old).chain(received + 1..=held());
    let expected: Vec<_> =
        used.map(|used| vec![1, LIMIT, LIMIT - used, 0, DAY_MS, DAY_MS]).collect();
    assert!(answers == expected, "each answer follows: {answers:?}");
    println!(
        "redis-py: the old primary let {by_old} pass, the new one had received {received}; {} passed \
         beyond the limit",
        (by_old - received).max(0)
    );
    // One may have been received and not been answered any more.
    assert!(received > 0 && by_old - received >= -1);
    let left = LIMIT - held();
    assert_eq!(new.another_client().verdict(&format!("{} COST {left}", load.call))[0], 1);
    assert_eq!(client.try_call(&load.call), Ok(vec![0, LIMIT, 0, DAY_MS, DAY_MS, DAY_MS]));
}

/// Asks until it is stopped. The library fails while there is no primary; the answers it got are left.
fn ask_through(client: &mut RedisPy, load: &Load) -> Vec<Vec<i64>> {
    let mut answers = Vec::new();
    while !load.stop.load(Relaxed) {
        match client.try_call(&load.call) {
            Ok(answer) => {
                answers.push(answer);
                load.answered.fetch_add(1, Relaxed);
            }
            Err(_) => thread::sleep(PAUSE),
        }
    }
    answers
}
