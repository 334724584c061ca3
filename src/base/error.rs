//! What can go wrong.

use std::error::Error as StdError;
use std::fmt;

/// The cause of an [`Error`], as [`source`](StdError::source) gives it.
pub(crate) type Cause = Box<dyn StdError + Send + Sync>;

/// What went wrong with a lock.
///
/// A lock that is taken isn't an error: the `try_` calls return `Ok(None)`. No text contains a password or an owner
/// string.
///
/// The text of an error says what failed, for which lock, and what to do. The reason, such as the server's own words,
/// is its [`source`](StdError::source). Print that too, as `{:#}` of anyhow does. `{:?}`, which a `main` that returns
/// an error prints, has both.
///
/// | variant | retry? |
/// |---|---|
/// | `Busy` | yes: another held the lock at each attempt |
/// | `Cancelled` | no: this program asked for it |
/// | `Unavailable` | yes, later: an outage |
/// | `Lost` | take the lock anew, and check what the other holder did |
/// | `Denied`, `Conflict`, `Corrupt` | after somebody has changed rights, key or value |
/// | `InvalidUrl`, `InvalidName`, `InvalidOption`, `InvalidValue`, `Unsupported` | no: the program must change |
/// | `Engine` | depends on its source |
///
/// # Examples
///
/// ```
/// use crosslock::{Error, Locker};
///
/// match Locker::open("carrier-pigeon://roof/") {
///     Err(Error::InvalidUrl { reason, .. }) => assert!(reason.contains("redis://")),
///     other => panic!("{other:?}"),
/// }
/// ```
///
/// What to do about some of them:
///
/// ```
/// use crosslock::{Error, Locker};
///
/// # fn main() -> crosslock::Result<()> {
/// # let locker = Locker::open("memory:")?;
/// match locker.lock("error-example") {
///     Ok(guard) => println!("the job runs, with token {}", guard.fencing_token()),
///     Err(Error::Unavailable { source, .. }) => println!("an outage, the job runs later: {source}"),
///     Err(e) => return Err(e),
/// }
/// # Ok(())
/// # }
/// ```
#[non_exhaustive]
pub enum Error {
    /// A part of the URL isn't understood, or names something impossible.
    #[non_exhaustive]
    InvalidUrl {
        /// The URL, without user and password.
        url: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A lock's name isn't 1 to 512 bytes long.
    #[non_exhaustive]
    InvalidName {
        /// The name, shortened.
        name: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// An option of a builder, or an argument of a call, is out of its range.
    #[non_exhaustive]
    InvalidOption {
        /// The name of the setter or the argument.
        option: &'static str,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// The lock was taken at each of the [`attempts`](crate::LockerBuilder::attempts).
    #[non_exhaustive]
    Busy {
        /// The lock's name.
        name: String,
        /// The number of attempts.
        attempts: u32,
    },
    /// A [`CancelToken`](crate::CancelToken) or [`Locker::close`](crate::Locker::close) ended the call.
    #[non_exhaustive]
    Cancelled {
        /// The lock's name.
        name: String,
    },
    /// The lease is over, and another may hold the lock by now.
    #[non_exhaustive]
    Lost {
        /// The lock's name.
        name: String,
        /// How that is known.
        reason: LostReason,
    },
    /// The engine can't be reached, didn't answer in time, or can't serve at the moment. The request may have been
    /// executed or not.
    #[non_exhaustive]
    Unavailable {
        /// The lock's name, when there was one.
        name: Option<String>,
        /// Where locks live, without user and password.
        engine: String,
        /// What is unknown now, and what to do.
        advice: &'static str,
        /// What happened.
        source: Cause,
    },
    /// The engine rejects this user because of its password, access rules, or a directory's permissions.
    #[non_exhaustive]
    Denied {
        /// The lock's name, when there was one.
        name: Option<String>,
        /// Where locks live, without user and password.
        engine: String,
        /// What to check.
        advice: &'static str,
        /// What was refused.
        source: Cause,
    },
    /// This engine, or this build of the crate, can't do that.
    #[non_exhaustive]
    Unsupported {
        /// What is unsupported, and what to use instead.
        what: String,
    },
    /// The key or file of the lock holds something that isn't a lock. It stays as it is.
    #[non_exhaustive]
    Conflict {
        /// The lock's name.
        name: String,
        /// The key or the file.
        key: String,
        /// What was found.
        reason: String,
    },
    /// The stored value doesn't have the lock's type. It stays as it is.
    #[non_exhaustive]
    Corrupt {
        /// The lock's name.
        name: String,
        /// The key or the file.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The value can't be written as JSON and read again (such as a float that isn't a number), or is longer than 128
    /// MiB on Redis. It wasn't stored.
    #[non_exhaustive]
    InvalidValue {
        /// The lock's name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The engine failed in another way.
    #[non_exhaustive]
    Engine {
        /// The lock's name, when there was one.
        name: Option<String>,
        /// Where locks live, without user and password.
        engine: String,
        /// What to check.
        advice: &'static str,
        /// What happened.
        source: Cause,
    },
}

/// How the end of a lease was noticed.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// use crosslock::{Locker, LostReason};
///
/// # fn main() -> crosslock::Result<()> {
/// let ttl = Duration::from_millis(100);
/// let locker = Locker::builder("memory:").ttl(ttl).renew(false).build()?;
/// let guard = locker.lock("reason-example")?;
/// let lost = guard.lost().recv().expect("one message");
/// assert_eq!(lost.reason, LostReason::Expired);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LostReason {
    /// The lease wasn't renewed in time: renewal was off or capped, the server couldn't be reached, or this process
    /// was paused for longer than the ttl.
    Expired,
    /// The engine answered that the lock isn't this guard's any more.
    NotOwner,
    /// Somebody ended the lease with [`Locker::break_lock`](crate::Locker::break_lock).
    Broken,
    /// This program closed its locker with [`Locker::close`](crate::Locker::close), which released the lock.
    Closed,
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LostReason::Expired => "its lease expired",
            LostReason::NotOwner => "this holder no longer owns it",
            LostReason::Broken => "somebody broke it",
            LostReason::Closed => "its locker was closed",
        })
    }
}

impl Error {
    /// Whether the same call may be answered otherwise a little later: a server that can't write now, or didn't
    /// answer as one does. What a key holds, and what a user may do, is changed by people.
    pub(crate) fn may_pass(&self) -> bool {
        !matches!(self, Error::Conflict { .. } | Error::Denied { .. })
    }

    pub(crate) fn lost(name: &str, reason: LostReason) -> Self {
        let name = name.to_owned();
        Error::Lost { name, reason }
    }

    pub(crate) fn cancelled(name: &str) -> Self {
        let name = name.to_owned();
        Error::Cancelled { name }
    }

    pub(crate) fn unavailable(name: Option<&str>, engine: &str, cause: impl Into<Cause>) -> Self {
        let (name, engine, source) = (name.map(String::from), engine.to_owned(), cause.into());
        Error::Unavailable {
            name,
            engine,
            advice: "check the server and the network",
            source,
        }
    }

    /// The same, if it is `Unavailable`, with other advice.
    pub(crate) fn advising(mut self, other: &'static str) -> Self {
        if let Error::Unavailable { advice, .. } = &mut self {
            *advice = other;
        }
        self
    }

    /// `advice` says what to check.
    pub(crate) fn engine(
        name: Option<&str>,
        engine: &str,
        advice: &'static str,
        cause: impl Into<Cause>,
    ) -> Self {
        let (name, engine, source) = (name.map(String::from), engine.to_owned(), cause.into());
        Error::Engine {
            name,
            engine,
            advice,
            source,
        }
    }
}

impl fmt::Display for Error {
    #[allow(clippy::too_many_lines, reason = "a table")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::InvalidUrl { url, reason } => write!(f, "invalid url `{url}`: {reason}"),
            Error::InvalidName { name, reason } => write!(f, "invalid name {name:?}: {reason}"),
            Error::InvalidOption { option, reason } => {
                write!(f, "invalid value for `{option}`: {reason}")
            }
            Error::Busy { name, attempts } => {
                write!(
                    f,
                    "lock {name:?} is still taken after {attempts} attempts: try again later"
                )
            }
            Error::Cancelled { name } => {
                write!(
                    f,
                    "stopped waiting for lock {name:?}: this program cancelled the wait or closed the locker"
                )
            }
            Error::Lost { name, reason } => {
                write!(
                    f,
                    "lock {name:?} is lost because {reason}: stop the work that it protects"
                )
            }
            Error::Unavailable {
                name,
                engine,
                advice,
                ..
            } => {
                about(f, name)?;
                write!(f, "{engine} can't be reached or can't serve now: {advice}")
            }
            Error::Denied {
                name,
                engine,
                advice,
                ..
            } => {
                about(f, name)?;
                write!(f, "{engine} denies access: check {advice}")
            }
            Error::Unsupported { what } => write!(f, "unsupported: {what}"),
            Error::Conflict { name, key, reason } => {
                write!(
                    f,
                    "lock {name:?}: `{key}` isn't a lock, because {reason}: use another name or namespace"
                )
            }
            Error::Corrupt { name, key, reason } => {
                write!(
                    f,
                    "lock {name:?}: the value in `{key}` has another type, because {reason}: fix it or remove it"
                )
            }
            Error::InvalidValue { name, reason } => {
                write!(
                    f,
                    "lock {name:?}: the value can't be stored, because {reason}: use another type or a smaller value"
                )
            }
            Error::Engine {
                name,
                engine,
                advice,
                ..
            } => {
                about(f, name)?;
                write!(f, "{engine} failed: check {advice}")
            }
        }
    }
}

fn about(f: &mut fmt::Formatter<'_>, name: &Option<String>) -> fmt::Result {
    name.as_ref()
        .map_or(Ok(()), |name| write!(f, "lock {name:?}: "))
}

/// An error with all its causes, for a line of a log.
pub(crate) struct ErrorChain<'a>(pub(crate) &'a Error);

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Error::Unavailable { source, .. }
            | Error::Denied { source, .. }
            | Error::Engine { source, .. } => Some(source.as_ref()),
            _ => None,
        }
    }
}

/// The text with all causes, then the variant and its fields in parentheses.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (", ErrorChain(self))?;
        fields(self, f)?;
        f.write_str(")")
    }
}

#[allow(clippy::too_many_lines, reason = "a table")]
fn fields(error: &Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut shown = |variant: &str, fields: &[(&str, &dyn fmt::Debug)]| {
        let mut shown = f.debug_struct(variant);
        for (name, field) in fields {
            shown.field(name, field);
        }
        shown.finish()
    };
    match error {
        Error::InvalidUrl { url, reason } => {
            shown("InvalidUrl", &[("url", url), ("reason", reason)])
        }
        Error::InvalidName { name, reason } => {
            shown("InvalidName", &[("name", name), ("reason", reason)])
        }
        Error::InvalidOption { option, reason } => {
            shown("InvalidOption", &[("option", option), ("reason", reason)])
        }
        Error::Busy { name, attempts } => shown("Busy", &[("name", name), ("attempts", attempts)]),
        Error::Cancelled { name } => shown("Cancelled", &[("name", name)]),
        Error::Lost { name, reason } => shown("Lost", &[("name", name), ("reason", reason)]),
        Error::Unsupported { what } => shown("Unsupported", &[("what", what)]),
        Error::Conflict { name, key, reason } => shown(
            "Conflict",
            &[("name", name), ("key", key), ("reason", reason)],
        ),
        Error::Corrupt { name, key, reason } => shown(
            "Corrupt",
            &[("name", name), ("key", key), ("reason", reason)],
        ),
        Error::InvalidValue { name, reason } => {
            shown("InvalidValue", &[("name", name), ("reason", reason)])
        }
        // Their sources are in the text, and may be errors of this type.
        Error::Unavailable { name, engine, .. } => {
            shown("Unavailable", &[("name", name), ("engine", engine)])
        }
        Error::Denied { name, engine, .. } => {
            shown("Denied", &[("name", name), ("engine", engine)])
        }
        Error::Engine { name, engine, .. } => {
            shown("Engine", &[("name", name), ("engine", engine)])
        }
    }
}

/// Is returned by the calls of this crate.
///
/// # Examples
///
/// ```
/// fn main() -> crosslock::Result<()> {
///     let locker = crosslock::Locker::open("memory:")?;
///     locker.lock("result-example")?.unlock()
/// }
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests;
