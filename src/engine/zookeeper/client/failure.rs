//! Why a request isn't done.

use std::{fmt, io};

use super::jute::Malformed;
use crate::base::{Cause, Error};
use crate::engine::{Failed, denied, net::stream::is_about_our_certificate};

/// Why a request isn't done.
#[derive(Debug)]
pub(crate) enum Failure {
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
    /// The servers answer, and refuse it.
    Refused(Code),
}

impl Failure {
    /// An answer that isn't to what was asked.
    pub(crate) fn misunderstood() -> Self {
        Failure::Other("its answer doesn't belong to the request".into())
    }

    /// The same with the name of the host, so that its reader knows which one it is.
    pub(super) fn of_host(&self, host: &str) -> Self {
        self.told(|cause| format!("{host}: {cause}").into())
    }

    /// The same for another caller.
    pub(crate) fn again(&self) -> Self {
        self.told(|cause| cause.to_string().into())
    }

    fn told(&self, as_told: impl Fn(&Cause) -> Cause) -> Self {
        match self {
            Failure::Unreachable(cause) => Failure::Unreachable(as_told(cause)),
            Failure::TimedOut => Failure::TimedOut,
            Failure::Silent(cause) => Failure::Silent(as_told(cause)),
            Failure::Ended => Failure::Ended,
            Failure::Denied(cause) => Failure::Denied(as_told(cause)),
            Failure::Untrusted(cause) => Failure::Untrusted(as_told(cause)),
            Failure::TooLarge(bytes) => Failure::TooLarge(*bytes),
            Failure::Other(cause) => Failure::Other(as_told(cause)),
            Failure::Refused(code) => Failure::Refused(*code),
        }
    }

    pub(crate) fn into_error(self, name: Option<&str>, endpoint: &str) -> Error {
        match (self, name) {
            (Failure::Unreachable(cause) | Failure::Silent(cause), _) => {
                Error::unavailable(name, endpoint, cause)
            }
            (failure @ (Failure::TimedOut | Failure::Ended), _) => {
                Error::unavailable(name, endpoint, failure.to_string())
            }
            (Failure::Denied(cause), _) => denied(name, endpoint, "the login in ?auth=", cause),
            (Failure::Untrusted(cause), _) => denied(name, endpoint, "?cert= and ?key=", cause),
            (Failure::TooLarge(bytes), Some(name)) => Error::InvalidValue {
                name: name.to_owned(),
                reason: format!("the request has {bytes} bytes, and servers refuse 1 MB or more"),
            },
            (failure @ Failure::TooLarge(_), None) => {
                let advice = "the size of the value: up to 1 MB";
                Error::engine(name, endpoint, advice, failure.to_string())
            }
            (Failure::Other(cause), _) => Error::engine(
                name,
                endpoint,
                "that ZooKeeper is listening on that port",
                cause,
            ),
            (Failure::Refused(code), _) => code.into_error(name, endpoint),
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
                write!(
                    f,
                    "the request has {bytes} bytes, which is more than servers accept"
                )
            }
            Failure::Refused(code) => write!(f, "{code}"),
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

impl From<Code> for Failure {
    fn from(code: Code) -> Self {
        Failure::Refused(code)
    }
}

impl From<Failed<Failure>> for Failure {
    fn from(failed: Failed<Failure>) -> Self {
        failed.error
    }
}

/// Why a server refused what it was asked: one of ZooKeeper's `KeeperException.Code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(super) i32);

impl Code {
    pub(crate) const UNIMPLEMENTED: Self = Code(-6);
    pub(crate) const NO_NODE: Self = Code(-101);
    pub(crate) const NO_AUTH: Self = Code(-102);
    pub(crate) const BAD_VERSION: Self = Code(-103);
    pub(crate) const NODE_EXISTS: Self = Code(-110);
    pub(crate) const INVALID_ACL: Self = Code(-114);

    fn into_error(self, name: Option<&str>, endpoint: &str) -> Error {
        match self {
            Code::NO_AUTH | Code::INVALID_ACL => denied(
                name,
                endpoint,
                "the login in ?auth=, and the ACLs of the nodes",
                self,
            ),
            Code::UNIMPLEMENTED => {
                let advice = "that the servers are ZooKeeper 3.5.3 or later";
                Error::engine(name, endpoint, advice, self)
            }
            // What is made anew again and again is deleted as often.
            Code::NO_NODE => Error::unavailable(name, endpoint, self),
            _ => Error::engine(name, endpoint, "the nodes and their quota", self),
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            -6 => "the server is too old for this operation",
            -8 => "the server refuses the path",
            -101 => "the node doesn't exist",
            -102 => "the ACL of the node denies this",
            -103 => "the node has another version",
            -108 => "an ephemeral node can't have children",
            -110 => "the node already exists",
            -111 => "the node has children",
            -114 => "the ACL isn't valid: nobody is logged in",
            -125 => "the quota is used up",
            other => return write!(f, "the server answered with error {other}"),
        })
    }
}

impl std::error::Error for Code {}
