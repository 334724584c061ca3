//! One server, and the connections to it that are idle.

use std::time::{Duration, Instant};

use ::redis::Value;

use super::address::Address;
use super::connection::{Connection, Connector};
use super::failure::Failure;
use super::role::Role;
use super::script::Command;
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::base::options::Options;
use crate::engine::Unanswered;
use crate::engine::net::limits::SHORTEST_SHARE;
use crate::engine::net::pool::Pool;

/// One server, and the connections to it that are idle. Nobody waits for another's connection.
#[derive(Debug)]
pub(super) struct Server {
    connector: Connector,
    connect_timeout: Duration,
    io_timeout: Duration,
    pool: Pool<Connection>,
}

/// What the server said, and whether it was asked twice.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) value: Value,
    pub(super) repeated: bool,
}

impl Server {
    pub(super) fn new(address: Address, options: &Options) -> Result<Self> {
        Ok(Server {
            connector: Connector::new(address)?,
            connect_timeout: options.connect_timeout,
            io_timeout: options.io_timeout,
            pool: Pool::default(),
        })
    }

    /// The same for a child that was forked off, without its parent's connections.
    pub(super) fn after_fork(&self) -> Self {
        Server {
            connector: self.connector.after_fork(),
            connect_timeout: self.connect_timeout,
            io_timeout: self.io_timeout,
            pool: self.pool.after_fork(),
        }
    }

    /// For errors: the URL without user and password.
    pub(super) fn place(&self) -> &str {
        self.connector.place()
    }

    pub(super) fn io_timeout(&self) -> Duration {
        self.io_timeout
    }

    /// A connection of the caller's own.
    pub(super) fn connect(&self, deadline: &Deadline) -> Result<Connection, Failure> {
        self.connector
            .connect(&deadline.within(self.connect_timeout))
    }

    /// Finds out whether there is a server, whether it lets us in, and what it is, within the connect timeout.
    pub(super) fn greet(&self) -> Result<Role, Failure> {
        let (ping, hello) = (::redis::cmd("PING"), ::redis::cmd("HELLO"));
        let deadline = Deadline::after(self.connect_timeout);
        let connection = self.connect(&deadline)?;
        let answer = self.exchange(connection, &ping, &deadline);
        match answer.map_err(|e| self.connector.suspecting_tls(e))? {
            // A server that doesn't know HELLO may have locks all the same, and was reached just now.
            Value::SimpleString(pong) if pong == "PONG" => self
                .call(&hello, &deadline)
                .map_or(Ok(Role::Primary), |answer| Ok(Role::of(&answer.value))),
            _ => {
                let cause = "it doesn't answer PING as a Redis server does";
                Err(Failure::Other(cause.into()))
            }
        }
    }

    /// Sends a command, and gives its answer by `deadline`.
    ///
    /// When a connection that was idle turns out not to work any more, the command is sent again on a new one:
    /// the server may have carried it out before.
    pub(super) fn call(
        &self,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        let began = Instant::now();
        let idle = self.pool.take(began, Connection::is_quiet);
        let mut repeated = false;
        if let Some(connection) = idle {
            match self.exchange(connection, command, &share(deadline)) {
                Err(failure) if failure.is_of_connection() => {
                    // A replica has refused it.
                    repeated = !matches!(failure, Failure::Demoted(_));
                    self.distrust(&failure, began, deadline);
                    if deadline.is_over() {
                        // Sent again, it might arrive after the release that follows.
                        return Err(Unanswered {
                            error: failure,
                            sent: repeated,
                        });
                    }
                }
                answer => return answered(answer, false),
            }
        }
        let connection = self.connect(deadline).map_err(|error| Unanswered {
            error,
            sent: repeated,
        })?;
        answered(self.exchange(connection, command, deadline), repeated)
    }

    /// Sends a command that mustn't be carried out twice: never again after it may have reached the server.
    pub(super) fn call_once(
        &self,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        let idle = self.pool.take(Instant::now(), Connection::is_quiet);
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect(deadline).map_err(Unanswered::unsent)?,
        };
        answered(self.exchange(connection, command, deadline), false)
    }

    /// A connection that fails is dropped here, and so never used again.
    fn exchange(
        &self,
        mut connection: Connection,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Value, Failure> {
        let value = match ask(&mut connection, command, &deadline.within(self.io_timeout)) {
            Ok(value) => value,
            Err(failure) => {
                connection.give_up();
                return Err(failure);
            }
        };
        let answer = match value {
            Value::ServerError(error) => Err(Failure::from(error)),
            value => Ok(value),
        };
        // It will stay a replica: behind the same address there may be its successor.
        if !matches!(answer, Err(Failure::Demoted(_))) {
            self.keep(connection);
        }
        answer
    }

    /// Closes all connections that were idle when another failed: they have most likely failed, too. A timeout is no
    /// failure of the connection if the caller gave the server little time, or was cancelled.
    fn distrust(&self, failure: &Failure, began: Instant, deadline: &Deadline) {
        let was_hasty = deadline.is_cancelled() || began.elapsed() < SHORTEST_SHARE;
        if !(matches!(failure, Failure::TimedOut(_)) && was_hasty) {
            self.pool.close_those_before(began);
        }
    }

    fn keep(&self, connection: Connection) {
        self.pool.put(connection, Instant::now());
    }
}

/// What fails after a connection was made may have been carried out: the server may have got all of the command.
fn answered(answer: Result<Value, Failure>, repeated: bool) -> Result<Answer, Unanswered<Failure>> {
    match answer {
        Ok(value) => Ok(Answer { value, repeated }),
        Err(failure) => Err(Unanswered::sent(failure)),
    }
}

fn ask(
    connection: &mut Connection,
    command: &dyn Command,
    deadline: &Deadline,
) -> Result<Value, Failure> {
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

fn is_unknown_script(value: &Value) -> bool {
    matches!(value, Value::ServerError(error) if error.code() == "NOSCRIPT")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::redis::address;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    fn server_at(listener: &TcpListener) -> Server {
        let url = format!("redis://{}/", listener.local_addr().unwrap());
        Server::new(address::parse(&url).unwrap(), &Options::default()).unwrap()
    }

    fn unanswered(server: &Server) -> Unanswered<Failure> {
        let deadline = Deadline::after(Duration::from_secs(20));
        server.call(&::redis::cmd("PING"), &deadline).unwrap_err()
    }

    #[test]
    fn command_that_was_answered_counts_as_sent() {
        for answer in [
            "-ERR what\r\n",
            "-OOM no memory\r\n",
            "-READONLY a replica\r\n",
            "HTTP/1.1 400 Bad Request\r\n",
            "",
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let server = server_at(&listener);
            let peer = thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                assert!(stream.read(&mut [0; 100]).unwrap() > 0);
                stream.write_all(answer.as_bytes()).unwrap();
            });
            assert!(unanswered(&server).sent, "{answer:?}");
            peer.join().unwrap();
        }
    }

    #[test]
    fn command_that_found_no_server_does_not_count_as_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = server_at(&listener);
        drop(listener);
        let unanswered = unanswered(&server);
        assert!(!unanswered.sent && matches!(unanswered.error, Failure::Closed(_)));
    }
}
