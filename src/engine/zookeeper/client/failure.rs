//! Why a request has no answer.

use std::fmt;
use std::io;

use super::jute::Malformed;
use crate::base::error::{Cause, Error};
use crate::engine::denied;
use crate::engine::net::stream::is_about_our_certificate;

/// Why a request has no answer. What a server refuses is an answer: see [`Code`](super::ops::Code).
#[derive(Debug)]
pub(in crate::engine::zookeeper) enum Failure {
    /// There is no connection, or it was lost.
    Unreachable(Cause),
    /// No answer came in time.
    TimedOut,
    /// The same of all hosts, which it names.
    Silent(Cause),
    /// The session has ended, and with it all that it had.
    Ended,
    /// The servers refuse this login.
    Denied(Cause),
    /// The servers don't take our certificate, or want one.
    Untrusted(Cause),
    /// The request has more bytes than servers take.
    TooLarge(usize),
    /// The peer answers as no ZooKeeper server does.
    Other(Cause),
}

impl Failure {
    /// The same with the name of the host, so that its reader knows which one it is.
    pub(super) fn of_host(self, host: &str) -> Self {
        let named = |cause: Cause| format!("{host}: {cause}").into();
        match self {
            Failure::Unreachable(cause) => Failure::Unreachable(named(cause)),
            Failure::Denied(cause) => Failure::Denied(named(cause)),
            Failure::Untrusted(cause) => Failure::Untrusted(named(cause)),
            Failure::Other(cause) => Failure::Other(named(cause)),
            other => other,
        }
    }

    /// The same for another caller.
    pub(in crate::engine::zookeeper) fn again(&self) -> Self {
        match self {
            Failure::Unreachable(cause) => Failure::Unreachable(cause.to_string().into()),
            Failure::TimedOut => Failure::TimedOut,
            Failure::Silent(cause) => Failure::Silent(cause.to_string().into()),
            Failure::Ended => Failure::Ended,
            Failure::Denied(cause) => Failure::Denied(cause.to_string().into()),
            Failure::Untrusted(cause) => Failure::Untrusted(cause.to_string().into()),
            Failure::TooLarge(bytes) => Failure::TooLarge(*bytes),
            Failure::Other(cause) => Failure::Other(cause.to_string().into()),
        }
    }

    pub(in crate::engine::zookeeper) fn into_error(self, name: Option<&str>, place: &str) -> Error {
        match self {
            Failure::Unreachable(cause) | Failure::Silent(cause) => {
                Error::unavailable(name, place, cause)
            }
            Failure::TimedOut | Failure::Ended => Error::unavailable(name, place, self.to_string()),
            Failure::Denied(cause) => denied(name, place, "the login in ?auth=", cause),
            Failure::Untrusted(cause) => denied(name, place, "?cert= and ?key=", cause),
            Failure::TooLarge(_) => {
                let advice = "the size of the value: up to 1 MB";
                Error::engine(name, place, advice, self.to_string())
            }
            Failure::Other(cause) => {
                Error::engine(name, place, "that ZooKeeper serves that port", cause)
            }
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unreachable(cause)
            | Failure::Silent(cause)
            | Failure::Denied(cause)
            | Failure::Untrusted(cause)
            | Failure::Other(cause) => write!(f, "{cause}"),
            Failure::TimedOut => f.write_str("no answer in time"),
            Failure::Ended => f.write_str("the session has ended"),
            Failure::TooLarge(bytes) => {
                write!(f, "a request of {bytes} bytes is larger than servers take")
            }
        }
    }
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        Failure::Other(malformed.into())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Failure::TimedOut,
            _ if is_about_our_certificate(&error) => Failure::Untrusted(error.into()),
            io::ErrorKind::InvalidData => Failure::Other(error.into()),
            _ => Failure::Unreachable(error.into()),
        }
    }
}
