//! Parsing: the words behind the command's name and key, in place.
//!
//! `window limit [window limit ...] [COST n] [FORCE] [PRECISION p] [AT t]`, or `n [AT t]`, or
//! `[COUNT n]` or `RESET`.
//!
//! A word that starts with a digit is a window; the first that does not begins the options, which
//! come in any order and any case, each at most once. Nothing is allocated unless a word is wrong.

use crate::decimal;
use crate::limiter::{
    Charge, MAX_UNITS, MAX_WINDOW_MS, MAX_WINDOWS, Request, Window, Windows, WindowsError,
};
use std::fmt;

/// How far `AT` may lie after the server's clock: as far as the longest window.
const MAX_AT_AHEAD_MS: u64 = MAX_WINDOW_MS;

/// A bare number below this is more likely meant as seconds than as the milliseconds it says.
const MIN_BARE_MS: u64 = 1_000;

/// What is wrong with the arguments, in a sentence that names the one and says what it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageError(String);

impl fmt::Display for UsageError {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Which options there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// All of them.
    Slide,
    /// All but `PRECISION`: a counter has no stamps.
    Swc,
}

/// Parses windows and options; `clock_ms` is the server's clock in Unix milliseconds.
///
/// # Errors
/// At the first word that is wrong or missing.
pub fn request<'a>(
    words: impl Iterator<Item = &'a [u8]>,
    clock_ms: u64,
    syntax: Syntax,
) -> Result<Request, UsageError> {
    let mut words = words.peekable();
    let mut windows = Windows::new(next_window(&mut words)?);
    while words.peek().is_some_and(|word| word.first().is_some_and(u8::is_ascii_digit)) {
        push_window(&mut windows, &mut words)?;
    }
    let options = Options::parse(words, clock_ms, syntax)?;
    if let Some(precision_ms) = options.precision_ms
        && precision_ms > windows.shortest_ms()
    {
        let shortest_ms = windows.shortest_ms();
        return Err(UsageError(format!(
            "PRECISION {precision_ms}ms must not be above the shortest window, {shortest_ms}ms"
        )));
    }
    Ok(Request {
        windows,
        cost: options.cost.unwrap_or(1),
        charge: if options.force { Charge::Always } else { Charge::IfAllowed },
        precision_ms: options.precision_ms,
        max_entries: 0,
        now_ms: options.at_ms.unwrap_or(clock_ms),
        clock_ms,
    })
}

/// Parses the units of a refund and its time in Unix milliseconds.
///
/// # Errors
/// At the first word that is wrong or missing.
pub fn refund<'a>(
    mut words: impl Iterator<Item = &'a [u8]>,
    clock_ms: u64,
) -> Result<(u64, u64), UsageError> {
    let Some(word) = words.next() else {
        return Err(UsageError("the units to take back must follow the key".into()));
    };
    let units = positive("units", word)?;
    let mut at = None;
    while let Some(word) = words.next() {
        if !word.eq_ignore_ascii_case(b"AT") {
            let word = quoted(word);
            return Err(UsageError(format!(
                "unknown option {word}: after the units may come AT t"
            )));
        }
        at = Some(at_ms(value("AT", &at, words.next())?, clock_ms)?);
    }
    Ok((units, at.unwrap_or(clock_ms)))
}

/// What `RL.DENIED` is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeniedCall {
    /// The `count` keys denied most often.
    List {
        /// Keys at most, 1 or more.
        count: usize,
    },
    /// To forget all of them.
    Reset,
}

/// Parses `[COUNT n]` or `RESET`.
///
/// # Errors
/// At the first word that is wrong or missing.
pub fn denied<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Result<DeniedCall, UsageError> {
    const DEFAULT_COUNT: usize = 10;
    let call = match words.next() {
        None => return Ok(DeniedCall::List { count: DEFAULT_COUNT }),
        Some(word) if word.eq_ignore_ascii_case(b"RESET") => DeniedCall::Reset,
        Some(word) if word.eq_ignore_ascii_case(b"COUNT") => {
            let count = positive("COUNT", value("COUNT", &None, words.next())?)?;
            DeniedCall::List { count: usize::try_from(count).unwrap_or(usize::MAX) }
        }
        Some(word) => return Err(unknown_denied_option(word)),
    };
    match words.next() {
        None => Ok(call),
        Some(word) => Err(unknown_denied_option(word)),
    }
}

fn unknown_denied_option(word: &[u8]) -> UsageError {
    let word = quoted(word);
    UsageError(format!("unknown option {word}: there may be COUNT n, or RESET"))
}

// ---------------------------------------------------------------------------------------------
// Windows
// ---------------------------------------------------------------------------------------------

fn next_window<'a>(words: &mut impl Iterator<Item = &'a [u8]>) -> Result<Window, UsageError> {
    let Some(length) = words.next() else {
        return Err(UsageError("a window like 60s and its limit must follow the key".into()));
    };
    let Some(limit) = words.next() else {
        return Err(UsageError(format!("window {} needs a limit after it", quoted(length))));
    };
    window(length, limit).map_err(|error| if is_duration(limit) { turned(limit) } else { error })
}

fn window(length: &[u8], limit: &[u8]) -> Result<Window, UsageError> {
    Ok(Window { window_ms: duration_ms("window", length)?, limit: units("limit", limit)? })
}

/// A limit that is a window: most likely the two were turned round.
fn turned(limit: &[u8]) -> UsageError {
    let limit = quoted(limit);
    UsageError(format!("limit {limit} is a duration: the window comes first, like 60s 5"))
}

fn push_window<'a>(
    windows: &mut Windows,
    words: &mut std::iter::Peekable<impl Iterator<Item = &'a [u8]>>,
) -> Result<(), UsageError> {
    let length = words.peek().copied().unwrap_or_default();
    windows.push(next_window(words)?).map_err(|error| {
        let length = quoted(length);
        UsageError(match error {
            WindowsError::Duplicate => format!("window {length} is given twice"),
            WindowsError::TooMany => {
                format!("window {length} is one too many: at most {MAX_WINDOWS} are allowed")
            }
        })
    })
}

// ---------------------------------------------------------------------------------------------
// Options
// ---------------------------------------------------------------------------------------------

#[derive(Default)]
struct Options {
    cost: Option<u64>,
    force: bool,
    precision_ms: Option<u64>,
    at_ms: Option<u64>,
}

impl Options {
    fn parse<'a>(
        mut words: impl Iterator<Item = &'a [u8]>,
        clock_ms: u64,
        syntax: Syntax,
    ) -> Result<Self, UsageError> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            if word.eq_ignore_ascii_case(b"COST") {
                let cost = value("COST", &options.cost, words.next())?;
                options.cost = Some(units("COST", cost)?);
            } else if word.eq_ignore_ascii_case(b"FORCE") {
                if options.force {
                    return Err(given_twice("FORCE"));
                }
                options.force = true;
            } else if syntax == Syntax::Slide && word.eq_ignore_ascii_case(b"PRECISION") {
                let precision = value("PRECISION", &options.precision_ms, words.next())?;
                options.precision_ms = Some(duration_ms("PRECISION", precision)?);
            } else if word.eq_ignore_ascii_case(b"AT") {
                let at = value("AT", &options.at_ms, words.next())?;
                options.at_ms = Some(at_ms(at, clock_ms)?);
            } else {
                return Err(unknown_option(word, syntax));
            }
        }
        Ok(options)
    }
}

fn unknown_option(word: &[u8], syntax: Syntax) -> UsageError {
    let word = quoted(word);
    let precision = if syntax == Syntax::Slide { "PRECISION p, " } else { "" };
    UsageError(format!(
        "unknown option {word}: after the windows may come COST n, FORCE, {precision}AT t"
    ))
}

/// The word behind an option that has none yet.
fn value<'a>(
    option: &str,
    given: &Option<u64>,
    word: Option<&'a [u8]>,
) -> Result<&'a [u8], UsageError> {
    match (given, word) {
        (Some(_), _) => Err(given_twice(option)),
        (None, Some(word)) => Ok(word),
        (None, None) => Err(UsageError(format!("{option} needs a value after it"))),
    }
}

fn given_twice(option: &str) -> UsageError {
    UsageError(format!("{option} is given twice"))
}

fn at_ms(word: &[u8], clock_ms: u64) -> Result<u64, UsageError> {
    let latest_ms = clock_ms + MAX_AT_AHEAD_MS;
    decimal::parse(word).filter(|at_ms| *at_ms <= latest_ms).ok_or_else(|| {
        let word = quoted(word);
        UsageError(format!(
            "AT {word} must be Unix milliseconds, from 0 to 3650 days after the server's clock, \
             {latest_ms}"
        ))
    })
}

// ---------------------------------------------------------------------------------------------
// Quantities
// ---------------------------------------------------------------------------------------------

/// A limit or a cost: 0 to 2^53 - 1.
fn units(what: &str, word: &[u8]) -> Result<u64, UsageError> {
    decimal::parse(word).filter(|units| *units <= MAX_UNITS).ok_or_else(|| {
        let word = quoted(word);
        UsageError(format!("{what} {word} must be an integer from 0 to {MAX_UNITS}"))
    })
}

/// A number of units to take back, or of keys to list: 1 to 2^53 - 1.
fn positive(what: &str, word: &[u8]) -> Result<u64, UsageError> {
    decimal::parse(word).filter(|number| (1..=MAX_UNITS).contains(number)).ok_or_else(|| {
        let word = quoted(word);
        UsageError(format!("{what} {word} must be an integer from 1 to {MAX_UNITS}"))
    })
}

/// A duration: a number and `ms`, `s`, `m`, `h` or `d`, from 1 ms to 3650 d.
fn duration_ms(what: &str, word: &[u8]) -> Result<u64, UsageError> {
    let unit_start = word.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(word.len());
    let (number, unit) = word.split_at(unit_start);
    let unit_ms = match unit {
        b"ms" | b"" => Some(1),
        b"s" => Some(1_000),
        b"m" => Some(60 * 1_000),
        b"h" => Some(60 * 60 * 1_000),
        b"d" => Some(24 * 60 * 60 * 1_000),
        _ => None,
    };
    let number = decimal::parse(number);
    if let (Some(number @ 1..MIN_BARE_MS), b"") = (number, unit) {
        return Err(UsageError(format!(
            "{what} '{number}' is {number} milliseconds: write {number}ms, or {number}s for seconds"
        )));
    }
    let window_ms = number.zip(unit_ms).and_then(|(number, unit_ms)| number.checked_mul(unit_ms));
    window_ms.filter(|window_ms| (1..=MAX_WINDOW_MS).contains(window_ms)).ok_or_else(|| {
        let word = quoted(word);
        UsageError(format!(
            "{what} {word} must be a number and its unit, ms, s, m, h or d, like 500ms or 60s, \
             from 1ms to 3650d"
        ))
    })
}

/// Whether it is a duration and no plain number.
fn is_duration(word: &[u8]) -> bool {
    !word.last().is_some_and(u8::is_ascii_digit) && duration_ms("", word).is_ok()
}

/// A word as an error may show it: whatever bytes it has, one line, and not too long.
fn quoted(word: &[u8]) -> String {
    const SHOWN: usize = 32;
    let shown = word[..word.len().min(SHOWN)].escape_ascii();
    let rest = if word.len() > SHOWN { "..." } else { "" };
    format!("'{shown}{rest}'")
}
