//! Decimal numbers as the wire and the stored form have them.

/// Reads a number from 0 to 2^64 - 1: digits alone, no sign, no space, no leading zero.
pub fn parse(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || (digits.len() > 1 && digits[0] == b'0') {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn plain_numbers() {
        assert_eq!(parse(b"0"), Some(0));
        assert_eq!(parse(b"907"), Some(907));
        assert_eq!(parse(b"18446744073709551615"), Some(u64::MAX));
    }

    #[test]
    fn everything_else() {
        let others: [&[u8]; 9] =
            [b"", b"00", b"07", b"+7", b"-7", b" 7", b"7.0", b"\xb2", b"18446744073709551616"];
        for digits in others {
            assert_eq!(parse(digits), None, "{}", digits.escape_ascii());
        }
    }
}
