//! What keeps a server from answering, and what its errors mean.

use std::io;

use ::redis::ServerError;

use crate::base::error::Cause;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// No connection, no answer in time, or a server that can't serve now.
    Unreachable(Cause),
    /// The user may not do this.
    Denied(Cause),
    /// A key holds something else.
    Conflict(String),
    Other(Cause),
}

/// How an exchange ended that gave no value.
#[derive(Debug)]
pub(super) enum Broken {
    /// The connection was closed.
    Closed(Cause),
    TimedOut(Cause),
    /// The server is a replica.
    Demoted(Failure),
    Refused(Failure),
}

impl Failure {
    pub(super) fn cause(self) -> Cause {
        match self {
            Failure::Conflict(text) => text.into(),
            Failure::Unreachable(cause) | Failure::Denied(cause) | Failure::Other(cause) => cause,
        }
    }
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Closed(cause) | Broken::TimedOut(cause) => Failure::Unreachable(cause),
            Broken::Demoted(failure) | Broken::Refused(failure) => failure,
        }
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Broken::TimedOut(error.into()),
            // A unix socket's rights.
            io::ErrorKind::PermissionDenied => Broken::Refused(Failure::Denied(error.into())),
            // A certificate, or a peer that doesn't speak TLS.
            io::ErrorKind::InvalidData => Broken::Refused(Failure::Other(error.into())),
            _ => Broken::Closed(error.into()),
        }
    }
}

/// What a server says that can't serve now, and may a little later, without anybody mending a key or a right: it
/// starts, runs a script, lost its master or its replicas, was demoted, can't save, or has no memory left.
const PASSING: [&str; 9] = [
    "LOADING",
    "BUSY",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "READONLY",
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
        if says("max number of clients reached") {
            Failure::Unreachable(text.into())
        } else if any(&["NOPERM", "NOAUTH", "WRONGPASS", "DENIED", "AUTH"])
            || says("ACL failure")
            || says("The user executing the script can't")
        {
            Failure::Denied(text.into())
        } else if any(&["WRONGTYPE", "CONFLICT"]) {
            Failure::Conflict(text)
        } else if any(&PASSING) {
            Failure::Unreachable(text.into())
        } else {
            Failure::Other(text.into())
        }
    }
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

/// Whether the server is a replica: a new connection to its address may lead to its successor.
pub(super) fn is_demoted(error: &ServerError) -> bool {
    is_about(error, &said(error), "READONLY")
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
            let value = ::redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
            let Value::ServerError(error) = value else {
                panic!("{value:?}")
            };
            assert_eq!(is_demoted(&error), demoted, "{line}");
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
            "CLUSTERDOWN Hash slot not served",
            "TRYAGAIN Multiple keys request during rehashing of slot",
            "OOM command not allowed",
            "READONLY You can't write",
            "NOREPLICAS Not enough good replicas to write.",
            "ERR Error running script (call to f_0): @user_script:1: -MISCONF Redis is configured to save",
        ] {
            assert!(matches!(failure(line), Failure::Unreachable(_)), "{line}");
        }
        for line in [
            "WRONGTYPE Operation against",
            "ERR Error running script: @user_script:1: WRONGTYPE Operation",
            "CONFLICT {a: NOPERM ACL failure BUSY }:fence holds no counter",
        ] {
            assert!(matches!(failure(line), Failure::Conflict(_)), "{line}");
        }
        for line in ["ERR what", "MOVED 1 127.0.0.1:1"] {
            assert!(matches!(failure(line), Failure::Other(_)), "{line}");
        }
    }
}
