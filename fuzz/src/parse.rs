//! Any words, one a line, to each parser: none panics, what is accepted is what the documentation allows, and what
//! is refused is told in one line that names the argument.

use rl::commands::parse::{self, DeniedCall, Syntax, UsageError};
use rl::limiter::{Charge, MAX_UNITS, MAX_WINDOW_MS, MAX_WINDOWS, Request};

/// The first clock, one of these days, and the last.
const CLOCKS_MS: [u64; 3] = [0, 1_796_037_190_903, 1 << 52];

pub fn run(data: &[u8]) {
    let words: Vec<&[u8]> = match data {
        [] => Vec::new(),
        _ => data.split(|byte| *byte == b'\n').collect(),
    };
    for clock_ms in CLOCKS_MS {
        check_request(&words, clock_ms);
        check_refund(&words, clock_ms);
    }
    check_denied(&words);
}

// ---------------------------------------------------------------------------------------------
// Requests
// ---------------------------------------------------------------------------------------------

fn check_request(words: &[&[u8]], clock_ms: u64) {
    let parse = |words: &[&[u8]], syntax| parse::request(words.iter().copied(), clock_ms, syntax);
    let slide = parse(words, Syntax::Slide).map_err(|error| check_error(&error, words));
    let swc = parse(words, Syntax::Swc).map_err(|error| check_error(&error, words));
    match (&slide, &swc) {
        (Ok(slide), Ok(swc)) => assert_eq!(canonical(slide), canonical(swc)),
        (Ok(slide), Err(())) => assert!(slide.precision_ms.is_some(), "only PRECISION differs"),
        (Err(()), Ok(swc)) => panic!("RL.SWC alone accepts {swc:?}"),
        (Err(()), Err(())) => {}
    }
    let Ok(request) = slide else { return };
    check_ranges(&request, clock_ms);
    check_windows(&request, words);

    let canonical_words = canonical(&request);
    let again: Vec<&[u8]> = canonical_words.iter().map(|word| word.as_bytes()).collect();
    let again = parse(&again, Syntax::Slide).expect("the canonical form is accepted");
    assert_eq!(canonical(&again), canonical_words);
    assert_eq!((again.now_ms, again.clock_ms), (request.now_ms, clock_ms));
}

fn check_ranges(request: &Request, clock_ms: u64) {
    let windows = &request.windows;
    assert!((1..=MAX_WINDOWS).contains(&windows.len()));
    for (index, window) in windows.iter().enumerate() {
        assert!((1..=MAX_WINDOW_MS).contains(&window.window_ms));
        assert!(window.limit <= MAX_UNITS);
        assert!(windows[..index].iter().all(|other| other.window_ms != window.window_ms));
    }
    assert!(request.cost <= MAX_UNITS);
    assert!(request.charge != Charge::Never);
    assert!(request.precision_ms.is_none_or(|p| (1..=windows.shortest_ms()).contains(&p)));
    assert_eq!(request.clock_ms, clock_ms);
    assert!(request.now_ms <= clock_ms + MAX_WINDOW_MS);
}

/// The windows are those of the words, read in another way.
fn check_windows(request: &Request, words: &[&[u8]]) {
    for (window, words) in request.windows.iter().zip(words.chunks(2)) {
        assert_eq!(Some(window.window_ms), duration_ms(words[0]), "of {words:?}");
        assert_eq!(window.limit.to_string().as_bytes(), words[1]);
    }
}

fn duration_ms(word: &[u8]) -> Option<u64> {
    let word = str::from_utf8(word).ok()?;
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let with_unit = units.iter().find_map(|(unit, unit_ms)| {
        let number: u64 = word.strip_suffix(unit)?.parse().ok()?;
        (word == format!("{number}{unit}")).then(|| number * unit_ms)
    });
    let bare =
        || word.parse().ok().filter(|number: &u64| *number >= 1_000 && word == number.to_string());
    with_unit.or_else(bare)
}

/// The request in words, with everything said.
fn canonical(request: &Request) -> Vec<String> {
    let mut words = Vec::new();
    for window in request.windows.iter() {
        words.extend([format!("{}ms", window.window_ms), window.limit.to_string()]);
    }
    if request.charge == Charge::Always {
        words.push("FORCE".into());
    }
    if let Some(precision_ms) = request.precision_ms {
        words.extend(["PRECISION".into(), format!("{precision_ms}ms")]);
    }
    words.extend(["COST".into(), request.cost.to_string()]);
    words.extend(["AT".into(), request.now_ms.to_string()]);
    words
}

// ---------------------------------------------------------------------------------------------
// The others
// ---------------------------------------------------------------------------------------------

fn check_refund(words: &[&[u8]], clock_ms: u64) {
    match parse::refund(words.iter().copied(), clock_ms) {
        Ok((units, now_ms)) => {
            assert!((1..=MAX_UNITS).contains(&units));
            assert_eq!(units.to_string().as_bytes(), words[0]);
            assert!(now_ms <= clock_ms + MAX_WINDOW_MS);
            match words[1..] {
                [] => assert_eq!(now_ms, clock_ms),
                [_, at] => assert_eq!(now_ms.to_string().as_bytes(), at),
                _ => panic!("too many words were accepted: {words:?}"),
            }
        }
        Err(error) => check_error(&error, words),
    }
}

fn check_denied(words: &[&[u8]]) {
    match (parse::denied(words.iter().copied()), words) {
        (Ok(DeniedCall::List { count }), []) => assert_eq!(count, 10),
        (Ok(DeniedCall::Reset), [word]) => assert!(word.eq_ignore_ascii_case(b"RESET")),
        (Ok(DeniedCall::List { count }), [_, number]) => {
            assert_eq!(count.to_string().as_bytes(), *number);
            assert!((1..=MAX_UNITS).contains(&(count as u64)));
        }
        (Ok(call), _) => panic!("{words:?} was accepted as {call:?}"),
        (Err(error), _) => check_error(&error, words),
    }
}

// ---------------------------------------------------------------------------------------------
// Errors
// ---------------------------------------------------------------------------------------------

const NAMES: [&str; 9] =
    ["window", "limit", "COST", "FORCE", "PRECISION", "AT ", "units", "COUNT", "option"];

/// One printable line, not too long, that names the argument and shows no word but one of the call.
fn check_error(error: &UsageError, words: &[&[u8]]) {
    let text = error.to_string();
    assert!(text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()), "{text}");
    assert!(text.len() <= 300, "{text}");
    assert!(NAMES.iter().any(|name| text.contains(name)), "{text}");
    if let Some((_, shown)) = text.split_once('\'') {
        let shown_whole = |word: &&[u8]| {
            let cut = word.len() > 32;
            let quoted = word[..word.len().min(32)].escape_ascii();
            shown.starts_with(&format!("{quoted}{}'", if cut { "..." } else { "" }))
        };
        assert!(words.iter().any(shown_whole), "{text}: {words:?}");
    }
}
