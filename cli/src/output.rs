//! The output for people and for programs: results go to standard output, everything else to standard error.

use std::io::{ErrorKind, IsTerminal, Write as _, stderr, stdout};
use std::time::{Duration, Instant};
use std::{env, os::fd::AsFd};

use clap::ArgMatches;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::status::Failure;

/// How the program reports on standard error what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// For programs: one object per line, with a field `event`.
    pub(crate) json: bool,
    /// Failures only.
    pub(crate) quiet: bool,
}

impl Words {
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let [json, quiet] = ["json", "quiet"].map(|name| matches.get_flag(name));
        Words { json, quiet }
    }

    /// Reports an event, unless `-q` was given.
    pub(crate) fn say(self, event: &str, facts: &[(&str, Value)], text: &str) {
        if !self.quiet {
            self.insist(event, facts, text);
        }
    }

    /// Reports an event that consists of a text alone.
    pub(crate) fn say_why(self, event: &str, reason: &str) {
        self.say(event, &[("reason", reason.into())], reason);
    }

    /// Reports a failure, even with `-q`: otherwise the user wouldn't know why nothing happened.
    pub(crate) fn failed(self, failure: &Failure) {
        let facts = [
            ("status", failure.status.0.into()),
            ("reason", failure.text.as_str().into()),
        ];
        self.insist("failed", &facts, &failure.text);
    }

    /// Reports an event, even with `-q`.
    pub(crate) fn insist(self, event: &str, facts: &[(&str, Value)], text: &str) {
        if !self.json {
            return line(&format!("crosslock: {}", visible(text)));
        }
        let mut told = Map::from_iter([("event".to_owned(), event.into())]);
        let facts = facts.iter().cloned();
        told.extend(facts.map(|(key, fact)| (key.to_owned(), fact)));
        line(&Value::Object(told).to_string());
    }

    /// Reports an event that only programs need.
    pub(crate) fn note(self, event: &str, facts: &[(&str, Value)]) {
        if self.json {
            self.say(event, facts, "");
        }
    }
}

/// Writes a line to standard error.
pub(crate) fn line(text: &str) {
    write_to_stderr(&format!("{text}\n"));
}

/// Writes to standard error. If nobody reads it for 250 ms, the rest is dropped: a full pipe must not delay the moment
/// when a command is stopped. A closed standard error is no failure.
pub(crate) fn write_to_stderr(text: &str) {
    /// A writable pipe accepts this many bytes without blocking.
    const PART: usize = 512;
    const PATIENCE: Duration = Duration::from_millis(250);
    let mut err = stderr().lock();
    for part in text.as_bytes().chunks(PART) {
        if !is_writable_within(&err, PATIENCE) || err.write_all(part).is_err() {
            return;
        }
    }
}

fn is_writable_within(output: &impl AsFd, most: Duration) -> bool {
    let start = Instant::now();
    loop {
        let left = Timespec::try_from(most.saturating_sub(start.elapsed())).unwrap_or_default();
        match poll(&mut [PollFd::new(output, PollFlags::OUT)], Some(&left)) {
            // A signal interrupted the call, such as the one of a command that ended.
            Err(Errno::INTR) => {}
            ready => return ready.is_ok_and(|ready| ready > 0),
        }
    }
}

/// Whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    stdout().is_terminal()
}

/// Whether standard output may have colours: on a terminal, unless `NO_COLOR` is set.
pub(crate) fn is_coloured() -> bool {
    is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Sends the log of the library to standard error.
pub(crate) fn log_to_stderr() {
    if log::set_logger(&StderrLog).is_ok() {
        log::set_max_level(log::LevelFilter::Debug);
    }
}

struct StderrLog;

impl log::Log for StderrLog {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("crosslock")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            let level = record.level().as_str().to_lowercase();
            let text = visible(&record.args().to_string());
            line(&format!("crosslock: {level}: {text}"));
        }
    }

    fn flush(&self) {}
}

/// Writes a result. Returns `false` if the reader has gone: the verb then ends without a message.
pub(crate) fn print(text: &str) -> Result<bool, Failure> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(Failure::broken("can't write to standard output", &e)),
    }
}

/// Each value on its own line.
pub(crate) fn json_lines<T: Serialize>(values: &[T]) -> Result<String, Failure> {
    let mut lines = String::new();
    for value in values {
        let line = serde_json::to_string(value);
        lines += &line.map_err(|e| Failure::broken("can't write a result as JSON", &e))?;
        lines.push('\n');
    }
    Ok(lines)
}

/// Makes a text safe for a terminal and for a line: any program may have written a name, a label or a host.
///
/// Control characters, and characters that hide or reorder text, become escapes: `\n`, `\u{1b}`.
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
