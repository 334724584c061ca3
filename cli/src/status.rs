//! The exit statuses, and the failures that lead to them.

use std::error::Error as _;
use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus};

use crosslock::Error;

/// An exit status of this program, or of the command that it has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) u8);

pub(crate) const OK: Status = Status(0);
/// The answer of a verb that asks: the lock isn't free, or something is weak.
pub(crate) const NO: Status = Status(1);
/// The arguments are wrong, or the engine can't do what they ask for.
pub(crate) const USAGE: Status = Status(64);
/// The engine can't be reached.
pub(crate) const UNAVAILABLE: Status = Status(69);
/// Something else went wrong: a key that is no lock, a full disk.
pub(crate) const FAILED: Status = Status(70);
/// Somebody has the lock.
pub(crate) const TAKEN: Status = Status(75);
/// The lock was lost, and the command therefore stopped.
pub(crate) const LOST: Status = Status(76);
/// The engine refuses this user.
pub(crate) const DENIED: Status = Status(77);

/// The command had run for as long as `--max-run` allows.
pub(crate) const RAN_TOO_LONG: Status = Status(124);
/// The command is there, but can't be executed.
pub(crate) const CANT_EXECUTE: Status = Status(126);
/// There is no such command.
pub(crate) const NOT_FOUND: Status = Status(127);

/// What a verb ends with.
pub(crate) type Outcome = Result<Status, Failure>;

/// Says why a verb couldn't do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) text: String,
}

impl Status {
    /// Of a command, as shells tell it.
    pub(crate) fn of(exit: ExitStatus) -> Self {
        match exit.code() {
            Some(code) => Status(code.to_le_bytes()[0]),
            None => Status::of_signal(exit.signal().unwrap_or_default()),
        }
    }

    /// Of what a signal has ended.
    pub(crate) fn of_signal(signal: i32) -> Self {
        Status(u8::try_from(128 + signal).unwrap_or(u8::MAX))
    }
}

impl Failure {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Self {
        let text = text.into();
        Failure { status, text }
    }

    /// A part of this program or system that doesn't work.
    pub(crate) fn broken(what: &str, error: &dyn fmt::Display) -> Self {
        Failure::new(FAILED, format!("{what}: {error}"))
    }

    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Failure::new(USAGE, text)
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        status.0.into()
    }
}

/// With all causes. No text of an error has a password or an owner in it.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text += &format!(": {error}");
            cause = error.source();
        }
        Failure::new(status_of(&error), text)
    }
}

fn status_of(error: &Error) -> Status {
    match error {
        Error::InvalidUrl { .. }
        | Error::InvalidName { .. }
        | Error::InvalidOption { .. }
        | Error::Unsupported { .. } => USAGE,
        Error::Busy { .. } => TAKEN,
        Error::Unavailable { .. } => UNAVAILABLE,
        Error::Denied { .. } => DENIED,
        Error::Lost { .. } => LOST,
        _ => FAILED,
    }
}
