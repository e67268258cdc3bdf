//! Decimal numbers as the wire and the stored forms have them.

/// The digits of a number, written without allocating.
pub struct Digits {
    bytes: [u8; 20],
    start: usize,
}

impl Digits {
    /// The digits of `number`, without leading zeros.
    pub fn of(mut number: u64) -> Self {
        let mut digits = Self { bytes: [0; 20], start: 20 };
        loop {
            digits.start -= 1;
            digits.bytes[digits.start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return digits;
            }
        }
    }

    /// The digits, 1 to 20.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

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
    use super::{Digits, parse};

    #[test]
    fn plain_numbers() {
        for (number, digits) in [(0, "0"), (907, "907"), (u64::MAX, "18446744073709551615")] {
            assert_eq!(Digits::of(number).as_bytes(), digits.as_bytes());
            assert_eq!(parse(digits.as_bytes()), Some(number));
        }
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
