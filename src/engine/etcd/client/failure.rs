//! Why a request has no answer, and what the servers' errors mean.

use std::{fmt, io};

use serde_json::Value;

use crate::base::{Cause, Error};
use crate::engine::{Failed, denied, net::stream::is_about_our_certificate};

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No host could be reached, none answered in time, or none can serve now.
    Unreachable(Cause),
    /// The user may not do this, or isn't known by this password.
    Denied(Cause),
    /// The lease has run out, or was revoked.
    LeaseGone,
    /// There is another lease of that number.
    LeaseExists,
    /// The servers don't take so much in one request.
    TooLarge(Cause),
    /// Any other answer, and a peer that isn't etcd.
    Other(Cause),
}

/// Why an exchange with one host has no result.
#[derive(Debug)]
pub(super) struct HostFailure {
    pub(super) effect: Effect,
    pub(super) why: Failure,
}

/// What became of a request without a result. It decides whether another host may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The host wasn't asked, or has begun with nothing: another may be asked for anything.
    Undone,
    /// What was asked may have been done: another may be asked for what is harmless to do twice.
    Unclear,
    /// Nothing was done, and any host would say so.
    Refused,
    /// The host doesn't know the token of our login, or not any more. Nothing was done.
    UnknownToken,
}

/// The codes of gRPC that tell of something else than the request, or of one that came to nothing.
mod code {
    pub(super) const CANCELLED: u64 = 1;
    pub(super) const INVALID: u64 = 3;
    pub(super) const DEADLINE: u64 = 4;
    pub(super) const NOT_FOUND: u64 = 5;
    pub(super) const EXISTS: u64 = 6;
    pub(super) const DENIED: u64 = 7;
    pub(super) const EXHAUSTED: u64 = 8;
    pub(super) const PRECONDITION: u64 = 9;
    pub(super) const OUT_OF_RANGE: u64 = 11;
    pub(super) const UNIMPLEMENTED: u64 = 12;
    pub(super) const UNAVAILABLE: u64 = 14;
    pub(super) const UNAUTHENTICATED: u64 = 16;
}

const NO_GATEWAY: &str = "it doesn't answer like the JSON gateway of etcd 3.4 or later: check host, port and version, \
                          and that --enable-grpc-gateway=false isn't set";

impl Failure {
    /// What the caller is told of a lock, and of the place where it lives.
    pub(crate) fn into_error(self, name: Option<&str>, endpoint: &str) -> Error {
        match self {
            Failure::Unreachable(cause) => Error::unavailable(name, endpoint, cause),
            Failure::Denied(cause) => {
                denied(name, endpoint, "user, password and permissions", cause)
            }
            Failure::TooLarge(cause) => {
                let advice =
                    "the size of values, and the servers' --max-request-bytes and --max-txn-ops";
                Error::engine(name, endpoint, advice, cause)
            }
            Failure::LeaseGone | Failure::LeaseExists => {
                Error::engine(name, endpoint, LOG, self.to_string())
            }
            Failure::Other(cause) => Error::engine(name, endpoint, LOG, cause),
        }
    }

    /// Whether there was no answer in time. That says little of a host that was given little time.
    pub(super) fn is_timeout(&self) -> bool {
        let Failure::Unreachable(cause) = self else {
            return false;
        };
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| cause.kind() == io::ErrorKind::TimedOut)
    }

    /// Of the same kind: a timeout stays one.
    fn in_words(self, words: &str) -> Self {
        let Failure::Unreachable(cause) = &self else {
            return self;
        };
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let kind = kind.unwrap_or(io::ErrorKind::Other);
        Failure::Unreachable(io::Error::new(kind, words).into())
    }

    /// What a peer answers that isn't etcd. It isn't shown: it may be what it was told.
    pub(super) fn surprised() -> Self {
        Failure::Other(NO_GATEWAY.into())
    }
}

const LOG: &str = "host, port and the server's log";

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            _ if is_about_our_certificate(&error) => {
                let text = format!(
                    "{error}: use a client certificate that the server trusts, with ?cert=FILE&key=FILE"
                );
                Failure::Denied(text.into())
            }
            // The server's certificate, or a peer that doesn't speak TLS.
            io::ErrorKind::InvalidData => Failure::Other(error.into()),
            _ => Failure::Unreachable(error.into()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::LeaseGone => f.write_str("the lease has expired or was revoked"),
            Failure::LeaseExists => f.write_str("another lease has that number"),
            Failure::Unreachable(cause)
            | Failure::Denied(cause)
            | Failure::TooLarge(cause)
            | Failure::Other(cause) => cause.fmt(f),
        }
    }
}

impl HostFailure {
    /// What an answer with a status other than 200 means.
    pub(super) fn answered(status: u16, body: &[u8]) -> Self {
        match serde_json::from_slice(body) {
            Ok(answer) => {
                HostFailure::told(&answer).unwrap_or_else(|| HostFailure::surprising(status))
            }
            Err(_) if has(body, TLS_HINT) => {
                let cause = "its port has TLS: use etcds://";
                Effect::Refused.by(Failure::Other(cause.into()))
            }
            Err(_) if has(body, NAMED_CERTIFICATE) => {
                let text = "its gateway requires a user and password, and refuses client certificates with a \
                            CommonName: use a certificate without a CommonName, and put user and password into the URL";
                Effect::Refused.by(Failure::Denied(text.into()))
            }
            Err(_) => HostFailure::surprising(status),
        }
    }

    /// The error that an answer tells of, or a line of a stream.
    fn told(answer: &Value) -> Option<Self> {
        let error = answer.get("error").filter(|error| error.is_object());
        let error = error.unwrap_or(answer);
        let code = error.get("code").or(error.get("grpc_code"))?.as_u64()?;
        let text = error.get("message")?.as_str()?;
        Some(HostFailure::of(code, text))
    }

    /// What it means that a watch has ended for this reason, of which there is only a text.
    pub(super) fn ended(reason: &str) -> Self {
        let says = |words: &str| reason.contains(words);
        if says("auth token") || says("auth store is old") {
            Effect::UnknownToken.by(Failure::Denied(reason.into()))
        } else if says("permission denied") || says("user name is empty") {
            Effect::Refused.by(Failure::Denied(reason.into()))
        } else {
            let cause = format!("it has ended a watch: {reason}");
            Effect::Unclear.by(Failure::Unreachable(cause.into()))
        }
    }

    fn surprising(status: u16) -> Self {
        match status {
            // Of a proxy in between.
            502..=504 => {
                Effect::Unclear.by(Failure::Unreachable(format!("HTTP status {status}").into()))
            }
            _ => HostFailure::surprised(),
        }
    }

    /// What etcd means by an error. One text of it is shared by several codes, and one code by several meanings.
    fn of(code: u64, text: &str) -> Self {
        HostFailure::of_login(code, text).unwrap_or_else(|| HostFailure::of_request(code, text))
    }

    /// Errors about the login and the rights of its user.
    fn of_login(code: u64, text: &str) -> Option<Self> {
        let says = |words: &str| text.contains(words);
        let denied =
            |advice: &str| Effect::Refused.by(Failure::Denied(format!("{text}{advice}").into()));
        Some(match code {
            code::UNAUTHENTICATED => Effect::UnknownToken.by(Failure::Denied(text.into())),
            code::INVALID if says("revision of auth store is old") => {
                Effect::UnknownToken.by(Failure::Unreachable(text.into()))
            }
            code::INVALID if says("user name is empty") => {
                denied(": put user and password into the URL")
            }
            code::PRECONDITION if says("authentication is not enabled") => {
                denied(": remove user and password from the URL")
            }
            code::INVALID if says("authentication failed") => denied(""),
            code::DENIED => denied(""),
            _ => return None,
        })
    }

    fn of_request(code: u64, text: &str) -> Self {
        let says = |words: &str| text.contains(words);
        let cause = || Cause::from(text);
        let needs_another = ["no leader", "not capable", "learner"]
            .into_iter()
            .any(says);
        match code {
            code::NOT_FOUND if says("lease not found") => Effect::Refused.by(Failure::LeaseGone),
            code::PRECONDITION if says("lease already exists") => {
                Effect::Refused.by(Failure::LeaseExists)
            }
            code::INVALID if says("too large") || says("too many operations") => {
                Effect::Refused.by(Failure::TooLarge(cause()))
            }
            code::EXHAUSTED if says("larger than max") => {
                Effect::Refused.by(Failure::TooLarge(cause()))
            }
            // It may have stored what was too much.
            code::EXHAUSTED if says("space exceeded") => {
                let text = format!("{text}: compact and defragment it, then disarm the alarm");
                Effect::Unclear.by(Failure::Unreachable(text.into()))
            }
            // Requests say that they need a leader, and are then refused at the door.
            code::UNAVAILABLE if needs_another => Effect::Undone.by(Failure::Unreachable(cause())),
            code::UNAVAILABLE | code::DEADLINE | code::CANCELLED | code::EXHAUSTED => {
                Effect::Unclear.by(Failure::Unreachable(cause()))
            }
            code::INVALID
            | code::NOT_FOUND
            | code::EXISTS
            | code::PRECONDITION
            | code::OUT_OF_RANGE
            | code::UNIMPLEMENTED => Effect::Refused.by(Failure::Other(cause())),
            _ => Effect::Unclear.by(Failure::Other(cause())),
        }
    }

    /// What an answer means that isn't the one that was asked for.
    pub(super) fn not_understood(answer: &Value) -> Self {
        HostFailure::told(answer).unwrap_or_else(HostFailure::surprised)
    }

    /// By a peer that isn't etcd.
    pub(super) fn surprised() -> Self {
        Effect::Unclear.by(Failure::surprised())
    }

    /// The same, if nobody could be reached, with these words.
    pub(super) fn in_words(self, words: &str) -> Self {
        match self.effect {
            Effect::Undone | Effect::Unclear => self.effect.by(self.why.in_words(words)),
            Effect::Refused | Effect::UnknownToken => self,
        }
    }

    /// Whether a watch may begin with another token. That one has ended shows only when the watch was to begin, and
    /// older servers call it a lack of rights.
    pub(super) fn may_be_of_old_token(&self) -> bool {
        match self.effect {
            Effect::UnknownToken => true,
            Effect::Refused => matches!(self.why, Failure::Denied(_)),
            Effect::Undone | Effect::Unclear => false,
        }
    }

    /// Whether another host may be asked for the same.
    pub(super) fn may_be_asked_elsewhere(&self, is_repeatable: bool) -> bool {
        match self.effect {
            Effect::Undone => true,
            Effect::Unclear => is_repeatable,
            Effect::Refused | Effect::UnknownToken => false,
        }
    }
}

impl Effect {
    pub(super) fn by(self, why: Failure) -> HostFailure {
        HostFailure { effect: self, why }
    }
}

impl From<HostFailure> for Failure {
    fn from(failed: HostFailure) -> Self {
        failed.why
    }
}

impl From<HostFailure> for Failed<Failure> {
    fn from(failed: HostFailure) -> Self {
        Failed {
            sent: failed.effect == Effect::Unclear,
            error: failed.why,
        }
    }
}

/// What a server with TLS, made with Go, answers to plain text.
const TLS_HINT: &[u8] = b"HTTP request to an HTTPS server";

/// What the gateway answers to a certificate that names somebody, where users have to log in: it can't pass the name
/// on.
const NAMED_CERTIFICATE: &[u8] = b"CommonName of client sending a request against gateway";

fn has(body: &[u8], words: &[u8]) -> bool {
    body.windows(words.len()).any(|part| part == words)
}

#[cfg(test)]
mod tests;
