//! The stored form of an entry: a member and its score.
//!
//! The score is the stamp in Unix milliseconds. The member is the running total, a `+` and the
//! cost, both decimal, behind a letter that tells the number of the total's digits: `a7+5`,
//! `b10+3`. The server sorts members of one score by their bytes, and with the letter in front that
//! is the order of the totals, in which they came. The form is frozen.

use crate::decimal::{self, Digits};
use crate::limiter::{Entry, MAX_STAMP_MS, MAX_STORED_UNITS};

/// A letter, 20 digits, a `+` and 19 digits.
const MAX_LEN: usize = 1 + 20 + 1 + 19;

/// The bytes of a member.
pub struct Member {
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl Member {
    /// The member of `entry`, without allocating.
    pub fn of(entry: &Entry) -> Self {
        let (total, cost) = (Digits::of(entry.total), Digits::of(entry.cost));
        let letter = b'a' + total.as_bytes().len() as u8 - 1;
        let mut member = Self { bytes: [0; MAX_LEN], len: 0 };
        member.push(&[letter]);
        member.push(total.as_bytes());
        member.push(b"+");
        member.push(cost.as_bytes());
        member
    }

    /// The bytes, as they are stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, part: &[u8]) {
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
    }
}

/// The score of `entry`: exact, since stamps end at 2^53.
pub fn score_of(entry: &Entry) -> f64 {
    entry.stamp_ms as f64
}

/// Reads an entry; `None` if it is not of the form that this module writes.
pub fn parse(score: f64, member: &[u8]) -> Option<Entry> {
    let stamp_ms = score as u64;
    let is_stamp = stamp_ms as f64 == score && stamp_ms <= MAX_STAMP_MS;
    let (letter, sum) = member.split_first().filter(|_| is_stamp)?;
    let plus = usize::from(letter.checked_sub(b'a')?) + 1;
    let (total, rest) = sum.split_at_checked(plus)?;
    let (b'+', cost) = rest.split_first()? else { return None };
    let cost = decimal::parse(cost).filter(|cost| (1..=MAX_STORED_UNITS).contains(cost))?;
    Some(Entry { stamp_ms, total: decimal::parse(total)?, cost })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP_MS: u64 = 1_796_037_190_903;

    fn member_of(total: u64, cost: u64) -> Vec<u8> {
        Member::of(&Entry { stamp_ms: STAMP_MS, total, cost }).as_bytes().to_vec()
    }

    #[test]
    fn the_documented_members() {
        let documented: [(u64, u64, &[u8]); 7] = [
            (1, 1, b"a1+1"),
            (7, 5, b"a7+5"),
            (10, 3, b"b10+3"),
            (0, 12, b"a0+12"),
            (4, 10, b"a4+10"),
            (9_999_999_999, 1, b"j9999999999+1"),
            (u64::MAX, MAX_STORED_UNITS, b"t18446744073709551615+9223372036854775807"),
        ];
        for (total, cost, member) in documented {
            assert_eq!(member_of(total, cost), member);
            let entry = Entry { stamp_ms: STAMP_MS, total, cost };
            assert_eq!(parse(score_of(&entry), member), Some(entry));
        }
    }

    #[test]
    fn members_sort_as_their_totals() {
        let totals = (0..1_000).chain((1..20).flat_map(|digits| {
            let power = 10_u64.pow(digits);
            [power - 1, power, power + 1]
        }));
        let mut totals: Vec<u64> = totals.chain([u64::MAX - 1, u64::MAX]).collect();
        totals.sort();
        totals.dedup();
        for pair in totals.windows(2) {
            assert!(member_of(pair[0], u64::MAX >> 1) < member_of(pair[1], 1), "{pair:?}");
        }
    }

    #[test]
    fn foreign_members() {
        let foreign: [&[u8]; 22] = [
            b"",
            b"a",
            b"1+1",
            b"a1",
            b"a1+",
            b"a+1",
            b"a1+0",
            b"a1+01",
            b"b01+1",
            b"b1+1",
            b"a10+1",
            b"A1+1",
            b"`+1",
            b"u184467440737095516150+1",
            b"t18446744073709551616+1",
            b"a1+9223372036854775808",
            b"a1+-1",
            b"a1++1",
            b"a1+1 ",
            b" a1+1",
            b"a1-1",
            b"\xff1+1",
        ];
        for member in foreign {
            assert_eq!(parse(1.0, member), None, "{}", member.escape_ascii());
        }
        assert!(parse(1.0, b"a1+1").is_some());
    }

    #[test]
    fn foreign_scores() {
        let last_stamp = MAX_STAMP_MS as f64;
        for score in [-1.0, 0.5, last_stamp + 2.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            assert_eq!(parse(score, b"a1+1"), None, "{score}");
        }
        for score in [0.0, -0.0, 1.0, last_stamp] {
            assert!(parse(score, b"a1+1").is_some(), "{score}");
        }
    }
}
