//! What the contenders are asked to do: which keys, windows and times, and what they must answer.

use crate::contenders::{Ask, Contender};
use crate::wire::{Reply, Wire, encode_lines};

/// An hour, within which no run ends.
const HOUR_MS: u64 = 3_600_000;

/// The longest window. A counter's begins at multiples of its length: of this one, its half and its
/// quarter the next is in 2027, so no run meets one.
const LONGEST_MS: u64 = 3650 * 24 * HOUR_MS;

/// A limit that no run reaches.
const NEVER: u64 = 1_000_000_000;

/// The option that keeps sorted sets of any size as skiplists.
pub const SKIPLIST: &str = "zset-max-listpack-entries 0";

/// The option that keeps logs of any length exactly.
pub const UNBOUNDED: &str = "rl.max-log-entries 0";

/// Which key a request is for.
#[derive(Clone, Copy)]
pub enum Keys {
    /// There is one.
    One,
    /// Each of so many in turn, in a scattered order.
    Among(u64),
    /// The next one after so many requests.
    Next(u64),
}

impl Keys {
    /// The number of the key of a request, and how many requests for that key came before.
    fn place(self, index: u64) -> (u64, u64) {
        match self {
            Keys::One => (0, index),
            // A prime, so that every key has its turn.
            Keys::Among(keys) => (index * 2_654_435_761 % keys, index / keys),
            Keys::Next(calls) => (index / calls, index % calls),
        }
    }

    /// How many there are in so many requests.
    fn count(self, calls: u64) -> u64 {
        match self {
            Keys::One => 1,
            Keys::Among(keys) => keys,
            Keys::Next(per_key) => calls.div_ceil(per_key),
        }
    }
}

/// A stream of requests. Its keys may be filled before.
#[derive(Clone)]
pub struct Workload {
    /// As it is called in tables.
    pub name: &'static str,
    /// Each window in milliseconds, and its limit.
    pub windows: &'static [(u64, u64)],
    /// The units of a request.
    pub cost: u64,
    /// The ticks that a log may be kept in.
    pub precision_ms: Option<u64>,
    /// Whether its requests may pass.
    pub allowed: bool,
    /// The time from one request to the next, where time matters; else the server's clock counts.
    pub step_ms: Option<u64>,
    /// The requests charged to a key before its first one that counts.
    pub filled: u64,
    /// The keys that they are for.
    pub keys: Keys,
    /// Lines of the server's configuration.
    pub options: &'static [&'static str],
}

/// Admitted to one log that grows all the time, a millisecond between two requests.
pub const GROWING: Workload = Workload {
    name: "admitted to a growing skiplist log",
    windows: &[(HOUR_MS, NEVER)],
    cost: 1,
    precision_ms: None,
    allowed: true,
    step_ms: Some(1),
    filled: 0,
    keys: Keys::One,
    options: &[SKIPLIST],
};

/// The same, where each request takes many units.
pub const COST_500: Workload =
    Workload { name: "admitted to a growing skiplist log, cost 500", cost: 500, ..GROWING };

/// The same, with a second's and a minute's window in the call.
pub const GROWING_THREE: Workload = Workload {
    name: "admitted to a growing skiplist log, three windows",
    windows: &[(1000, NEVER), (60_000, NEVER), (HOUR_MS, NEVER)],
    ..GROWING
};

/// The first request of each key.
pub const FIRST: Workload = Workload {
    name: "admitted, the first of its key",
    keys: Keys::Next(1),
    options: &[],
    ..GROWING
};

/// Admitted to logs that have an entry each, and have ten before the next is taken.
pub const SMALL: Workload = Workload {
    name: "admitted to logs that grow from 1 to 10",
    filled: 1,
    keys: Keys::Next(9),
    ..FIRST
};

/// Admitted to logs in listpacks that have 40 entries each, and 80 before the next is taken.
pub const LISTPACK: Workload = Workload {
    name: "admitted to listpack logs that grow from 40 to 80",
    filled: 40,
    keys: Keys::Next(40),
    ..FIRST
};

/// One in, one out: each admitted request stands in for one that has just left the window.
pub const STEADY: Workload = Workload {
    name: "admitted to a steady skiplist log of 100",
    windows: &[(60_000, 1000)],
    step_ms: Some(600),
    filled: 100,
    ..GROWING
};

/// The same in a listpack.
pub const STEADY_LISTPACK: Workload = Workload {
    name: "admitted to a steady listpack log of 60",
    step_ms: Some(1000),
    filled: 60,
    options: &[],
    ..STEADY
};

/// The same in a small one.
pub const STEADY_SMALL: Workload = Workload {
    name: "admitted to a steady listpack log of 10",
    step_ms: Some(6000),
    filled: 10,
    ..STEADY_LISTPACK
};

/// A hundred requests to each of the 60 ticks that a log is kept in.
pub const PRECISION: Workload = Workload {
    name: "admitted with PRECISION 1s to a log of 60 ticks",
    windows: &[(60_000, NEVER)],
    precision_ms: Some(1000),
    step_ms: Some(10),
    filled: 6000,
    ..STEADY_LISTPACK
};

/// Denied by full logs. There are many, since how a skiplist looks is left to chance.
pub const DENIED: Workload = Workload {
    name: "denied by a skiplist log of 100",
    windows: &[(HOUR_MS, 100)],
    cost: 1,
    precision_ms: None,
    allowed: false,
    step_ms: None,
    filled: 100,
    keys: Keys::Among(50),
    options: &[SKIPLIST],
};

/// The same in a listpack.
pub const DENIED_LISTPACK: Workload =
    Workload { name: "denied by a listpack log of 100", options: &[], ..DENIED };

/// The same, with two longer windows in the call that have room.
pub const DENIED_THREE: Workload = Workload {
    name: "denied by a skiplist log of 100, three windows",
    windows: &[(HOUR_MS, 100), (24 * HOUR_MS, 1000), (168 * HOUR_MS, 10_000)],
    ..DENIED
};

/// Asked of a log that has room.
pub const ROOM: Workload = Workload {
    name: "with room, skiplist log of 100",
    windows: &[(HOUR_MS, 1000)],
    allowed: true,
    ..DENIED
};

/// Counted by one limiter, by the server's clock.
pub const COUNTED: Workload = Workload {
    name: "admitted",
    windows: &[(LONGEST_MS, NEVER)],
    cost: 1,
    precision_ms: None,
    allowed: true,
    step_ms: None,
    filled: 1,
    keys: Keys::One,
    options: &[],
};

/// The same, with two shorter windows in the call.
pub const COUNTED_THREE: Workload = Workload {
    name: "admitted, three windows",
    windows: &[(LONGEST_MS, NEVER), (LONGEST_MS / 2, NEVER), (LONGEST_MS / 4, NEVER)],
    ..COUNTED
};

/// Denied by one limiter.
pub const COUNTED_OUT: Workload = Workload {
    name: "denied",
    windows: &[(LONGEST_MS, 100)],
    allowed: false,
    filled: 100,
    ..COUNTED
};

/// Admitted to a thousand logs that grow all the time.
pub const SPREAD: Workload = Workload {
    name: "admitted to a thousand growing skiplist logs",
    keys: Keys::Among(1000),
    ..GROWING
};

/// One in, one out, where each takes many units.
pub const STEADY_500: Workload = Workload {
    name: "admitted to a steady log of 10 requests, cost 500",
    windows: &[(60_000, 10_000)],
    cost: 500,
    step_ms: Some(6000),
    filled: 0,
    ..STEADY
};

/// Counted by one limiter, many units each.
pub const COUNTED_500: Workload = Workload { name: "admitted, cost 500", cost: 500, ..COUNTED };

/// Denied by full small logs.
pub const DENIED_SMALL: Workload = Workload {
    name: "denied by a listpack log of 10",
    windows: &[(HOUR_MS, 10)],
    filled: 10,
    options: &[],
    ..DENIED
};

/// Denied by one full skiplist log of so many.
pub fn denied_by(entries: u64) -> Workload {
    Workload {
        name: "denied by one log",
        windows: vec![(HOUR_MS, entries)].leak(),
        filled: entries,
        keys: Keys::One,
        ..DENIED
    }
}

/// One in, one out, of one skiplist log of so many, which is kept for ten minutes at least.
pub fn steady_at(entries: u64) -> Workload {
    let step_ms = (600_000 / entries).max(1);
    Workload {
        name: "admitted to one steady log",
        windows: vec![(entries * step_ms, NEVER)].leak(),
        step_ms: Some(step_ms),
        filled: entries,
        ..STEADY
    }
}

/// A workload that a contender is put to, on a server.
pub struct Run<'a> {
    contender: &'a Contender,
    workload: &'a Workload,
    digest: String,
    start_ms: u64,
}

impl<'a> Run<'a> {
    /// Brings the script to the server, and fills the keys of so many calls.
    pub fn prepare(
        contender: &'a Contender,
        workload: &'a Workload,
        calls: u64,
        wire: &mut Wire,
    ) -> Run<'a> {
        let digest = contender
            .script
            .map(|text| wire.run_words(&["SCRIPT", "LOAD", text]).text().to_string())
            .unwrap_or_default();
        let run = Run { contender, workload, digest, start_ms: server_ms(wire) };
        run.fill(calls, wire);
        run
    }

    /// The commands of a call, by its number, one a line.
    pub fn call(&self, index: u64) -> String {
        let (key, before) = self.workload.keys.place(index);
        let filled = self.workload.filled;
        (self.contender.ask)(&self.ask(&name(key), filled + before, filled + index))
    }

    /// The commands of a request to any key, so many steps after the start.
    pub fn call_to(&self, key: &str, steps: u64) -> String {
        (self.contender.ask)(&self.ask(key, steps, steps))
    }

    /// The key of the first call.
    pub fn first_key(&self) -> String {
        name(0)
    }

    /// Sends the calls of these numbers, so many at a time, and checks each reply.
    pub fn send(&self, indices: std::ops::Range<u64>, at_a_time: usize, wire: &mut Wire) {
        let mut indices = indices.peekable();
        while indices.peek().is_some() {
            let mut bytes = Vec::new();
            let mut commands = Vec::new();
            for index in indices.by_ref().take(at_a_time) {
                commands.push(encode_lines(&mut bytes, &self.call(index)));
            }
            wire.send(&bytes);
            for commands in commands {
                self.check(commands, wire);
            }
        }
    }

    /// Reads the replies to the commands of one call, of which the last is the verdict.
    pub fn check(&self, commands: usize, wire: &mut Wire) {
        for left in (0..commands).rev() {
            let reply = wire.receive();
            let right = left > 0 || self.contender.says(self.workload.allowed, &reply);
            let (contender, workload) = (self.contender.name, self.workload.name);
            assert!(
                right && reply.error().is_none(),
                "{contender}, {workload}: it was answered {reply:?}"
            );
        }
    }

    /// Fills one key as the contender itself does, and copies it to the others.
    fn fill(&self, calls: u64, wire: &mut Wire) {
        let first = name(0);
        let fill = |index| (self.contender.fill)(&self.ask(&first, index, index));
        wire.run_all((0..self.workload.filled).map(fill));
        let keys = self.workload.keys.count(calls);
        let others = if self.workload.filled > 0 { 1..keys } else { 0..0 };
        wire.run_all(others.map(|key| format!("COPY {first} {}", name(key))));
    }

    /// The request that finds so many before it in its key, so many steps after the start.
    fn ask<'b>(&'b self, key: &'b str, index: u64, steps: u64) -> Ask<'b> {
        let step_ms = self.workload.step_ms;
        let now_ms = self.start_ms + steps * step_ms.unwrap_or(0);
        Ask {
            key,
            windows: self.workload.windows,
            cost: self.workload.cost,
            precision_ms: self.workload.precision_ms,
            at_ms: step_ms.map(|_| now_ms),
            client_ms: now_ms,
            index,
            digest: &self.digest,
        }
    }
}

/// A key, by its number.
fn name(key: u64) -> String {
    format!("limit:{key:06}")
}

/// The server's clock in Unix milliseconds.
fn server_ms(wire: &mut Wire) -> u64 {
    let Reply::Array(time) = wire.run("TIME") else { panic!("TIME is no array") };
    let [seconds, micros]: [u64; 2] = [0, 1].map(|part: usize| time[part].text().parse().unwrap());
    seconds * 1000 + micros / 1000
}
