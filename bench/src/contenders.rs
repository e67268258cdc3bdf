//! What is compared: the contenders, and how each asks for the same thing.

use crate::wire::Reply;

/// What a contender is asked: may a request of this cost pass?
pub struct Ask<'a> {
    /// The limiter.
    pub key: &'a str,
    /// Each window in milliseconds, and its limit.
    pub windows: &'a [(u64, u64)],
    /// The units that the request takes.
    pub cost: u64,
    /// The ticks that the log may be kept in.
    pub precision_ms: Option<u64>,
    /// The time in Unix milliseconds, where it is not the server's.
    pub at_ms: Option<u64>,
    /// The time in Unix milliseconds for a client that must name one.
    pub client_ms: u64,
    /// How many requests were charged to the key before.
    pub index: u64,
    /// The digest of the contender's script.
    pub digest: &'a str,
}

/// One way to ask.
pub struct Contender {
    /// As it is called in tables.
    pub name: &'static str,
    /// The text of its script.
    pub script: Option<&'static str>,
    /// The commands that ask, one a line.
    pub ask: fn(&Ask) -> String,
    /// The commands that fill its key before; those that ask, but for what only looks.
    pub fill: fn(&Ask) -> String,
    /// The first integer of the last command's reply when the request may pass; `None`: it does not say.
    pub yes: Option<i64>,
}

impl Contender {
    /// Whether a reply is the verdict. What does not say is never wrong.
    pub fn says(&self, allowed: bool, reply: &Reply) -> bool {
        let first = match reply {
            Reply::Array(fields) => fields.first(),
            other => Some(other),
        };
        self.yes.is_none_or(|yes| match first {
            Some(Reply::Integer(integer)) => (*integer == yes) == allowed,
            _ => false,
        })
    }
}

/// The cheapest command there is.
pub const PING: Contender = plain("PING", |_| "PING".into());

/// A counter without a window.
pub const INCR: Contender = plain("INCR", |ask| format!("INCR {}", ask.key));

/// The write that an admission to a log needs at least, of the entry that RL.SLIDE would write.
pub const ZADD: Contender = plain("ZADD", |ask| {
    let total = (ask.index + 1).to_string();
    let letter = char::from(b'a' + total.len() as u8 - 1);
    format!("ZADD {} {} {letter}{total}+1", ask.key, ask.at_ms.unwrap_or(0))
});

/// The write that an admission to a counter needs at least.
pub const HINCRBY: Contender = Contender {
    fill: |ask| {
        let (key, window_ms) = (ask.key, ask.windows[0].0);
        format!(
            "HSET {key} {window_ms}:start 1796036400000 {window_ms}:current 1 {window_ms}:previous 0"
        )
    },
    ..plain("HINCRBY", |ask| {
        format!("HINCRBY {} {}:current {}", ask.key, ask.windows[0].0, ask.cost)
    })
};

/// The exact log.
pub const SLIDE: Contender =
    Contender { yes: Some(1), ..plain("RL.SLIDE", |ask| native("RL.SLIDE", ask)) };

/// The counter.
pub const SWC: Contender =
    Contender { yes: Some(1), ..plain("RL.SWC", |ask| native("RL.SWC", ask)) };

/// A look at a log.
pub const PEEK: Contender = Contender { fill: SLIDE.ask, ..peek("RL.PEEK of a log") };

/// A look at counters.
pub const PEEK_COUNTER: Contender = Contender { fill: SWC.ask, ..peek("RL.PEEK of a counter") };

/// The exact log as a script, with the same reply.
pub const LUA_LOG: Contender =
    Contender { fill: fill_log, ..script("Lua log", include_str!("../lua/log.lua")) };

/// The counter as a script, with the same reply.
pub const LUA_COUNTER: Contender = script("Lua counter", include_str!("../lua/counter.lua"));

/// The log as the script that is found everywhere; the client brings time and member.
pub const CLASSIC: Contender = Contender {
    fill: fill_log,
    ask: |ask| {
        let [(window_ms, limit), ..] = ask.windows else { unreachable!("a call has a window") };
        let (digest, key, now_ms, index) = (ask.digest, ask.key, ask.client_ms, ask.index);
        format!("EVALSHA {digest} 1 {key} {window_ms} {limit} {now_ms} {now_ms}-{index}")
    },
    ..script("classic script", include_str!("../lua/classic.lua"))
};

/// The log in plain commands; the client brings time and member, and decides by what they answer.
pub const MULTI: Contender = plain("MULTI", |ask| {
    let (key, window_ms, now_ms, index) = (ask.key, ask.windows[0].0, ask.client_ms, ask.index);
    let before = now_ms - window_ms;
    format!(
        "MULTI\nZREMRANGEBYSCORE {key} 0 {before}\nZCARD {key}\nZADD {key} {now_ms} {now_ms}-{index}\n\
         PEXPIRE {key} {window_ms}\nEXEC"
    )
});

/// redis-cell: a leaky bucket, one number a key. Its reply begins with 0 when the request may pass.
pub const THROTTLE: Contender = Contender {
    yes: Some(0),
    ..plain("CL.THROTTLE", |ask| {
        let [(window_ms, limit), ..] = ask.windows else { unreachable!("a call has a window") };
        let (burst, seconds) = (limit - 1, window_ms / 1000);
        format!("CL.THROTTLE {} {burst} {limit} {seconds} {}", ask.key, ask.cost)
    })
};

const fn plain(name: &'static str, ask: fn(&Ask) -> String) -> Contender {
    Contender { name, script: None, ask, fill: ask, yes: None }
}

const fn peek(name: &'static str) -> Contender {
    Contender { yes: Some(1), ..plain(name, |ask| native("RL.PEEK", ask)) }
}

const fn script(name: &'static str, text: &'static str) -> Contender {
    let ask: fn(&Ask) -> String = |ask| {
        let [(window_ms, limit)] = ask.windows else { panic!("the script takes one window") };
        let at_ms = ask.at_ms.map(|at_ms| format!(" {at_ms}")).unwrap_or_default();
        format!("EVALSHA {} 1 {} {window_ms} {limit} {}{at_ms}", ask.digest, ask.key, ask.cost)
    };
    Contender { name, script: Some(text), ask, fill: ask, yes: Some(1) }
}

/// The entry that a script would write; each of a million calls of it would take longer.
fn fill_log(ask: &Ask) -> String {
    format!("ZADD {} {} {}-{}", ask.key, ask.client_ms, ask.client_ms, ask.index)
}

/// A command of the module.
fn native(command: &str, ask: &Ask) -> String {
    let mut line = format!("{command} {}", ask.key);
    for (window_ms, limit) in ask.windows {
        line += &format!(" {} {limit}", duration(*window_ms));
    }
    if ask.cost != 1 {
        line += &format!(" COST {}", ask.cost);
    }
    if let Some(precision_ms) = ask.precision_ms {
        line += &format!(" PRECISION {}", duration(precision_ms));
    }
    if let Some(at_ms) = ask.at_ms {
        line += &format!(" AT {at_ms}");
    }
    line
}

/// A window as one would write it.
fn duration(window_ms: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")];
    let (unit_ms, unit) =
        units.into_iter().find(|(unit_ms, _)| window_ms.is_multiple_of(*unit_ms)).unwrap();
    format!("{}{unit}", window_ms / unit_ms)
}
