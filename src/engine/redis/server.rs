//! One server, and the connections to it that are idle.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::redis::Value;

use self::late::LateQuestions;
pub(super) use super::connection::Manner;
use super::connection::{Connection, Connector, Request};
use super::failure::Failure;
use super::role::Role;
use super::script::{Command, Order};
use super::settings::{Kind, Settings};
use super::shortfall::Shortfall;
use crate::base::cancel::Cancel;
use crate::base::clock::Deadline;
use crate::base::sys::time;
use crate::engine::Unanswered;
use crate::engine::net::address::Endpoint;
use crate::engine::net::limits::SHORTEST_SHARE;
use crate::engine::net::pool::Pool;

mod late;

/// One server, and the connections to it that are idle. Nobody waits for another's connection.
#[derive(Debug)]
pub(super) struct Server {
    endpoint: Endpoint,
    connector: Connector,
    settings: Arc<Settings>,
    pool: Pool<Connection>,
    late: LateQuestions,
    retired: Cancel,
}

/// What a server said.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) value: Value,
    /// Whether it may have been asked twice.
    pub(super) repeated: bool,
    /// Whether another server may have been asked, too: this one needn't know what came of that.
    pub(super) moved: bool,
    pub(super) server: Arc<Server>,
    /// Set when too few replicas are known to have what was written.
    pub(super) shortfall: Option<Shortfall>,
}

/// Why there is no value.
struct Failed {
    failure: Failure,
    /// Whether the server has said that it did nothing, to any copy of the command on that connection.
    was_refused: bool,
}

impl From<Failure> for Failed {
    /// Of a connection on which the command may have been carried out.
    fn from(failure: Failure) -> Self {
        Failed {
            failure,
            was_refused: false,
        }
    }
}

impl Server {
    /// Fails if the host can have no certificate.
    pub(super) fn new(endpoint: Endpoint, settings: Arc<Settings>) -> Result<Self, Failure> {
        Ok(Server {
            connector: Connector::new(endpoint.clone(), settings.clone())?,
            endpoint,
            settings,
            pool: Pool::default(),
            late: LateQuestions::default(),
            retired: Cancel::default(),
        })
    }

    /// The same for a child that was forked off, without its parent's connections.
    pub(super) fn after_fork(&self, settings: Arc<Settings>) -> Self {
        Server {
            endpoint: self.endpoint.clone(),
            connector: self.connector.after_fork(settings.clone()),
            settings,
            pool: self.pool.after_fork(),
            late: self.late.after_fork(),
            retired: Cancel::default(),
        }
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Where it is, for messages.
    pub(super) fn address(&self) -> String {
        match &self.endpoint {
            Endpoint::Tcp(at) => at.to_string(),
            Endpoint::Unix(path) => path.display().to_string(),
        }
    }

    /// What is the same for all servers of its URL.
    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(super) fn io_timeout(&self) -> Duration {
        self.settings.io_timeout
    }

    /// Another server has taken its place: its connections are closed, also those that are in use as soon as they aren't.
    pub(super) fn retire(&self) {
        self.retired.set();
        self.pool.close_those_before(time::now());
        self.late.give_up_all();
    }

    /// Set when another server has taken its place.
    pub(super) fn retired(&self) -> &Cancel {
        &self.retired
    }

    /// A connection of the caller's own.
    pub(super) fn connect(&self, deadline: &Deadline) -> Result<Connection, Failure> {
        self.connector
            .connect(&deadline.within(self.settings.connect_timeout))
    }

    /// Finds out whether there is a server, whether it lets us in, and what it is, within the connect timeout.
    pub(super) fn greet(self: &Arc<Self>) -> Result<Role, Failure> {
        self.greet_by(&Deadline::after(self.settings.connect_timeout))
    }

    /// The same, by a deadline.
    pub(super) fn greet_by(self: &Arc<Self>, deadline: &Deadline) -> Result<Role, Failure> {
        let (ping, hello) = (::redis::cmd("PING"), ::redis::cmd("HELLO"));
        let connection = self.connect(deadline)?;
        let ping = Request {
            command: &ping,
            manner: Manner::Plain,
            deadline,
        };
        let answer = self.exchange(connection, ping, deadline);
        let answer = answer.map_err(|e| self.suspecting_tls(e.failure));
        match answer?.value {
            // A server that doesn't know HELLO may have locks all the same, and was reached just now.
            Value::SimpleString(pong) if pong == "PONG" => self
                .call(&hello, Manner::Plain, deadline)
                .map_or(Ok(Role::Primary), |answer| Ok(Role::of(&answer.value))),
            _ => {
                let cause = "it doesn't answer PING as a Redis server does";
                Err(Failure::Other(cause.into()))
            }
        }
    }

    /// Adds a hint to the failure of a first command: see [`Connector::suspecting_tls`].
    pub(super) fn suspecting_tls(&self, failure: Failure) -> Failure {
        self.connector.suspecting_tls(failure)
    }

    /// Sends a command, and gives its answer by `deadline`.
    ///
    /// When a connection that was idle turns out not to work any more, the command is sent again on a new one:
    /// the server may have carried it out before.
    pub(super) fn call(
        self: &Arc<Self>,
        command: &dyn Command,
        manner: Manner,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        let answer = self.send(command, manner, deadline, false);
        answer.map_err(|e| self.named(e))
    }

    /// Sends a command that mustn't be carried out twice: never again after it may have reached the server.
    pub(super) fn call_once(
        self: &Arc<Self>,
        command: &dyn Command,
        manner: Manner,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        let answer = self.send(command, manner, deadline, true);
        answer.map_err(|e| self.named(e))
    }

    fn send(
        self: &Arc<Self>,
        command: &dyn Command,
        manner: Manner,
        deadline: &Deadline,
        is_once: bool,
    ) -> Result<Answer, Unanswered<Failure>> {
        let began = time::now();
        let request = Request {
            command,
            manner,
            deadline,
        };
        let mut repeated = false;
        if let Some(connection) = self.usual(command.order(), began) {
            let reply_by = if is_once {
                deadline.clone()
            } else {
                share(deadline)
            };
            match self.exchange(connection, request, &reply_by) {
                Err(failed) if failed.failure.is_of_connection() && !is_once => {
                    repeated = !failed.was_refused;
                    self.distrust(&failed.failure, began, deadline);
                    if deadline.is_over() {
                        // Sent again, it might arrive after the release that follows.
                        return Err(Unanswered {
                            error: failed.failure,
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
        answered(self.exchange(connection, request, deadline), repeated)
    }

    /// Where the URL stands for several servers, the error says which of them it is about.
    fn named(&self, unanswered: Unanswered<Failure>) -> Unanswered<Failure> {
        let Unanswered { error, sent } = unanswered;
        let error = match self.settings.kind {
            Kind::Single => error,
            Kind::Sentinel | Kind::Cluster => error.at(&self.address()),
        };
        Unanswered { error, sent }
    }

    /// Sends a command on a connection, and reads its answer by `reply_by` at the latest. A connection that fails is never used
    /// again, but behind a late question.
    fn exchange(
        self: &Arc<Self>,
        mut connection: Connection,
        request: Request<'_>,
        reply_by: &Deadline,
    ) -> Result<Answer, Failed> {
        let (value, shortfall) = match request.exchange(&self.settings, &mut connection, reply_by) {
            Ok(replied) => replied,
            Err(failure) => {
                let order = request.command.order();
                self.leave(connection, order, &failure, request.deadline);
                return Err(failure.into());
            }
        };
        let Value::ServerError(error) = value else {
            self.keep(connection);
            return Ok(Answer {
                value,
                repeated: false,
                moved: false,
                server: self.clone(),
                shortfall,
            });
        };
        let failure = Failure::from(error);
        let is_demoted = matches!(failure, Failure::Demoted(_));
        // It will stay a replica: behind the same address there may be its successor.
        if !is_demoted {
            self.keep(connection);
        }
        Err(Failed {
            was_refused: is_demoted || failure.is_refusal(),
            failure,
        })
    }

    /// Closes all connections that were idle when another failed: they have most likely failed, too. A timeout is no
    /// failure of the connection if the caller gave the server little time, or was cancelled.
    fn distrust(&self, failure: &Failure, began: Instant, deadline: &Deadline) {
        let was_hasty = deadline.is_cancelled() || time::since(began) < SHORTEST_SHARE;
        if !(matches!(failure, Failure::TimedOut(_)) && was_hasty) {
            self.pool.close_those_before(began);
        }
    }

    /// The connection on which a command with this order goes out: behind a late question, or an idle one.
    fn usual(&self, order: Order<'_>, now: Instant) -> Option<Connection> {
        let late = self.late.take(order, now);
        late.or_else(|| self.pool.take(now, Connection::is_quiet))
    }

    /// What becomes of a connection that failed: see [`LateQuestions::leave`].
    fn leave(
        &self,
        connection: Connection,
        order: Order<'_>,
        failure: &Failure,
        deadline: &Deadline,
    ) {
        self.late.leave(connection, order, failure, deadline);
        if self.retired.is_set() {
            self.late.give_up_all();
        }
    }

    fn keep(&self, connection: Connection) {
        if !self.retired.is_set() {
            self.pool.put(connection, time::now());
        }
    }
}

/// What fails after a connection was made may have been carried out: the server may have got all of the command. But it
/// sends on what isn't its own without looking at it.
fn answered(answer: Result<Answer, Failed>, repeated: bool) -> Result<Answer, Unanswered<Failure>> {
    match answer {
        Ok(answer) => Ok(Answer { repeated, ..answer }),
        Err(Failed { failure, .. }) => Err(Unanswered {
            sent: repeated || !failure.is_refusal(),
            error: failure,
        }),
    }
}

/// What a connection that was idle gets of the time, or one of several servers, so that there is some left for another.
pub(super) fn share(deadline: &Deadline) -> Deadline {
    let half = deadline.remaining() / 2;
    if half < SHORTEST_SHARE {
        deadline.clone()
    } else {
        deadline.within(half)
    }
}

#[cfg(test)]
mod tests;
