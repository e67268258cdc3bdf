//! Memory: what a limiter's key takes after so many requests of the last minute.

use crate::server::info_field;
use crate::wire::Wire;

/// The window of all limiters here.
const WINDOW_MS: u64 = 60_000;

/// When the requests begin, in Unix milliseconds.
const START_MS: u64 = 1_796_037_190_000;

/// A limit that nobody reaches.
const NEVER: u64 = 1_000_000_000;

/// A way to keep who has asked.
pub struct Keeper {
    /// As it is called in tables.
    pub name: &'static str,
    /// Whether it keeps a sorted set, whose encoding depends on its size.
    pub is_log: bool,
    /// The command that charges one more request of so many in the window.
    charge: fn(key: &str, index: u64, requests: u64) -> String,
    /// The command that goes before all of them.
    begin: Option<fn(key: &str) -> String>,
}

/// The exact log, which has been used for long: totals have many digits.
pub const SLIDE: Keeper = Keeper {
    name: "RL.SLIDE",
    is_log: true,
    charge: |key, index, requests| {
        format!("RL.SLIDE {key} 60s {NEVER} AT {}", at_ms(index, requests))
    },
    begin: Some(|key| {
        let before_ms = START_MS - WINDOW_MS;
        format!("RL.SLIDE {key} 60s {NEVER} COST 100000 AT {before_ms}")
    }),
};

/// The log in ticks of a second.
pub const SLIDE_TICKS: Keeper = Keeper {
    name: "RL.SLIDE PRECISION 1s",
    charge: |key, index, requests| {
        format!("RL.SLIDE {key} 60s {NEVER} PRECISION 1s AT {}", at_ms(index, requests))
    },
    ..SLIDE
};

/// The counter.
pub const SWC: Keeper = Keeper {
    name: "RL.SWC",
    is_log: false,
    charge: |key, index, requests| {
        format!("RL.SWC {key} 60s {NEVER} AT {}", at_ms(index, requests))
    },
    begin: None,
};

/// The log of a script, its members as lua/log.lua makes them.
pub const LUA: Keeper = Keeper {
    name: "Lua log",
    is_log: true,
    charge: |key, index, requests| {
        let at_ms = at_ms(index, requests);
        format!("ZADD {key} {at_ms} {at_ms}-{index}\nPEXPIRE {key} {WINDOW_MS}")
    },
    begin: None,
};

/// The log of a script whose client brings a UUID as the member.
pub const LUA_UUID: Keeper = Keeper {
    name: "Lua log of UUIDs",
    charge: |key, index, requests| {
        let at_ms = at_ms(index, requests);
        let uuid = format!("5f0c7d1e-8a43-4b6d-9c2f-{index:012x}");
        format!("ZADD {key} {at_ms} {uuid}\nPEXPIRE {key} {WINDOW_MS}")
    },
    ..LUA
};

/// redis-cell's number.
pub const THROTTLE: Keeper = Keeper {
    name: "CL.THROTTLE",
    is_log: false,
    charge: |key, _, requests| format!("CL.THROTTLE {key} {} {requests} 60", requests - 1),
    begin: None,
};

/// All of them.
pub const ALL: [&Keeper; 6] = [&SLIDE, &SLIDE_TICKS, &SWC, &LUA, &LUA_UUID, &THROTTLE];

/// The requests of a minute, evenly.
fn at_ms(index: u64, requests: u64) -> u64 {
    START_MS + index * WINDOW_MS / requests
}

/// A key that keeps so many requests.
pub fn fill(keeper: &Keeper, key: &str, requests: u64, wire: &mut Wire) {
    wire.run(&format!("UNLINK {key}"));
    wire.run_all(keeper.begin.map(|begin| begin(key)));
    wire.run_all((0..requests).map(|index| (keeper.charge)(key, index, requests)));
}

/// What `MEMORY USAGE` says of a key, all of it looked at.
pub fn bytes(key: &str, wire: &mut Wire) -> u64 {
    wire.run(&format!("MEMORY USAGE {key} SAMPLES 0")).integer() as u64
}

/// How a key is stored.
pub fn encoding(key: &str, wire: &mut Wire) -> String {
    wire.run(&format!("OBJECT ENCODING {key}")).text().to_string()
}

/// The memory that each of so many keys takes from the server, the tables that find them included.
pub fn bytes_of_each(keeper: &Keeper, keys: u64, requests: u64, wire: &mut Wire) -> u64 {
    wire.run("FLUSHALL SYNC");
    fill(keeper, "user:0000000", requests, wire);
    let before = used_memory(wire);
    wire.run_all((1..=keys).map(|user| format!("COPY user:0000000 user:{user:07}")));
    let after = used_memory(wire);
    assert_eq!(wire.run("DBSIZE").integer() as u64, keys + 1, "keys are missing");
    (after - before) / keys
}

fn used_memory(wire: &mut Wire) -> u64 {
    let info = wire.run("INFO memory");
    info_field(info.text(), "used_memory").expect("INFO has it").parse().expect("it is a number")
}
