//! Text in which some bytes are `%xx`, as in URLs.

use std::fmt::Write as _;

/// All bytes are escaped but those that `is_plain` tells, by their place and value. Each byte has its own text, so that
/// what begins alike still does.
pub(crate) fn escaped(text: &str, is_plain: impl Fn(usize, u8) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (place, byte) in text.bytes().enumerate() {
        if is_plain(place, byte) {
            escaped.push(byte.into());
        } else {
            // Writing to a string doesn't fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// The bytes that it stands for; `None` where two hexadecimal digits don't follow a `%`.
pub(crate) fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(bytes)
}

/// The same as text, if it is what [`escaped`] gives with that `is_plain`.
#[allow(dead_code, reason = "engines with a line use it")]
pub(crate) fn unescaped_text(text: &str, is_plain: impl Fn(usize, u8) -> bool) -> Option<String> {
    let plain = String::from_utf8(unescaped(text)?).ok()?;
    (escaped(&plain, is_plain) == text).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_text_has_no_meaning() {
        for text in ["%", "%2", "a%zz", "%+1", "%é"] {
            assert_eq!(unescaped(text), None, "{text}");
        }
        let is_plain = |_, byte: u8| byte.is_ascii_lowercase();
        for text in ["%61", "%2f", "%FF", "/"] {
            assert_eq!(unescaped_text(text, is_plain), None, "{text}");
        }
    }
}
