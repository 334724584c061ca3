//! One server, and the connections to it that are idle.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ::redis::Value;
use parking_lot::Mutex;

use super::address::Address;
use super::connection::{Connection, Connector};
use super::failure::{Broken, Failure, is_demoted};
use super::script::Command;
use crate::clock::Deadline;
use crate::error::Result;
use crate::options::Options;
use crate::per_process::{Fresh, PerProcess};

/// One server, and the connections to it that are idle. Nobody waits for another's connection.
#[derive(Debug)]
pub(super) struct Server {
    connector: Connector,
    connect_timeout: Duration,
    io_timeout: Duration,
    pool: PerProcess<Pool>,
}

/// The last one used is the first to be used again; the first one has idled longest.
#[derive(Debug, Default)]
struct Pool(Mutex<VecDeque<Idle>>);

impl Fresh for Pool {
    fn fresh(&self) -> Self {
        // A child shares its parent's sockets: closing its copies is all that it may do with them.
        if let Some(mut idle) = self.0.try_lock() {
            idle.clear();
        }
        Pool::default()
    }
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
            pool: PerProcess::new(Pool::default()),
        })
    }

    /// For errors: the URL without user and password.
    pub(super) fn place(&self) -> &str {
        self.connector.place()
    }

    pub(super) fn io_timeout(&self) -> Duration {
        self.io_timeout
    }

    /// A connection of the caller's own.
    pub(super) fn connect(&self, deadline: &Deadline) -> Result<Connection, Broken> {
        self.connector
            .connect(&deadline.within(self.connect_timeout))
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
                    self.distrust(process, &broken, began, deadline);
                }
            }
        }
        let connected = self.connect(deadline);
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
        let value = match ask(&mut connection, command, &deadline.within(self.io_timeout)) {
            Ok(value) => value,
            #[cfg(crosslock_mutant = "connection_reused")]
            Err(Broken::TimedOut(cause)) => {
                self.keep(connection);
                return Err(Broken::TimedOut(cause));
            }
            Err(broken) => {
                connection.give_up();
                return Err(broken);
            }
        };
        match value {
            // It will stay a replica: behind the same address there may be its successor.
            Value::ServerError(error) if is_demoted(&error) => Err(Broken::Demoted(error.into())),
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
        let mut idle = self.pool.get(process).0.lock();
        while let Some(Idle { connection, since }) = idle.pop_back() {
            let idled = since.elapsed();
            let idled = if cfg!(crosslock_mutant = "connection_reused") {
                Duration::ZERO
            } else {
                idled
            };
            if idled < IN_USE || (idled < IDLE_FOR && connection.is_quiet()) {
                return Some(connection);
            }
        }
        None
    }

    /// Closes all connections that were idle when another failed: what became of it became of them. One whose
    /// caller was in a hurry, or gone, has not failed.
    fn distrust(&self, process: u32, broken: &Broken, began: Instant, deadline: &Deadline) {
        let in_a_hurry = deadline.is_cancelled() || began.elapsed() < SHORTEST_SHARE;
        if !(matches!(broken, Broken::TimedOut(_)) && in_a_hurry) {
            let mut idle = self.pool.get(process).0.lock();
            idle.retain(|idle| idle.since > began);
        }
    }

    fn keep(&self, connection: Connection) {
        let since = Instant::now();
        let mut idle = self.pool.get(connection.process()).0.lock();
        if idle
            .front()
            .is_some_and(|first| since - first.since > IDLE_FOR)
        {
            idle.pop_front();
        }
        idle.push_back(Idle { connection, since });
    }
}

fn ask(
    connection: &mut Connection,
    command: &dyn Command,
    deadline: &Deadline,
) -> Result<Value, Broken> {
    let value = connection.request(&command.packed(), deadline)?;
    if !is_unknown_script(&value) {
        return Ok(value);
    }
    match command.in_full() {
        Some(full) => connection.request(&full, deadline),
        None => Ok(value),
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

fn is_unknown_script(value: &Value) -> bool {
    matches!(value, Value::ServerError(error) if error.code() == "NOSCRIPT")
}
