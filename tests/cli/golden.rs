//! Output that is compared with files of `golden/`, without what differs from run to run.
//!
//! With the variable `CROSSLOCK_WRITE_GOLDEN` a test writes its file anew: look at the difference before it is
//! committed.

use std::fs;
use std::path::Path;

/// Compares what was printed with the file of that name. `pids` are shown as `PID-0`, `PID-1` ...
#[track_caller]
pub(crate) fn assert_golden(name: &str, printed: &str, pids: &[u32]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cli/golden");
    let path = path.join(name);
    let printed = normal(printed, pids);
    if std::env::var_os("CROSSLOCK_WRITE_GOLDEN").is_some() {
        fs::write(&path, &printed).expect("write the golden file");
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(printed, golden, "{name} differs");
}

/// With words for hosts, processes, tokens and times.
fn normal(printed: &str, pids: &[u32]) -> String {
    let host = rustix::system::uname();
    let mut text = printed.replace(&*host.nodename().to_string_lossy(), "HOST");
    text = text.replace("\r\n", "\n");
    text = text.replace("\x1b[1m", "<bold>").replace("\x1b[0m", "</>");
    text = text.split('\n').map(words).collect::<Vec<_>>().join("\n");
    for (number, pid) in pids.iter().enumerate() {
        text = replace_number(&text, &pid.to_string(), &format!("PID-{number}"));
    }
    aligned(&text)
}

/// A line with words for moments, tokens and times.
fn words(line: &str) -> String {
    let mut shown = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        shown.push_str(before);
        let (word, length) = number(from);
        shown.push_str(&word);
        rest = &from[length..];
    }
    shown + rest
}

/// What stands for the number that a text begins with, and how long that is.
fn number(text: &str) -> (String, usize) {
    const MOMENT: &str = "2026-11-22T06:31:39.123Z";
    if text
        .get(..MOMENT.len())
        .is_some_and(|moment| is_like(moment, MOMENT))
    {
        return ("MOMENT".to_owned(), MOMENT.len());
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (digits, behind) = text.split_at(end.unwrap_or(text.len()));
    let unit = [" ms", " s", " min", "ms", "µs", "ns"].into_iter();
    let mut unit = unit.filter(|unit| behind.starts_with(unit));
    match unit.next() {
        Some(unit) => ("TIME".to_owned(), digits.len() + unit.len()),
        None if is_seconds(digits) => ("SECONDS".to_owned(), digits.len()),
        None if digits.len() > 12 => ("TOKEN".to_owned(), digits.len()),
        None => (digits.to_owned(), digits.len()),
    }
}

/// `12.345`.
fn is_seconds(digits: &str) -> bool {
    digits
        .split_once('.')
        .is_some_and(|(_, fraction)| fraction.len() == 3 && !fraction.contains('.'))
}

fn is_like(text: &str, shape: &str) -> bool {
    let alike = |(c, s): (char, char)| {
        if s.is_ascii_digit() {
            c.is_ascii_digit()
        } else {
            c == s
        }
    };
    text.chars().zip(shape.chars()).all(alike)
}

fn replace_number(text: &str, number: &str, word: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(number) {
        let (before, from) = rest.split_at(at);
        let behind = &from[number.len()..];
        let is_part = before.ends_with(|c: char| c.is_ascii_digit())
            || behind.starts_with(|c: char| c.is_ascii_digit());
        shown.push_str(before);
        shown.push_str(if is_part { number } else { word });
        rest = behind;
    }
    shown + rest
}

/// With two blanks between columns, however wide these are.
fn aligned(text: &str) -> String {
    let mut text = text.to_owned();
    while text.contains("   ") {
        text = text.replace("   ", "  ");
    }
    text
}
