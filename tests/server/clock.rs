//! A clock that a test moves, and a server that goes by it.
//!
//! The server preloads a shim, `clock.c`, and asks that for the time instead of the system. Only the
//! time of day is moved: what the server waits for and measures goes on as it is.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use crate::harness::{Dir, Server, Setup, server_is_at_least, shared_library};

/// A moment to freeze a clock at: in 2030, where windows of all usual lengths begin.
pub const START_MS: i64 = 22_000 * DAY_MS;
pub const MINUTE_MS: i64 = 60_000;
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
pub const DAY_MS: i64 = 24 * HOUR_MS;
pub const TEN_YEARS_MS: i64 = 3_650 * DAY_MS;

/// Where the words of the shared file are.
const OFFSET_AT: u64 = 0;
const FROZEN_AT: u64 = 8;

/// The frozen time of a clock that runs.
const RUNS: i64 = i64::MIN;

/// Longer than the millisecond for which Valkey, from 9.1 on, reckons the time by its processor's clock
/// before it looks at the time of day again. Others look each time.
const NOTICED_AFTER: Duration = Duration::from_micros(1_500);

/// A clock in a file, which any number of servers may go by. It must outlive them.
///
/// The next command after a move goes by it. A move is one write of one word; should a server see half of
/// it, it sees some other time of a like size.
pub struct Clock {
    words: File,
    dir: Dir,
}

impl Clock {
    /// A clock that runs with the real time.
    pub fn running() -> Clock {
        let dir = Dir::fresh();
        fs::write(dir.join("clock.so"), shim()).unwrap();
        let file = File::options().read(true).write(true).create_new(true).open(dir.join("words"));
        let clock = Clock { words: file.unwrap(), dir };
        clock.release();
        clock
    }

    /// A clock that stands still at [`START_MS`].
    pub fn frozen() -> Clock {
        let clock = Clock::running();
        clock.freeze_at(START_MS);
        clock
    }

    /// What a server that goes by this clock is started with.
    pub fn setup(&self) -> Setup {
        let shim = self.dir.join("clock.so");
        Setup::new().env("LD_PRELOAD", shim).env("RL_CLOCK", self.dir.join("words"))
    }

    /// Starts a server that goes by this clock.
    pub fn server(&self) -> Server {
        self.setup().start()
    }

    /// Moves it by so many milliseconds, back if they are negative, whether it stands or runs.
    pub fn step_by(&self, by_ms: i64) {
        let at = if self.read(FROZEN_AT) == RUNS { OFFSET_AT } else { FROZEN_AT };
        self.write(at, self.read(at) + by_ms * 1_000);
    }

    /// It stands still at so many Unix milliseconds from now on.
    pub fn freeze_at(&self, at_ms: i64) {
        self.write(FROZEN_AT, at_ms * 1_000);
    }

    /// It runs again, with the real time.
    pub fn release(&self) {
        self.write(OFFSET_AT, 0);
        self.write(FROZEN_AT, RUNS);
    }

    fn read(&self, at: u64) -> i64 {
        let mut word = [0; 8];
        self.words.read_exact_at(&mut word, at).unwrap();
        i64::from_ne_bytes(word)
    }

    fn write(&self, at: u64, word: i64) {
        self.words.write_all_at(&word.to_ne_bytes(), at).unwrap();
        if server_is_at_least(9, 1) {
            thread::sleep(NOTICED_AFTER);
        }
    }
}

/// A call was denied with this wait: asked 1 ms before it is over it is denied again, and when it is over
/// admitted. Moves the clock to there.
pub fn assert_wait(clock: &Clock, server: &Server, call: &str, wait_ms: i64) {
    clock.step_by(wait_ms - 1);
    let sooner = server.verdict(call);
    assert_eq!((sooner[0], sooner[3]), (0, 1), "{call}, 1 ms before {wait_ms} are over");
    clock.step_by(1);
    assert_eq!(server.verdict(call)[0], 1, "{call}, after {wait_ms}");
}

/// The shim, compiled once.
fn shim() -> &'static [u8] {
    static SHIM: OnceLock<Vec<u8>> = OnceLock::new();
    SHIM.get_or_init(|| {
        let dir = Dir::fresh();
        fs::read(shared_library(&dir, "clock.c")).unwrap()
    })
}
