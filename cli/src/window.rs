//! The terminal that an output is: how large it is, and how lines fit into it.

use std::io::stdout;
use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Window {
    /// That of standard output.
    pub(crate) fn now() -> Self {
        Window::of(stdout())
    }

    /// As it is now; as usual, if it doesn't say.
    pub(crate) fn of(output: impl AsFd) -> Self {
        let size = tcgetwinsize(output).ok();
        let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
        Window {
            columns: size.map_or(80, |size| size.ws_col.into()),
            rows: size.map_or(24, |size| size.ws_row.into()),
        }
    }
}

/// The words of a text, in lines of so many columns. A longer word has a line of its own.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut filled = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if let Some(line) = lines
            .last_mut()
            .filter(|_| filled + 1 + length <= columns || filled == 0)
        {
            filled += length + usize::from(filled > 0);
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        } else {
            filled = length;
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn words_are_kept_whole() {
        assert_eq!(wrapped("a bb ccc dddd", 4), ["a bb", "ccc", "dddd"]);
        assert_eq!(wrapped("longer than that", 5), ["longer", "than", "that"]);
        assert_eq!(wrapped("", 5), [""]);
    }
}
