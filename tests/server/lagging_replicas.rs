//! Replicas that are stopped while their primary goes on: however far they fall behind, they hold the
//! same in the end, and the primary answers as always meanwhile.

use crate::client::Client;
use crate::harness::{Server, Setup, wait_until};
use crate::load::{Load, Progress, connections};
use crate::replicas::assert_same;
use crate::replication::{primary_with, replica_of, wait_for_replicas};

/// A primary, and replicas with and without the module.
struct Bench {
    primary: Server,
    replicas: [Server; 2],
}

/// A server that stands still until this is let go of.
struct Stopped(libc::pid_t);

impl Stopped {
    fn of(server: &Client) -> Stopped {
        let stopped = Stopped(server.info("process_id").parse().unwrap());
        stopped.signal(libc::SIGSTOP);
        stopped
    }

    /// Not by a program: when one ends while it is still being started, it interrupts reads elsewhere in
    /// these tests.
    #[allow(unsafe_code, reason = "the standard library sends no signals")]
    fn signal(&self, signal: libc::c_int) {
        // SAFETY: these are two numbers, and the process is one that the test has started and not ended.
        assert_eq!(unsafe { libc::kill(self.0, signal) }, 0);
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.signal(libc::SIGCONT);
    }
}

impl Bench {
    fn start(setup: Setup) -> Bench {
        let primary = primary_with(setup);
        let replicas = [Setup::new(), Setup::new().without_module()];
        let replicas = replicas.map(|setup| replica_of(&primary, setup));
        wait_for_first_write(&primary);
        Bench { primary, replicas }
    }

    fn count(&self, field: &str) -> usize {
        self.primary.info(field).parse().unwrap()
    }

    /// Something happens under load while the replicas stand still. Then they must catch up, by so many
    /// partial synchronisations and so many full ones.
    fn catches_up(&self, after: [usize; 2], meanwhile: impl FnOnce(&Progress)) {
        let counts = || ["sync_partial_ok", "sync_full"].map(|field| self.count(field));
        let before = counts();
        let load = Load::of(&self.primary);
        let ((), asked) = load.during(connections(&self.primary), |progress| {
            let stopped = self.replicas.each_ref().map(|replica| Stopped::of(replica));
            meanwhile(progress);
            self.primary.does("SET unseen write");
            assert_eq!(self.primary.run::<i64>("WAIT 1 1"), 0, "both are behind");
            drop(stopped);
            let expected = [before[0] + after[0], before[1] + after[1]];
            wait_until("the synchronisations", || counts() == expected);
            progress.wait_for_answers(50);
        });
        assert_eq!(self.primary.slide("last 1h 9")[0], 1);
        wait_for_replicas(&self.primary, 2);
        self.replicas.iter().for_each(|replica| assert_same(replica, &self.primary));
        load.assert_all_go_on(&self.primary, &asked);
        assert_eq!(counts(), [before[0] + after[0], before[1] + after[1]]);
    }
}

/// Right after its first synchronisation a replica may have to wait for what comes next.
fn wait_for_first_write(primary: &Client) {
    primary.does("SET first write");
    wait_for_replicas(primary, 2);
}

#[test]
fn on_a_link_that_holds_they_catch_up() {
    let bench = Bench::start(Setup::new());
    bench.catches_up([0, 0], |progress| progress.wait_for_answers(500));
}

#[test]
fn cut_off_they_go_on_from_the_backlog() {
    let bench = Bench::start(Setup::new().option("repl-backlog-size 64mb"));
    bench.catches_up([2, 0], |progress| {
        progress.wait_for_answers(100);
        assert_eq!(bench.primary.run::<i64>("CLIENT KILL TYPE replica"), 2);
        progress.wait_for_answers(300);
    });
}

/// More is written than the links and their buffers take, so that the primary gives them up.
#[test]
fn beyond_the_backlog_they_start_anew() {
    let setup = Setup::new().option("repl-backlog-size 16kb");
    let bench = Bench::start(setup.option("client-output-buffer-limit replica 1mb 0 0"));
    let value = "v".repeat(1_000_000);
    bench.catches_up([0, 2], |progress| {
        wait_until("the replicas to be given up", || {
            bench.primary.does(&format!("SET filler {value}"));
            bench.count("connected_slaves") == 0
        });
        progress.wait_for_answers(100);
    });
}
