//! Texts of others, so that they can't steer a terminal or break a line: names, labels and hosts are what any program wrote.

/// The text, with its control characters, and those that change the order or hide, as escapes: `\n`, `\u{1b}`.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_invisible(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn nothing_steers_a_terminal() {
        for (text, shown) in [
            ("deploy/éü 1", "deploy/éü 1"),
            ("a\tb\nc", r"a\tb\nc"),
            ("\x1b[2J\x07", r"\u{1b}[2J\u{7}"),
            ("\u{9b}31m", r"\u{9b}31m"),
            ("a\u{202e}b\u{200b}", r"a\u{202e}b\u{200b}"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }
}
