//! The exit statuses, and the failures behind them.

use std::process::{ExitCode, ExitStatus};
use std::{error::Error as _, fmt, os::unix::process::ExitStatusExt as _};

use crosslock::Error;

/// An exit status of this program, or of the command that it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) u8);

pub(crate) const OK: Status = Status(0);
/// The answer of `test`, `leader`, `tasks` and `doctor`: the lock isn't free, nobody leads, a task isn't in that state,
/// or a guarantee is weak.
pub(crate) const NO: Status = Status(1);
/// The arguments are wrong, or the engine doesn't support them.
pub(crate) const USAGE: Status = Status(64);
/// The engine can't be reached.
pub(crate) const UNAVAILABLE: Status = Status(69);
/// Another failure, such as a key that is no lock, or a full disk.
pub(crate) const FAILED: Status = Status(70);
/// Another process holds the lock.
pub(crate) const TAKEN: Status = Status(75);
/// The lock was lost and the command was stopped.
pub(crate) const LOST: Status = Status(76);
/// The engine denies access.
pub(crate) const DENIED: Status = Status(77);

/// The command ran longer than `--max-run`.
pub(crate) const RAN_TOO_LONG: Status = Status(124);
/// The command exists, but can't be executed.
pub(crate) const CANT_EXECUTE: Status = Status(126);
/// The command wasn't found.
pub(crate) const NOT_FOUND: Status = Status(127);

/// The result of a verb.
pub(crate) type Outcome = Result<Status, Failure>;

/// Why a verb failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) text: String,
}

impl Status {
    /// The status of a command, as shells report it.
    pub(crate) fn of(exit: ExitStatus) -> Self {
        match exit.code() {
            Some(code) => Status(code.to_le_bytes()[0]),
            None => Status::of_signal(exit.signal().unwrap_or_default()),
        }
    }

    /// The status of a command that a signal ended.
    pub(crate) fn of_signal(signal: i32) -> Self {
        Status(u8::try_from(128 + signal).unwrap_or(u8::MAX))
    }
}

impl Failure {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Self {
        let text = text.into();
        Failure { status, text }
    }

    /// A part of this program or of the system failed.
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

/// The text has all causes. No text of an error contains a password or an owner.
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
