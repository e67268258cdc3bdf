//! Bytes that something may stumble over: numbers at the edges, and words that are not quite right.

use crate::random::Random;

/// Words: a command as it is sent.
pub type Words = Vec<Vec<u8>>;

/// Numbers around which a rule, a type or a format changes.
const EDGES: [u128; 14] = [
    0,
    10,
    1_000,
    1 << 31,
    1 << 32,
    315_360_000_000,
    1 << 52,
    1 << 53,
    1 << 62,
    1 << 63,
    10_u128.pow(19),
    1 << 64,
    10_u128.pow(20),
    10_u128.pow(30),
];

impl Random {
    /// Whether something happens that does so once in so many times.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Up to so many bytes, any.
    pub fn bytes(&mut self, most: u64) -> Vec<u8> {
        let len = self.below(most + 1);
        (0..len).map(|_| self.below(256) as u8).collect()
    }

    /// A number: small, at an edge or right beside it, or of any size.
    pub fn number(&mut self) -> u128 {
        match self.below(3) {
            0 => u128::from(self.below(20)),
            1 => (self.one_of(&EDGES) + 2).saturating_sub(u128::from(self.below(5))),
            _ => u128::from(self.below(u64::MAX)) >> self.below(64),
        }
    }

    /// A number as it is written, or as it must not be.
    pub fn number_word(&mut self) -> Vec<u8> {
        let number = self.number();
        let word = match self.below(30) {
            0 => format!("-{number}"),
            1 => format!("+{number}"),
            2 => format!("0{number}"),
            3 => format!(" {number}"),
            4 => format!("{number} "),
            5 => format!("{number}.0"),
            6 => format!("{number}e3"),
            7 => format!("0x{number:x}"),
            8 => format!("{number}\0"),
            9 => format!("{number}\r\n"),
            _ => number.to_string(),
        };
        word.into_bytes()
    }

    /// Does one thing to a word that makes it another, mostly.
    pub fn damage(&mut self, word: &mut Vec<u8>) {
        let at = self.below(word.len() as u64 + 1) as usize;
        match self.below(6) {
            0 if at < word.len() => word[at] ^= 1 << self.below(8),
            1 if at < word.len() => drop(word.remove(at)),
            2 => word.truncate(at),
            3 => word.insert(at, self.below(256) as u8),
            4 => word.extend(word.clone()),
            _ => word.extend(self.bytes(8)),
        }
    }
}

/// A line, split into words.
pub fn words(line: &str) -> Words {
    line.split_ascii_whitespace().map(|word| word.as_bytes().to_vec()).collect()
}

/// A command as a failure shows it: long words cut, and many left out.
pub fn shown(command: &[Vec<u8>]) -> String {
    const MOST_WORDS: usize = 60;
    const MOST_BYTES: usize = 60;
    let word = |word: &Vec<u8>| match word.len() {
        ..=MOST_BYTES => format!("\"{}\"", word.escape_ascii()),
        len => format!("\"{}\"... of {len} bytes", word[..MOST_BYTES].escape_ascii()),
    };
    let mut all: Vec<String> = command.iter().take(MOST_WORDS).map(word).collect();
    if command.len() > MOST_WORDS {
        all.push(format!("... of {} words", command.len()));
    }
    all.join(" ")
}
