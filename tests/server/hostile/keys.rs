//! Keys to call the commands on: logs and counters as the module writes them, others that are nearly
//! so, and every other type.

use super::bytes::Words;
use super::form::{are_counters, are_no_log};
use crate::client::Client;
use crate::harness::server_is_at_least;
use crate::random::Random;

const DAY_MS: u64 = 86_400_000;

/// A value longer than this is not stored compactly, and neither is what it is in.
const MOST_COMPACT_BYTES: usize = 64;

/// Hashes of more fields than this may be tables, whatever the server.
const MOST_COMPACT_FIELDS: usize = 128;

/// Fields of the biggest hashes.
const HUGE: u64 = 100_000;

/// Gives a hash so many more fields, and takes all but so many of them away.
const GROW_AND_SHRINK: &str = "
    for i = 1, ARGV[1] do redis.call('HSET', KEYS[1], 'more' .. i, i) end
    for i = ARGV[2] + 1, ARGV[1] do redis.call('HDEL', KEYS[1], 'more' .. i) end";

/// Keys of other types and of other users, `#` for the name.
const OTHERS: [&[&str]; 15] = [
    &["SET # a1+1"],
    &["SET # 17"],
    &["APPEND # 60000:start", "SETRANGE # 10000 x"],
    &["SETBIT # 7 1"],
    &["PFADD # a b c"],
    &["RPUSH # 1000000 a1+1"],
    &["SADD # 1 2 3"],
    &["SADD # a1+1 b10+1"],
    &["XADD # 1000000-0 a1+1 1", "XGROUP CREATE # group 0"],
    &["XADD # 1-1 60000:start 0", "XDEL # 1-1"],
    &["ZADD # 10 alice 20 bob 30 carol"],
    &["ZADD # 1990000 1990000-0.123 1995000 1995000-0.456"],
    &["GEOADD # 13.361389 38.115556 Palermo"],
    &["HSET # name alice age 30"],
    &["HSET # 60000 1"],
];

const WINDOWS_MS: [u64; 10] =
    [1, 10, 1_000, 60_000, 300_000, 3_600_000, DAY_MS, 7 * DAY_MS, 30 * DAY_MS, 3650 * DAY_MS];

const SCORES: [&str; 14] = [
    "-inf",
    "+inf",
    "-1",
    "-0.0",
    "0",
    "0.5",
    "1e-300",
    "9007199254740991",
    "9007199254740992",
    "9007199254740994",
    "9223372036854775807",
    "18446744073709551616",
    "1e300",
    "-1e300",
];

const FIELDS: [&str; 12] = [
    "name",
    "",
    ":start",
    "60000",
    "60000:",
    "60000:begin",
    "060000:start",
    "0:start",
    "60000:start ",
    "315360000001:current",
    "18446744073709551616:previous",
    "-1:current",
];

const VALUES: [&str; 12] = [
    "",
    "alice",
    "-1",
    "07",
    "1.5",
    " 1",
    "1e3",
    "9007199254740992",
    "9007199254800000",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
];

/// What there is at a key.
#[derive(Default)]
pub struct Planted {
    /// The commands that put it there.
    pub commands: Vec<Words>,
    pub is_hash: bool,
    /// Whether it may be a hash table: then its `DUMP` is in an order that moves.
    pub is_table: bool,
    /// Whether each look at it takes long.
    pub is_huge: bool,
    /// Whether it is of the form that the module writes, if that is known.
    pub is_ours: Option<bool>,
}

/// Puts things at keys.
pub struct Planter {
    /// Whether the server knows fields that expire, and sets of vectors.
    has_field_expiry: bool,
    has_vectors: bool,
    clock_ms: u64,
}

impl Planter {
    pub fn new(client: &Client) -> Planter {
        let knows = |name: &str| {
            let info: Vec<redis::Value> = client.run(&format!("COMMAND INFO {name}"));
            info != [redis::Value::Nil]
        };
        Planter {
            has_field_expiry: knows("HPEXPIRE"),
            has_vectors: knows("VADD"),
            clock_ms: client.now() as u64,
        }
    }

    /// Puts something at `key`, or nothing; logs and counters are of a time near `time_ms`.
    pub fn plant(&self, random: &mut Random, key: &[u8], time_ms: u64) -> Planted {
        let mut planted = match random.below(20) {
            0 => Planted::default(),
            1..10 => log(random, key, time_ms),
            10..18 => self.hash(random, key, time_ms),
            _ => self.other(random, key),
        };
        if !planted.commands.is_empty() && random.once_in(2) {
            planted.commands.push(self.expiry(random, key));
        }
        planted
    }

    /// An expiry that no run will see, near or as far as there is any.
    fn expiry(&self, random: &mut Random, key: &[u8]) -> Words {
        let days = random.one_of(&[1, 2, 60, 3650, 5000, 100_000_000]);
        // Older servers have theirs told by a script, whose numbers are exact to 2^53 only.
        let at_ms = match random.once_in(20) && server_is_at_least(7, 0) {
            true => i64::MAX as u64 - random.below(3),
            false => self.clock_ms + days * DAY_MS + random.below(DAY_MS),
        };
        command(&format!("PEXPIREAT # {at_ms}"), key)
    }

    fn hash(&self, random: &mut Random, key: &[u8], time_ms: u64) -> Planted {
        let mut fields = counters(random, time_ms);
        if random.once_in(2) {
            for _ in 0..=random.below(2) {
                spoil_counters(random, &mut fields);
            }
        }
        let mut commands = vec![command("HSET #", key)];
        commands[0].extend(fields.iter().flat_map(|(name, value)| [name.clone(), value.clone()]));
        if random.once_in(4) {
            let long = "x".repeat(MOST_COMPACT_BYTES + 1);
            commands.push(command(&format!("HSET # {long} 0"), key));
            commands.push(command(&format!("HDEL # {long}"), key));
        }
        let (grown, left) = grown(random);
        if grown > 0 {
            let mut evaluated = command(&format!("EVAL script 1 # {grown} {left}"), key);
            evaluated[1] = GROW_AND_SHRINK.into();
            commands.push(evaluated);
        }
        if self.has_field_expiry && random.once_in(10) {
            let name = &fields[random.below(fields.len() as u64) as usize].0;
            commands.push(command("HPEXPIRE # 86400000 FIELDS 1", key));
            commands.last_mut().unwrap().push(name.clone());
        }
        let is_long = |word: &Vec<u8>| word.len() > MOST_COMPACT_BYTES;
        let is_table = commands.len() > 1
            || fields.len() > MOST_COMPACT_FIELDS
            || fields.iter().any(|(name, value)| is_long(name) || is_long(value));
        let is_ours = match (are_counters(&fields), grown, left) {
            (true, 0, _) => Some(true),
            // A table that has shrunk may be too long to read, whatever is left in it.
            (true, _, 0) => None,
            _ => Some(false),
        };
        Planted { commands, is_hash: true, is_table, is_huge: grown == HUGE, is_ours }
    }

    fn other(&self, random: &mut Random, key: &[u8]) -> Planted {
        let commands = match random.below(40) {
            0 if self.has_vectors => vec![command("VADD # VALUES 3 1 2 3 a1+1", key)],
            1 => vec![many("RPUSH", key)],
            2 => vec![many("SADD", key)],
            _ => random.one_of(&OTHERS).iter().map(|line| command(line, key)).collect(),
        };
        // A set may be a table, too.
        let is_table = commands[0][0] == b"SADD";
        Planted { commands, is_table, ..Planted::default() }
    }
}

/// The words of a line, with `key` for `#`.
fn command(line: &str, key: &[u8]) -> Words {
    line.split(' ').map(|word| if word == "#" { key.into() } else { word.into() }).collect()
}

/// A command that puts so many words into a key that it is not stored compactly.
fn many(name: &str, key: &[u8]) -> Words {
    let words = (0..200).map(|i| format!("a{i}+1").into_bytes());
    [name.into(), key.to_vec()].into_iter().chain(words).collect()
}

/// How many fields a hash is given, and how many of these stay.
fn grown(random: &mut Random) -> (u64, u64) {
    match random.below(20_000) {
        0 => (HUGE, HUGE),
        1 => (HUGE, random.below(30)),
        2..1_000 => {
            let grown = 1 + random.below(200);
            (grown, if random.once_in(2) { 0 } else { random.below(grown) })
        }
        _ => (0, 0),
    }
}

// ---------------------------------------------------------------------------------------------
// Logs
// ---------------------------------------------------------------------------------------------

/// An entry: a score and a member.
type Entry = (Vec<u8>, Vec<u8>);

fn log(random: &mut Random, key: &[u8], time_ms: u64) -> Planted {
    let (mut entries, units) = entries(random, time_ms);
    // More may look like fewer, for totals wrap.
    let mut is_ours = (units <= i64::MAX as u128).then_some(true);
    if random.once_in(2) {
        for _ in 0..=random.below(2) {
            spoil_log(random, &mut entries);
        }
        is_ours = if are_no_log(&entries) { Some(false) } else { None };
    }
    let mut commands = vec![command("ZADD #", key)];
    commands[0].extend(entries.into_iter().flat_map(|(score, member)| [score, member]));
    if random.once_in(4) {
        let long = "x".repeat(MOST_COMPACT_BYTES + 1);
        commands.push(command(&format!("ZADD # 0 {long}"), key));
        commands.push(command(&format!("ZREM # {long}"), key));
    }
    Planted { commands, is_ours, ..Planted::default() }
}

/// A log as the module writes it, but for the units that it has: their number.
fn entries(random: &mut Random, time_ms: u64) -> (Vec<Entry>, u128) {
    let count = match random.below(4_000) {
        0..2 => 4_200,
        2..100 => 120 + random.below(400),
        _ => 1 + random.below(30),
    };
    let most_units = random.one_of(&[1, 5, 5, 5, 5, 1_000, 1 << 53, 1 << 60]);
    let step_ms = random.one_of(&[1, 20, 1_000, 60_000, DAY_MS]);
    let mut stamp_ms = time_ms.saturating_sub(random.below(count * step_ms + 1));
    let mut total = match random.below(8) {
        0 => u64::MAX - random.below(100),
        1 => random.below(u64::MAX),
        _ => random.below(100),
    };
    let mut charges = Vec::new();
    for _ in 0..count {
        let cost = 1 + random.below(most_units);
        let (next, wrapped) = total.overflowing_add(cost);
        total = next;
        stamp_ms += random.below(step_ms) + u64::from(wrapped);
        charges.push((stamp_ms, total, cost));
    }
    if random.once_in(5) {
        // Long ago nearly as much was charged as a log can hold.
        let since = total.wrapping_sub(charges[0].1);
        let room = random.below(6);
        let cost = (i64::MAX as u64).saturating_sub(since.saturating_add(room)).max(1);
        charges[0] = (0, charges[0].1, cost);
    }
    let entry = |(stamp_ms, total, cost): (u64, u64, u64)| {
        (stamp_ms.to_string().into_bytes(), member(total.into(), cost.into()))
    };
    let units = charges.iter().map(|(_, _, cost)| u128::from(*cost)).sum();
    (charges.into_iter().map(entry).collect(), units)
}

fn member(total: u128, cost: u128) -> Vec<u8> {
    let digits = total.to_string();
    let letter = char::from(b'a' + digits.len() as u8 - 1);
    format!("{letter}{digits}+{cost}").into_bytes()
}

/// Does one thing to a log that makes it another, and mostly none. An end is hit as often as not.
fn spoil_log(random: &mut Random, entries: &mut Vec<Entry>) {
    let some = |random: &mut Random| match random.below(4) {
        0 => 0,
        1 => entries.len() - 1,
        _ => random.below(entries.len() as u64) as usize,
    };
    let (at, other) = (some(random), some(random));
    match random.below(13) {
        0..3 if entries.len() > 1 => drop(entries.remove(at)),
        3 => {
            let score = entries[at].0.clone();
            entries[at].0 = std::mem::replace(&mut entries[other].0, score);
        }
        4 | 5 => entries[at].0 = random.one_of(&SCORES).into(),
        6 => entries[at].1 = member(random.number(), random.number()),
        7 => {
            let cost = 1 + random.below(9);
            entries[at].1 = member(random.below(1_000).into(), cost.into());
        }
        8 => {
            let score = entries[at].0.clone();
            entries.push((score, random.bytes(6)));
        }
        9 => entries[at].1 = random.one_of(&["", "alice", "a1+1", "a0+1", "b10+3"]).into(),
        10 => {
            let mut scores: Vec<_> = entries.iter().map(|(score, _)| score.clone()).collect();
            scores.reverse();
            entries.iter_mut().zip(scores).for_each(|((score, _), reversed)| *score = reversed);
        }
        _ => random.damage(&mut entries[at].1),
    }
}

// ---------------------------------------------------------------------------------------------
// Counters
// ---------------------------------------------------------------------------------------------

/// A field: its name and its value.
type Field = (Vec<u8>, Vec<u8>);

/// Counters as the module writes them.
fn counters(random: &mut Random, time_ms: u64) -> Vec<Field> {
    let count = if random.once_in(4) { 1 + random.below(8) } else { 1 };
    let first = random.below(WINDOWS_MS.len() as u64);
    let windows_ms = (0..count).map(|i| WINDOWS_MS[(first + 3 * i) as usize % WINDOWS_MS.len()]);
    windows_ms.flat_map(|window_ms| counter(random, window_ms, time_ms)).collect()
}

fn counter(random: &mut Random, window_ms: u64, time_ms: u64) -> [Field; 3] {
    let about_ms = match random.below(4) {
        0 => time_ms + random.below(3 * window_ms),
        1 => time_ms.saturating_sub(random.below(3 * window_ms)),
        _ => time_ms,
    };
    let mut units = || match random.below(10) {
        0 => i64::MAX as u64 - random.below(3),
        1 => random.below(1 << 63) >> random.below(60),
        _ => random.below(12),
    };
    let values = [
        (":start", about_ms - about_ms % window_ms),
        (":current", units()),
        (":previous", units()),
    ];
    values.map(|(part, value)| {
        (format!("{window_ms}{part}").into_bytes(), value.to_string().into_bytes())
    })
}

/// Does one thing to counters that makes them others, and mostly none.
fn spoil_counters(random: &mut Random, fields: &mut Vec<Field>) {
    let at = random.below(fields.len() as u64) as usize;
    match random.below(10) {
        0 | 1 if fields.len() > 1 => drop(fields.remove(at)),
        2 => fields.push((random.one_of(&FIELDS).into(), random.number_word())),
        3 => fields[at].0 = random.one_of(&FIELDS).into(),
        4 => fields[at].1 = random.one_of(&VALUES).into(),
        5 => fields[at].1 = random.number_word(),
        6 => random.damage(&mut fields[at].1),
        7 => {
            let more = random.one_of(&[1, 8, 9, 16, 100]);
            let any_ms = 1 + random.below(DAY_MS);
            fields.extend((0..more).flat_map(|i| counter(random, any_ms + i, DAY_MS)));
        }
        8 => fields.extend((0..random.below(30)).map(|_| (random.bytes(70), random.bytes(70)))),
        _ => random.damage(&mut fields[at].0),
    }
}
