//! Whether a key is of the form that the module writes, by the documentation alone.

use std::collections::{BTreeMap, BTreeSet};

use super::grammar::number;

const MAX_STAMP: u64 = 1 << 53;
const MAX_UNITS: u64 = i64::MAX as u64;
const MAX_WINDOW_MS: u64 = 3650 * 86_400_000;
const MAX_FIELDS: usize = 8 * 3;

/// What is known of entries, each a score and a member: that they are no log if an end of them is no
/// entry, for each call looks at both. In between they may be anything.
pub fn are_no_log(entries: &[(Vec<u8>, Vec<u8>)]) -> bool {
    let mut scores = BTreeMap::new();
    for (score, member) in entries {
        let score: f64 = std::str::from_utf8(score).unwrap().parse().expect("a score is a number");
        scores.insert(member.as_slice(), score);
    }
    let mut sorted: Vec<(&[u8], f64)> = scores.into_iter().collect();
    // Those of one score stay in the order of their bytes.
    sorted.sort_by(|(_, score), (_, other)| score.partial_cmp(other).unwrap());
    let is_entry = |end: Option<&(&[u8], f64)>| {
        end.is_some_and(|(member, score)| is_stamp(*score) && is_member(member))
    };
    !is_entry(sorted.first()) || !is_entry(sorted.last())
}

fn is_stamp(score: f64) -> bool {
    score.fract() == 0.0 && (0.0..=MAX_STAMP as f64).contains(&score)
}

/// A letter for the number of digits of the total, the total, `+` and the cost.
fn is_member(member: &[u8]) -> bool {
    let Some(plus) = member.iter().position(|byte| *byte == b'+') else { return false };
    let (head, cost) = (&member[..plus], &member[plus + 1..]);
    let Some((letter, total)) = head.split_first() else { return false };
    number(total).is_some()
        && usize::from(*letter) == usize::from(b'a') - 1 + total.len()
        && number(cost).is_some_and(|cost| (1..=MAX_UNITS).contains(&cost))
}

/// Whether fields, each a name and a value, are counters: three for each of at most eight windows.
pub fn are_counters(fields: &[(Vec<u8>, Vec<u8>)]) -> bool {
    let fields: BTreeMap<&[u8], &[u8]> =
        fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).collect();
    let windows: Option<BTreeSet<u64>> =
        fields.iter().map(|(name, value)| window_of_field(name, value)).collect();
    let Some(windows) = windows else { return false };
    fields.len() <= MAX_FIELDS && fields.len() == 3 * windows.len()
}

/// The window of a field, in milliseconds; `None` if it is no field of a counter.
fn window_of_field(name: &[u8], value: &[u8]) -> Option<u64> {
    let (window, part) = std::str::from_utf8(name).ok()?.split_once(':')?;
    let window_ms = number(window.as_bytes()).filter(|ms| (1..=MAX_WINDOW_MS).contains(ms))?;
    let value = number(value)?;
    let is_value = match part {
        "start" => value <= MAX_STAMP && value % window_ms == 0,
        "current" | "previous" => value <= MAX_UNITS,
        _ => false,
    };
    is_value.then_some(window_ms)
}
