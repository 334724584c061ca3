//! Why a request has no answer, and what the servers' errors mean.

use std::fmt;

use crate::base::error::{Cause, Error};
use crate::engine::denied;

/// Why a request has no answer.
#[derive(Debug)]
pub(in crate::engine::etcd) enum Failure {
    /// No host could be reached, none answered in time, or none can serve now.
    Unreachable(Cause),
    /// The user may not do this, or isn't known by this password.
    Denied(Cause),
    /// The lease has run out, or was revoked.
    LeaseGone,
    /// The revision that was asked for is gone from the servers' history.
    Compacted,
    /// The servers don't take so much in one request.
    TooLarge(Cause),
    /// Any other answer, and a peer that isn't etcd.
    Other(Cause),
}

impl Failure {
    /// What the caller is told of a lock, and of the place where it lives.
    pub(in crate::engine::etcd) fn into_error(self, name: Option<&str>, place: &str) -> Error {
        match self {
            Failure::Unreachable(cause) => Error::unavailable(name, place, cause),
            Failure::Denied(cause) => denied(name, place, "user, password and rights", cause),
            Failure::TooLarge(cause) => Error::engine(name, place, "what it takes", cause),
            Failure::LeaseGone | Failure::Compacted => {
                Error::engine(name, place, "the server's log", self.to_string())
            }
            Failure::Other(cause) => Error::engine(name, place, "the server's log", cause),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::LeaseGone => f.write_str("the lease has run out, or was revoked"),
            Failure::Compacted => f.write_str("the servers have compacted that revision away"),
            Failure::Unreachable(cause)
            | Failure::Denied(cause)
            | Failure::TooLarge(cause)
            | Failure::Other(cause) => cause.fmt(f),
        }
    }
}
