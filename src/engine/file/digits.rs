//! Numbers as digits: a file's text is written for each change of a lock.

/// Adds the digits of a number.
pub(super) fn push(text: &mut String, number: u64) {
    push_padded(text, number, 1);
}

/// With zeros before it up to this width, which is at most 20.
pub(super) fn push_padded(text: &mut String, mut number: u64, width: usize) {
    const LONGEST: usize = 20;
    let mut digits = [b'0'; LONGEST];
    let mut first = LONGEST;
    while number > 0 {
        first -= 1;
        digits[first] += (number % 10) as u8;
        number /= 10;
    }
    let digits = &digits[first.min(LONGEST - width)..];
    text.push_str(str::from_utf8(digits).unwrap_or_default());
}

/// Two hexadecimal digits for each byte.
pub(super) fn push_hex<const N: usize>(text: &mut String, bytes: [u8; N]) {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)]);
        text.push(DIGITS[usize::from(byte & 0xf)]);
    }
}

/// The number whose bytes `push_hex` has written, the highest first; `None` for anything else.
pub(super) fn parse_hex(text: &str, count: usize) -> Option<u128> {
    let digits = text.as_bytes();
    if digits.len() != count {
        return None;
    }
    digits.iter().try_fold(0, |number, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::for_any;

    #[test]
    fn digits_are_those_of_the_standard_library() {
        for_any(|random| {
            let (number, width) = (random.magnitude(), random.usize(1..=20));
            let mut text = "x".to_owned();
            push_padded(&mut text, number, width);
            assert_eq!(text, format!("x{number:0width$}"));
            text.clear();
            push(&mut text, number);
            assert_eq!(text, number.to_string());
        });
    }

    #[test]
    fn hexadecimal_digits_are_read_again() {
        for_any(|random| {
            let number = u128::from(random.magnitude()) << 64 | u128::from(random.magnitude());
            let mut text = String::new();
            push_hex(&mut text, number.to_be_bytes());
            assert_eq!(text, format!("{number:032x}"));
            assert_eq!(parse_hex(&text, 32), Some(number));
            assert_eq!(parse_hex(&text, 31), None);
            text.replace_range(7..8, random.one_of(&["A", "F", "g", " ", "+", "-"]));
            assert_eq!(parse_hex(&text, 32), None);
        });
    }
}
