//! Calls with any arguments: well formed, nearly so, of the right words in no order, or of any bytes;
//! as they are, in a transaction or from a script.

use redis::Value;

use super::bytes::{Words, words};
use crate::harness::server_is_at_least;
use crate::random::Random;

/// Runs its arguments as a command, and answers what that answers, an error too.
pub const SCRIPT: &str = "return redis.pcall(unpack(ARGV))";

/// A script puts its arguments on a stack that takes no more than some thousands.
const MOST_SCRIPT_WORDS: usize = 500;

const OPTIONS: [&str; 6] = ["COST", "FORCE", "PRECISION", "AT", "COUNT", "RESET"];
/// Each of another length, from a millisecond up.
const DURATIONS: [&str; 11] =
    ["1ms", "10ms", "500ms", "1s", "60s", "5m", "1h", "24h", "7d", "30d", "3650d"];
/// What is within each of these but the shortest.
const PRECISIONS: [&str; 4] = ["1ms", "1ms", "7ms", "10ms"];
const UNITS: [&str; 9] = ["ms", "s", "m", "h", "d", "", "w", "S", "us"];

/// One call of a command.
pub struct Call {
    /// Which, in lower case.
    pub command: &'static str,
    /// Its words: the name, in any case, the key, unless it ends before, and the rest.
    pub words: Words,
    pub way: Way,
}

/// How a call reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Direct,
    Transaction,
    Script,
    ScriptByDigest,
    ReadOnlyScript,
}

impl Call {
    /// Any call to `key`, mostly one for which it is of the right type, and of a time near `time_ms`.
    pub fn random(random: &mut Random, key: &[u8], is_hash: bool, time_ms: u64) -> Call {
        let command = match random.below(20) {
            0..8 => {
                if is_hash {
                    "rl.swc"
                } else {
                    "rl.slide"
                }
            }
            8 => "rl.slide",
            9 => "rl.swc",
            10..15 => "rl.peek",
            15..19 => "rl.refund",
            _ => "rl.denied",
        };
        let rest = match random.below(20) {
            0..13 => well_formed(random, command, time_ms),
            13..17 => nearly_well_formed(random, command, time_ms),
            17 | 18 => right_words(random, time_ms),
            _ => any_bytes(random),
        };
        let mut words = vec![any_case(random, command)];
        if command != "rl.denied" {
            words.push(key.to_vec());
        }
        words.extend(rest);
        if random.once_in(200) {
            words.truncate(random.below(4) as usize + 1);
        }
        let way = Way::random(random, words.len());
        Call { command, words, way }
    }

    /// The commands to send; `digest` is that of [`SCRIPT`].
    pub fn commands(&self, key: &[u8], digest: &str) -> Vec<Words> {
        let script = |name: &str, script: &str| {
            let mut command: Words = [name, script, "1"].map(|word| word.into()).to_vec();
            command.push(key.to_vec());
            command.extend_from_slice(&self.words);
            vec![command]
        };
        match self.way {
            Way::Direct => vec![self.words.clone()],
            Way::Transaction => vec![words("MULTI"), self.words.clone(), words("EXEC")],
            Way::Script => script("EVAL", SCRIPT),
            Way::ScriptByDigest => script("EVALSHA", digest),
            Way::ReadOnlyScript => script("EVAL_RO", SCRIPT),
        }
    }

    /// What the call was answered, from the replies to its commands.
    pub fn answer(&self, replies: &mut impl Iterator<Item = Value>) -> Value {
        let mut next = || replies.next().expect("a reply for each command");
        if self.way != Way::Transaction {
            return next();
        }
        assert_eq!(next(), Value::Okay, "MULTI");
        match (next(), next()) {
            (Value::SimpleString(queued), Value::Array(mut answers)) if queued == "QUEUED" => {
                assert_eq!(answers.len(), 1, "one answer for one call: {answers:?}");
                answers.remove(0)
            }
            (error @ Value::ServerError(_), Value::ServerError(abort)) => {
                assert_eq!(abort.code(), "EXECABORT");
                error
            }
            other => panic!("a transaction was answered {other:?}"),
        }
    }
}

impl Way {
    /// How a summary names it.
    pub fn name(self) -> &'static str {
        match self {
            Way::Direct => "directly",
            Way::Transaction => "in a transaction",
            Way::Script | Way::ScriptByDigest => "from a script",
            Way::ReadOnlyScript => "from a read-only script",
        }
    }

    fn random(random: &mut Random, words: usize) -> Way {
        match random.below(40) {
            0..4 => Way::Transaction,
            _ if words > MOST_SCRIPT_WORDS => Way::Direct,
            4 => Way::Script,
            5 => Way::ScriptByDigest,
            6 if server_is_at_least(7, 0) => Way::ReadOnlyScript,
            _ => Way::Direct,
        }
    }
}

fn any_case(random: &mut Random, word: &str) -> Vec<u8> {
    match random.below(4) {
        0 => word.to_ascii_lowercase().into_bytes(),
        1 => {
            let byte = |byte: u8| if random.once_in(2) { byte.to_ascii_uppercase() } else { byte };
            word.to_ascii_lowercase().bytes().map(byte).collect()
        }
        _ => word.to_ascii_uppercase().into_bytes(),
    }
}

// ---------------------------------------------------------------------------------------------
// Well formed
// ---------------------------------------------------------------------------------------------

fn well_formed(random: &mut Random, command: &str, time_ms: u64) -> Words {
    match command {
        "rl.denied" => match random.below(4) {
            0 => vec![any_case(random, "RESET")],
            1 => vec![any_case(random, "COUNT"), units(random, 1)],
            _ => Vec::new(),
        },
        "rl.refund" => {
            let mut words = vec![units(random, 1)];
            if random.once_in(2) {
                words.extend([any_case(random, "AT"), time(random, time_ms)]);
            }
            words
        }
        _ => limits_and_options(random, command, time_ms),
    }
}

/// `window limit [window limit ...] [COST n] [FORCE] [PRECISION p] [AT t]`, options in any order.
fn limits_and_options(random: &mut Random, command: &str, time_ms: u64) -> Words {
    let windows = if random.once_in(3) { 1 + random.below(8) } else { 1 };
    let first = random.below(DURATIONS.len() as u64);
    // Steps of 3 through 11 come to each of them once.
    let durations = (0..windows).map(|i| DURATIONS[(first + 3 * i) as usize % DURATIONS.len()]);
    let mut words = Words::new();
    for duration in durations {
        words.extend([duration.into(), units(random, 0)]);
    }
    let mut options = Vec::new();
    if random.once_in(2) {
        options.push(vec![any_case(random, "COST"), units(random, 0)]);
    }
    if random.once_in(5) {
        options.push(vec![any_case(random, "FORCE")]);
    }
    if command != "rl.swc" && random.once_in(5) {
        options.push(vec![any_case(random, "PRECISION"), random.one_of(&PRECISIONS).into()]);
    }
    if !random.once_in(4) {
        options.push(vec![any_case(random, "AT"), time(random, time_ms)]);
    }
    if !options.is_empty() {
        let first = random.below(options.len() as u64) as usize;
        options.rotate_left(first);
    }
    words.extend(options.into_iter().flatten());
    words
}

/// A limit, a cost, or units to take back: most are few, so that limits are reached.
fn units(random: &mut Random, least: u64) -> Vec<u8> {
    let units = match random.below(10) {
        0 => (1 << 53) - 1 - random.below(3),
        1 => random.below(1 << 53) >> random.below(53),
        2 => random.below(2),
        _ => random.below(12),
    };
    units.max(least).to_string().into_bytes()
}

fn time(random: &mut Random, time_ms: u64) -> Vec<u8> {
    let away_ms = random.below(100_000_000) >> random.below(27);
    let at_ms = match random.below(3) {
        0 => time_ms.saturating_sub(away_ms),
        _ => time_ms + away_ms,
    };
    at_ms.to_string().into_bytes()
}

// ---------------------------------------------------------------------------------------------
// Not so well formed
// ---------------------------------------------------------------------------------------------

fn nearly_well_formed(random: &mut Random, command: &str, time_ms: u64) -> Words {
    let mut words = well_formed(random, command, time_ms);
    for _ in 0..=random.below(3) {
        let at = random.below(words.len() as u64 + 1) as usize;
        let other = random.below(words.len() as u64 + 1) as usize;
        let is_word = at < words.len();
        match random.below(8) {
            0 if is_word => drop(words.remove(at)),
            1 if is_word => words.insert(other, words[at].clone()),
            2 if is_word && other < words.len() => words.swap(at, other),
            3 if is_word => words[at] = random.number_word(),
            4 if is_word => words[at] = right_word(random, time_ms),
            5 => words.insert(at, right_word(random, time_ms)),
            6 => words.insert(at, random.bytes(12)),
            _ if is_word => random.damage(&mut words[at]),
            _ => {}
        }
    }
    words
}

fn right_words(random: &mut Random, time_ms: u64) -> Words {
    let count = if random.once_in(2_000) { random.below(5_000) } else { random.below(20) };
    (0..count).map(|_| right_word(random, time_ms)).collect()
}

fn right_word(random: &mut Random, time_ms: u64) -> Vec<u8> {
    match random.below(6) {
        0 => {
            let option = random.one_of(&OPTIONS);
            any_case(random, option)
        }
        1 => random.one_of(&DURATIONS).into(),
        2 => [random.number_word(), random.one_of(&UNITS).into()].concat(),
        3 => time(random, time_ms),
        4 => units(random, 0),
        _ => random.number_word(),
    }
}

fn any_bytes(random: &mut Random) -> Words {
    let (count, most) = match random.below(2_000) {
        0 => (random.below(4), 1 << 16),
        1 => (random.below(5_000), 4),
        _ => (random.below(12), 20),
    };
    (0..count).map(|_| random.bytes(most)).collect()
}
