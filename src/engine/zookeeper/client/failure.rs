//! Why a request has no answer.

use std::io;

use crate::base::error::{Cause, Error};
use crate::engine::denied;

/// Why a request has no answer. What a server refuses is an answer: see [`Code`](super::ops::Code).
#[derive(Debug)]
pub(in crate::engine::zookeeper) enum Failure {
    /// There is no connection, or it was lost.
    Unreachable(Cause),
    /// No answer came in time.
    TimedOut,
    /// The session has ended, and with it all that it had.
    Ended,
    /// The servers refuse this login.
    Denied(Cause),
    /// The request has more bytes than servers take.
    TooLarge(usize),
    /// The peer answers as no ZooKeeper server does.
    Other(Cause),
}

impl Failure {
    pub(in crate::engine::zookeeper) fn into_error(self, name: Option<&str>, place: &str) -> Error {
        match self {
            Failure::Unreachable(cause) => Error::unavailable(name, place, cause),
            Failure::TimedOut => Error::unavailable(name, place, "no answer in time"),
            Failure::Ended => Error::unavailable(name, place, "the session has ended"),
            Failure::Denied(cause) => denied(name, place, "the login in ?auth=", cause),
            Failure::TooLarge(bytes) => {
                let text = format!("a request of {bytes} bytes is larger than servers take");
                Error::engine(name, place, "the size of the value: up to 1 MB", text)
            }
            Failure::Other(cause) => {
                Error::engine(name, place, "that ZooKeeper serves that port", cause)
            }
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Failure::TimedOut,
            io::ErrorKind::InvalidData => Failure::Other(error.into()),
            _ => Failure::Unreachable(error.into()),
        }
    }
}
