//! Why a command has no value for an answer, and what the server's errors mean.

use std::{fmt, io};

use ::redis::ServerError;

use crate::base::Cause;
use crate::engine::net::{address::HostPort, stream::is_about_our_certificate};

/// Why a command has no value for an answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection was closed, or couldn't be made.
    Closed(Cause),
    /// No answer came in time.
    TimedOut(Cause),
    /// The server is a replica.
    Demoted(Cause),
    /// The server can't serve now.
    Busy(Cause),
    /// The server of a quorum was started a short while ago.
    Abstains(Cause),
    /// The slot is another node's.
    Redirected(Redirect),
    /// The slot moves, and some of the keys are at either node.
    TryAgain(Cause),
    /// The cluster has no node for the slot, or too few nodes.
    ClusterDown(Cause),
    /// The user may not do this.
    Denied(Cause),
    /// A key holds something that is no lock.
    Conflict(String),
    /// Any other answer, and a peer that is no Redis server.
    Other(Cause),
}

/// Where a node of a cluster sends a command that isn't for it.
#[derive(Debug)]
pub(super) struct Redirect {
    pub(super) slot: u16,
    /// `None`: the node doesn't know. Without a host it is that of the node itself.
    pub(super) to: Option<HostPort>,
    /// Only with this one command: the slot is on its way to that node.
    pub(super) is_once: bool,
}

impl fmt::Display for Redirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {} is at ", self.slot)?;
        match &self.to {
            Some(server) => write!(f, "{server}"),
            None => f.write_str("an unknown node"),
        }
    }
}

impl Failure {
    /// Whether another connection to the same address may do better. Whatever else failed, the server has answered.
    pub(super) fn is_of_connection(&self) -> bool {
        use Failure::{Closed, Demoted, TimedOut};
        matches!(self, Closed(_) | TimedOut(_) | Demoted(_))
    }

    /// Whether the server did nothing: the slot isn't its own, or not wholly, there is no cluster to have it, or it may
    /// not vote.
    pub(super) fn is_refusal(&self) -> bool {
        use Failure::{Abstains, ClusterDown, Redirected, TryAgain};
        matches!(
            self,
            Abstains(_) | ClusterDown(_) | Redirected(_) | TryAgain(_)
        )
    }

    /// The same, of one of several servers: it is told which of them can't serve.
    pub(super) fn at(self, address: &str) -> Self {
        let named = |cause: Cause| format!("{address}: {cause}").into();
        match self {
            Failure::Closed(cause) => Failure::Closed(named(cause)),
            Failure::TimedOut(cause) => Failure::TimedOut(named(cause)),
            Failure::Demoted(cause) => Failure::Demoted(named(cause)),
            Failure::Busy(cause) => Failure::Busy(named(cause)),
            Failure::Abstains(cause) => Failure::Abstains(named(cause)),
            failure => failure,
        }
    }

    pub(super) fn cause(self) -> Cause {
        use Failure::{
            Abstains, Busy, Closed, ClusterDown, Conflict, Demoted, Denied, Other, Redirected,
            TimedOut, TryAgain,
        };
        match self {
            Conflict(text) => text.into(),
            Redirected(redirect) => redirect.to_string().into(),
            Closed(cause) | TimedOut(cause) | Demoted(cause) | Busy(cause) | Abstains(cause)
            | Denied(cause) | TryAgain(cause) | ClusterDown(cause) | Other(cause) => cause,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Failure::{
            Abstains, Busy, Closed, ClusterDown, Conflict, Demoted, Denied, Other, Redirected,
            TimedOut, TryAgain,
        };
        match self {
            Conflict(text) => f.write_str(text),
            Redirected(redirect) => redirect.fmt(f),
            Closed(cause) | TimedOut(cause) | Demoted(cause) | Busy(cause) | Abstains(cause)
            | Denied(cause) | TryAgain(cause) | ClusterDown(cause) | Other(cause) => cause.fmt(f),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Failure::TimedOut(error.into()),
            // A unix socket's rights.
            io::ErrorKind::PermissionDenied => Failure::Denied(error.into()),
            _ if is_about_our_certificate(&error) => {
                let text = format!(
                    "{error}: use a client certificate that the server trusts, with ?cert=FILE&key=FILE"
                );
                Failure::Denied(text.into())
            }
            // The server's certificate, or a peer that doesn't speak TLS.
            io::ErrorKind::InvalidData => Failure::Other(error.into()),
            _ => Failure::Closed(error.into()),
        }
    }
}

/// The codes of a server that can't serve now, and may a little later, without anybody mending a key or a right: it
/// starts, runs a script, has lost its master or its replicas, can't save, or has no memory left.
const BUSY: [&str; 6] = [
    "LOADING",
    "BUSY",
    "MASTERDOWN",
    "NOREPLICAS",
    "MISCONF",
    "OOM",
];

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        let text = said(&error);
        let is = |code: &str| is_about(&error, &text, code);
        let any = |codes: &[&str]| codes.iter().any(|code| is(code));
        let says = |words: &str| is_plain(&error) && text.contains(words);
        if let Some(redirect) = redirect(&error) {
            Failure::Redirected(redirect)
        } else if is("TRYAGAIN") {
            Failure::TryAgain(text.into())
        } else if is("CLUSTERDOWN") {
            Failure::ClusterDown(text.into())
        } else if is("READONLY") {
            Failure::Demoted(text.into())
        } else if says("max number of clients reached") {
            Failure::Busy(text.into())
        } else if any(&["NOPERM", "NOAUTH", "WRONGPASS", "DENIED", "AUTH"])
            || says("ACL failure")
            || says("The user executing the script can't")
        {
            Failure::Denied(text.into())
        } else if any(&["WRONGTYPE", "CONFLICT"]) {
            Failure::Conflict(text)
        } else if any(&BUSY) {
            Failure::Busy(text.into())
        } else {
            Failure::Other(text.into())
        }
    }
}

/// `MOVED 3999 host:port` and `ASK 3999 host:port`.
fn redirect(error: &ServerError) -> Option<Redirect> {
    let is_once = match error.code() {
        "MOVED" => false,
        "ASK" => true,
        _ => return None,
    };
    let (slot, server) = error.details()?.split_once(' ')?;
    let (host, port) = server.rsplit_once(':')?;
    let port = port.parse().ok()?;
    let is_known = host != "?";
    let host = host.to_owned();
    Some(Redirect {
        slot: slot.parse().ok()?,
        to: is_known.then_some(HostPort { host, port }),
        is_once,
    })
}

/// The server's words, without the arguments that it repeats: passwords and owners are among them.
pub(super) fn said(error: &ServerError) -> String {
    let details = error.details().unwrap_or_default();
    let details = details
        .split("with args beginning with")
        .next()
        .unwrap_or_default();
    format!("{} {details}", error.code())
        .trim_end_matches([' ', ','])
        .to_owned()
}

/// Whether the error has no code of its own: Redis 6.2 answers so for a command that failed inside a script.
fn is_plain(error: &ServerError) -> bool {
    error.code() == "ERR" || error.code().starts_with("@user_script")
}

/// Whether the error has this code, or is plain and tells of another that has.
fn is_about(error: &ServerError, text: &str, code: &str) -> bool {
    let mut words = text
        .split([' ', ':'])
        .map(|word| word.trim_start_matches('-'));
    error.code() == code || (is_plain(error) && words.any(|word| word == code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::redis::Value;

    fn failure(line: &str) -> Failure {
        match ::redis::parse_redis_value(format!("-{line}\r\n").as_bytes()) {
            Ok(Value::ServerError(error)) => error.into(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn replica_is_recognised_also_by_what_its_scripts_answer() {
        for (line, demoted) in [
            (
                "READONLY You can't write against a read only replica.",
                true,
            ),
            (
                "ERR Error running script: @user_script: 31: -READONLY You can't write",
                true,
            ),
            ("ERR unknown command 'x'", false),
            ("CONFLICT {a: READONLY }:fence holds no counter", false),
        ] {
            let is_demoted = matches!(failure(line), Failure::Demoted(_));
            assert_eq!(is_demoted, demoted, "{line}");
        }
    }

    #[test]
    fn arguments_that_the_server_repeats_are_not_shown() {
        let Failure::Other(cause) =
            failure("ERR unknown command 'AUTH', with args beginning with: 'app' 'secret' ")
        else {
            panic!("it is no other class")
        };
        assert_eq!(cause.to_string(), "ERR unknown command 'AUTH'");
    }

    #[test]
    fn refusals_are_told_from_outages_and_conflicts() {
        for line in [
            "NOPERM this user has no permissions",
            "NOAUTH Authentication required.",
            "WRONGPASS invalid username-password pair",
            "ERR The user executing the script can't run this command or subcommand script: x, on y.",
            "DENIED Redis is running in protected mode",
            "ERR Error running script: @user_script:1: NOPERM this user has no permissions",
            "@user_script: 20: The user executing the script can't run this command or subcommand",
            "ERR AUTH <password> called without any password configured",
        ] {
            assert!(matches!(failure(line), Failure::Denied(_)), "{line}");
        }
        for line in [
            "LOADING Redis is loading",
            "BUSY Redis is busy",
            "MASTERDOWN Link",
            "OOM command not allowed",
            "NOREPLICAS Not enough good replicas to write.",
            "ERR Error running script (call to f_0): @user_script:1: -MISCONF Redis is configured to save",
        ] {
            assert!(matches!(failure(line), Failure::Busy(_)), "{line}");
        }
        for line in [
            "WRONGTYPE Operation against",
            "ERR Error running script: @user_script:1: WRONGTYPE Operation",
            "CONFLICT {a: NOPERM ACL failure BUSY }:fence holds no counter",
        ] {
            assert!(matches!(failure(line), Failure::Conflict(_)), "{line}");
        }
        for line in ["ERR what", "MOVED 1", "ASK x 127.0.0.1:1"] {
            assert!(matches!(failure(line), Failure::Other(_)), "{line}");
        }
    }

    #[test]
    fn answers_of_a_clusters_nodes_are_told_apart() {
        for (line, slot, to, is_once) in [
            (
                "MOVED 3999 127.0.0.1:6381",
                3999,
                Some(("127.0.0.1", 6381)),
                false,
            ),
            ("ASK 0 a.example:1", 0, Some(("a.example", 1)), true),
            ("MOVED 16383 ::1:7000", 16383, Some(("::1", 7000)), false),
            ("MOVED 1 :7000", 1, Some(("", 7000)), false),
            ("MOVED 1 ?:7000", 1, None, false),
        ] {
            let Failure::Redirected(found) = failure(line) else {
                panic!("{line}")
            };
            let server = found.to.as_ref().map(|to| (&*to.host, to.port));
            assert_eq!(
                (found.slot, server, found.is_once),
                (slot, to, is_once),
                "{line}"
            );
        }
        let line = "TRYAGAIN Multiple keys request during rehashing of slot";
        assert!(matches!(failure(line), Failure::TryAgain(_)));
        let line = "CLUSTERDOWN Hash slot not served";
        assert!(matches!(failure(line), Failure::ClusterDown(_)));
    }
}
