//! What a call asks, read from its words by the documentation alone.

use super::calls::Call;

const MAX_UNITS: u64 = (1 << 53) - 1;
const DAY_MS: u64 = 86_400_000;
const MAX_WINDOW_MS: u64 = 3650 * DAY_MS;
const MAX_WINDOWS: usize = 8;

/// What a call asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    Verdict(Limits),
    Refund {
        units: u64,
    },
    Denied {
        count: u64,
    },
    Reset,
    /// Nothing that has an answer.
    Wrong,
}

/// What a call that is answered with a verdict asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// `(window_ms, limit)`, in the order written.
    pub windows: Vec<(u64, u64)>,
    pub cost: u64,
    pub force: bool,
}

/// What `call` asks. `None` if the server's clock decides, which is at `clock_ms` or, as it goes on,
/// less than a day later.
pub fn asked(call: &Call, clock_ms: u64) -> Option<Asked> {
    let has_key = call.command != "rl.denied";
    let words: Vec<&[u8]> = call.words.iter().skip(1).map(Vec::as_slice).collect();
    let mut reader = Reader { words: &words, clock_ms, clock_decides: false };
    if has_key && reader.next().is_none() {
        return Some(Asked::Wrong);
    }
    let asked = match call.command {
        "rl.refund" => reader.refund(),
        "rl.denied" => reader.denied(),
        command => reader.limits(command != "rl.swc"),
    };
    (!reader.clock_decides).then(|| asked.unwrap_or(Asked::Wrong))
}

/// The words that are left to read. Whatever reads them gives `None` if they are wrong.
struct Reader<'a> {
    words: &'a [&'a [u8]],
    clock_ms: u64,
    clock_decides: bool,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    fn limits(&mut self, has_precision: bool) -> Option<Asked> {
        let mut windows: Vec<(u64, u64)> = Vec::new();
        loop {
            let (window_ms, limit) = (duration_ms(self.next()?)?, units(self.next()?)?);
            if windows.len() == MAX_WINDOWS || windows.iter().any(|(other, _)| *other == window_ms)
            {
                return None;
            }
            windows.push((window_ms, limit));
            let goes_on = self.words.first().and_then(|word| word.first());
            if !goes_on.is_some_and(u8::is_ascii_digit) {
                break;
            }
        }
        let (mut cost, mut precision_ms, mut at_ms, mut force) = (None, None, None, None);
        while let Some(word) = self.next() {
            match word.to_ascii_uppercase().as_slice() {
                b"FORCE" => once(&mut force, ())?,
                b"COST" => once(&mut cost, units(self.next()?)?)?,
                b"PRECISION" if has_precision => {
                    once(&mut precision_ms, duration_ms(self.next()?)?)?
                }
                b"AT" => once(&mut at_ms, self.time_ms()?)?,
                _ => return None,
            }
        }
        let shortest_ms = windows.iter().map(|(window_ms, _)| *window_ms).min()?;
        let fits = precision_ms.is_none_or(|precision_ms| precision_ms <= shortest_ms);
        let limits = Limits { windows, cost: cost.unwrap_or(1), force: force.is_some() };
        fits.then_some(Asked::Verdict(limits))
    }

    fn refund(&mut self) -> Option<Asked> {
        let units = units(self.next()?).filter(|units| *units > 0)?;
        let mut at_ms = None;
        while let Some(word) = self.next() {
            if !word.eq_ignore_ascii_case(b"AT") {
                return None;
            }
            once(&mut at_ms, self.time_ms()?)?;
        }
        Some(Asked::Refund { units })
    }

    fn denied(&mut self) -> Option<Asked> {
        let asked = match self.next().map(<[u8]>::to_ascii_uppercase).as_deref() {
            None => Asked::Denied { count: 10 },
            Some(b"RESET") => Asked::Reset,
            Some(b"COUNT") => {
                Asked::Denied { count: units(self.next()?).filter(|count| *count > 0)? }
            }
            Some(_) => return None,
        };
        self.words.is_empty().then_some(asked)
    }

    fn time_ms(&mut self) -> Option<u64> {
        let at_ms = number(self.next()?)?;
        let latest_ms = self.clock_ms + MAX_WINDOW_MS;
        self.clock_decides |= (latest_ms..latest_ms + DAY_MS).contains(&at_ms);
        (at_ms < latest_ms + DAY_MS).then_some(at_ms)
    }
}

/// Takes what may come but once.
fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

/// A plain number: digits alone, no more of them than it takes, up to 2^64 - 1.
pub fn number(word: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(word).ok()?;
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn units(word: &[u8]) -> Option<u64> {
    number(word).filter(|units| *units <= MAX_UNITS)
}

fn duration_ms(word: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(word).ok()?;
    let (digits, unit) =
        text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let (unit_ms, least) = match unit {
        "" => (1, 1_000),
        "ms" => (1, 1),
        "s" => (1_000, 1),
        "m" => (60_000, 1),
        "h" => (3_600_000, 1),
        "d" => (DAY_MS, 1),
        _ => return None,
    };
    let count = number(digits.as_bytes()).filter(|count| *count >= least)?;
    count.checked_mul(unit_ms).filter(|window_ms| *window_ms <= MAX_WINDOW_MS)
}
