//! The command line: a number, words, and options with values.

use std::str::FromStr;

/// The number on the command line, if there is one.
pub(crate) fn argument<T: FromStr>() -> Option<T> {
    words().find_map(|word| word.parse().ok())
}

/// Whether the word is on the command line.
pub(crate) fn has(wanted: &str) -> bool {
    words().any(|word| word == wanted)
}

/// The value behind the option of that name.
pub(crate) fn option<T: FromStr>(name: &str) -> Option<T> {
    let value = std::env::args().skip_while(|arg| arg != name).nth(1)?;
    let Ok(value) = value.parse() else {
        panic!("{name} can't be {value}");
    };
    Some(value)
}

/// All that is neither an option nor the value of one. `--bench` is cargo's.
pub(crate) fn words() -> impl Iterator<Item = String> {
    let mut is_value = false;
    std::env::args().skip(1).filter(move |arg| {
        let is_option = arg.starts_with("--");
        let is_word = !is_option && !is_value;
        is_value = is_option && arg != "--bench";
        is_word
    })
}
