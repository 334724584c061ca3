//! One server, and the connections to it that are idle.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use ::redis::{RedisError, ServerError, Value};
use parking_lot::Mutex;

use super::address::Address;
use super::connection::{Connection, Connector};
use super::script::Command;
use crate::clock::Deadline;
use crate::error::{Cause, Result};
use crate::options::Options;

/// One server, and the connections to it that are idle. Nobody waits for another's connection.
#[derive(Debug)]
pub(super) struct Server {
    connector: Connector,
    connect_timeout: Duration,
    io_timeout: Duration,
    /// The last one used is the first to be used again; the first one has idled longest.
    idle: Mutex<VecDeque<Idle>>,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Instant,
}

/// What the server said, and whether it was asked twice.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) value: Value,
    pub(super) repeated: bool,
}

/// Why there is no answer, and whether the command may have been carried out all the same.
#[derive(Debug)]
pub(super) struct Unanswered {
    pub(super) failure: Failure,
    pub(super) sent: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// No connection, or no answer in time.
    Unreachable(Cause),
    /// The user may not do this.
    Denied(Cause),
    /// A key holds something else.
    Conflict(String),
    Other(Cause),
}

/// A connection that sits idle for longer is not used again.
const IDLE_FOR: Duration = Duration::from_secs(60);

/// A server doesn't stop and start within this time.
const IN_USE: Duration = Duration::from_millis(2);

impl Server {
    pub(super) fn new(address: Address, options: &Options) -> Result<Self> {
        Ok(Server {
            connector: Connector::new(address)?,
            connect_timeout: options.connect_timeout,
            io_timeout: options.io_timeout,
            idle: Mutex::default(),
        })
    }

    /// For errors: the URL without user and password.
    pub(super) fn place(&self) -> &str {
        self.connector.place()
    }

    /// Finds out whether there is a server, and whether it wants us, within the connect timeout.
    pub(super) fn ping(&self) -> Result<(), Unanswered> {
        let ping = ::redis::cmd("PING");
        let deadline = Deadline::after(self.connect_timeout);
        let answer = self.call(&ping, std::process::id(), &deadline)?;
        match answer.value {
            Value::SimpleString(pong) if pong == "PONG" => Ok(()),
            _ => {
                let cause = "it doesn't answer PING as a Redis server does";
                Err(Unanswered {
                    failure: Failure::Other(cause.into()),
                    sent: true,
                })
            }
        }
    }

    /// Sends a command of this process, whose id the caller has at hand, and gives its answer by `deadline`.
    ///
    /// When a connection that was idle turns out not to work any more, the command is sent again on a new one:
    /// the server may have carried it out before.
    pub(super) fn call(
        &self,
        command: &dyn Command,
        process: u32,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered> {
        let mut sent = false;
        if let Some(connection) = self.take_idle(process) {
            let began = Instant::now();
            match self.exchange(connection, command, &share(deadline)) {
                Ok(value) => {
                    return Ok(Answer {
                        value,
                        repeated: false,
                    });
                }
                Err(Broken::Refused(failure)) => {
                    return Err(Unanswered {
                        failure,
                        sent: true,
                    });
                }
                Err(broken) => {
                    sent = !matches!(broken, Broken::Demoted(_));
                    self.distrust(&broken, began, deadline);
                }
            }
        }
        let connected = self
            .connector
            .connect(&deadline.within(self.connect_timeout));
        let connection = connected.map_err(|e| Unanswered {
            failure: e.into(),
            sent,
        })?;
        let value = self.exchange(connection, command, deadline);
        let value = value.map_err(|e| Unanswered {
            failure: e.into(),
            sent: true,
        })?;
        Ok(Answer {
            value,
            repeated: sent,
        })
    }

    /// A connection that fails is dropped here, and so never used again.
    fn exchange(
        &self,
        mut connection: Connection,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Value, Broken> {
        let deadline = deadline.within(self.io_timeout);
        let mut value = connection.request(&command.command(), &deadline)?;
        if let (true, Some(full)) = (is_error(&value, "NOSCRIPT"), command.in_full()) {
            value = connection.request(&full, &deadline)?;
        }
        match value {
            // It will stay a replica: behind the same address there may be its successor.
            Value::ServerError(error) if error.code() == "READONLY" => {
                Err(Broken::Demoted(error.into()))
            }
            Value::ServerError(error) => {
                self.keep(connection);
                Err(Broken::Refused(error.into()))
            }
            value => {
                self.keep(connection);
                Ok(value)
            }
        }
    }

    /// The connection that was used last, if it is likely to work: one that idled for long may have been
    /// forgotten by something on the way, and one that has anything to read is closed or out of step. To look
    /// is a system call, which one that was in use just now is spared.
    fn take_idle(&self, process: u32) -> Option<Connection> {
        let mut idle = self.idle.lock();
        while let Some(Idle { connection, since }) = idle.pop_back() {
            if connection.process() != process {
                // A child shares its parent's sockets: closing its copies is all that it may do with them.
                idle.clear();
                continue;
            }
            let idled = since.elapsed();
            if idled < IN_USE || (idled < IDLE_FOR && connection.is_quiet()) {
                return Some(connection);
            }
        }
        None
    }

    /// Closes all connections that were idle when another failed: what became of it became of them. One whose
    /// caller was in a hurry, or gone, has not failed.
    fn distrust(&self, broken: &Broken, began: Instant, deadline: &Deadline) {
        let in_a_hurry = deadline.is_cancelled() || began.elapsed() < SHORTEST_SHARE;
        if !(matches!(broken, Broken::TimedOut(_)) && in_a_hurry) {
            self.idle.lock().retain(|idle| idle.since > began);
        }
    }

    fn keep(&self, connection: Connection) {
        let since = Instant::now();
        let mut idle = self.idle.lock();
        if idle
            .front()
            .is_some_and(|first| since - first.since > IDLE_FOR)
        {
            idle.pop_front();
        }
        idle.push_back(Idle { connection, since });
    }
}

/// What a connection that was idle gets of the time, so that there is some left for a new one.
fn share(deadline: &Deadline) -> Deadline {
    let half = deadline.remaining() / 2;
    if half < SHORTEST_SHARE {
        deadline.clone()
    } else {
        deadline.within(half)
    }
}

/// A round trip should fit into it.
const SHORTEST_SHARE: Duration = Duration::from_millis(100);

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

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Closed(cause) | Broken::TimedOut(cause) => Failure::Unreachable(cause),
            Broken::Demoted(failure) | Broken::Refused(failure) => failure,
        }
    }
}

impl From<RedisError> for Broken {
    fn from(error: RedisError) -> Self {
        if error.is_timeout() {
            Broken::TimedOut(error.into())
        } else if error.is_io_error() {
            Broken::Closed(error.into())
        } else {
            let cause = "what answers there is no Redis server: check host and port";
            Broken::Refused(Failure::Other(cause.into()))
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

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        let text = said(&error);
        // Redis 6.2 answers ERR for a script, with the code of the command that failed in it.
        let plain = error.code() == "ERR";
        let is =
            |code: &str| error.code() == code || (plain && text.contains(&format!(" {code} ")));
        let any = |codes: &[&str]| codes.iter().any(|code| is(code));
        let says = |words: &str| plain && text.contains(words);
        if says("max number of clients reached") {
            Failure::Unreachable(text.into())
        } else if any(&["NOPERM", "NOAUTH", "WRONGPASS", "DENIED", "AUTH"])
            || says("ACL failure")
            || says("The user executing the script can't")
        {
            Failure::Denied(text.into())
        } else if any(&["WRONGTYPE", "CONFLICT"]) {
            Failure::Conflict(text)
        } else if any(&["LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN"]) {
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

fn is_error(value: &Value, code: &str) -> bool {
    matches!(value, Value::ServerError(error) if error.code() == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(line: &str) -> Failure {
        match ::redis::parse_redis_value(format!("-{line}\r\n").as_bytes()) {
            Ok(Value::ServerError(error)) => error.into(),
            other => panic!("{other:?}"),
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
        for line in [
            "OOM command not allowed",
            "READONLY You can't write",
            "ERR what",
        ] {
            assert!(matches!(failure(line), Failure::Other(_)), "{line}");
        }
    }
}
