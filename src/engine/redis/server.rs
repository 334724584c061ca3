//! One server, and the connections to it that are idle.
//!
//! A question whose caller has gone without an answer may still be on its way, and takes what it asks for when it
//! arrives. What its owner sends next, which is most often the release that gives that back, would overtake it on
//! another connection. So the connection is kept, and the owner's next command goes out on it, behind the question.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use ::redis::Value;

pub(super) use super::connection::Manner;
use super::connection::{Connection, Connector, Request};
use super::failure::Failure;
use super::quorum::voter::Voter;
use super::script::{Command, SameConnection};
use super::settings::{Kind, Settings};
use super::shortfall::Shortfall;
use crate::base::{Cancel, Deadline, sys::sync::Mutex, sys::time};
use crate::engine::Failed;
use crate::engine::net::{IDLE, SHORTEST_SHARE, address::Endpoint, pool::Pool};

/// One server, and the connections to it that are idle. Nobody waits for another's connection.
#[derive(Debug)]
pub(super) struct Server {
    endpoint: Endpoint,
    connector: Connector,
    settings: Arc<Settings>,
    pool: Pool<Connection>,
    late: LateQuestions,
    retired: Cancel,
    /// What it said of itself when it was connected to last, as one of a quorum.
    voter: Mutex<Option<Voter>>,
}

/// What a server said.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) value: Value,
    /// Whether it may have been asked twice.
    pub(super) repeated: bool,
    /// Whether another server may have carried it out before. This one needn't know of that.
    pub(super) moved: bool,
    pub(super) server: Arc<Server>,
    /// Set when too few replicas are known to have what was written.
    pub(super) shortfall: Option<Shortfall>,
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
            voter: Mutex::default(),
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
            voter: Mutex::default(),
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

    /// Another server has taken its place: its connections are closed, also those that are in use as soon as they
    /// aren't.
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
        let deadline = deadline.within(self.settings.connect_timeout);
        let connection = self.connector.connect(&deadline)?;
        if let Some(voter) = connection.voter() {
            *self.voter.lock() = Some(voter);
        }
        Ok(connection)
    }

    pub(super) fn voter(&self) -> Option<Voter> {
        *self.voter.lock()
    }

    /// Sends a command on a connection of its own, the first to this server.
    pub(super) fn call_first(
        self: &Arc<Self>,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Value, Failure> {
        let request = Request {
            command,
            manner: Manner::Plain,
            deadline,
        };
        let answer = self.exchange(self.connect(deadline)?, request, deadline);
        answer
            .map(|answer| answer.value)
            .map_err(|e| self.suspecting_tls(e.error))
    }

    /// The answer to a command that changes nothing.
    pub(super) fn value(
        self: &Arc<Self>,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Value, Failure> {
        let answer = self.call(command, Manner::Plain, deadline);
        answer.map(|answer| answer.value).map_err(|e| e.error)
    }

    /// Adds a hint to the failure of a first command: see [`Connector::suspecting_tls`].
    pub(super) fn suspecting_tls(&self, failure: Failure) -> Failure {
        self.connector.suspecting_tls(failure)
    }

    /// Sends a command, and gives its answer by `deadline`.
    ///
    /// When a connection that was idle turns out not to work any more, the command is sent again on a new one, unless
    /// it mustn't be carried out twice: the server may have carried it out before.
    pub(super) fn call(
        self: &Arc<Self>,
        command: &dyn Command,
        manner: Manner,
        deadline: &Deadline,
    ) -> Result<Answer, Failed<Failure>> {
        let request = Request {
            command,
            manner,
            deadline,
        };
        self.send(request).map_err(|e| self.named(e))
    }

    fn send(self: &Arc<Self>, request: Request<'_>) -> Result<Answer, Failed<Failure>> {
        let (began, deadline) = (time::now(), request.deadline);
        let is_once = request.command.is_once();
        let mut repeated = false;
        if let Some(connection) = self.usual(request.command.same_connection(), began) {
            let reply_by = if is_once {
                deadline.clone()
            } else {
                share(deadline)
            };
            match self.exchange(connection, request, &reply_by) {
                Err(failed) if failed.error.is_of_connection() && !is_once => {
                    self.distrust(&failed.error, began, deadline);
                    if deadline.is_over() {
                        // Sent again, it might arrive after the release that follows.
                        return Err(failed);
                    }
                    repeated = failed.sent;
                }
                answer => return answered(answer, false),
            }
        }
        let connection = self.connect(deadline).map_err(|error| Failed {
            error,
            sent: repeated,
        })?;
        answered(self.exchange(connection, request, deadline), repeated)
    }

    /// Where the URL stands for several servers, the error says which of them it is about.
    pub(super) fn named(&self, failed: Failed<Failure>) -> Failed<Failure> {
        let Failed { error, sent } = failed;
        let error = match self.settings.kind {
            Kind::Single => error,
            Kind::Sentinel | Kind::Cluster | Kind::Quorum => error.at(&self.address()),
        };
        Failed { error, sent }
    }

    /// Sends a command on a connection, and reads its answer by `reply_by` at the latest. A connection that fails is
    /// never used again, but behind a late question. `sent` says of a failure that the server hasn't refused each copy
    /// on that connection.
    fn exchange(
        self: &Arc<Self>,
        mut connection: Connection,
        request: Request<'_>,
        reply_by: &Deadline,
    ) -> Result<Answer, Failed<Failure>> {
        if let Err(failure) = connection.check_vote(request.command) {
            self.keep(connection);
            return Err(Failed::unsent(failure));
        }
        let (value, shortfall) = match request.exchange(&self.settings, &mut connection, reply_by) {
            Ok(replied) => replied,
            Err(failure) => {
                let same = request.command.same_connection();
                self.leave(connection, same, &failure, request.deadline);
                return Err(Failed {
                    error: failure,
                    sent: true,
                });
            }
        };
        self.concluded(connection, value, shortfall)
    }

    /// What an answer is, after which its connection is idle.
    pub(super) fn concluded(
        self: &Arc<Self>,
        connection: Connection,
        value: Value,
        shortfall: Option<Shortfall>,
    ) -> Result<Answer, Failed<Failure>> {
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
            sent: !is_demoted && !failure.is_refusal(),
            error: failure,
        })
    }

    /// Closes all connections that were idle when another failed: they have most likely failed, too. A timeout is no
    /// failure of the connection if the caller gave the server little time, or was cancelled.
    pub(super) fn distrust(&self, failure: &Failure, began: Instant, deadline: &Deadline) {
        let was_hasty = deadline.is_cancelled() || time::since(began) < SHORTEST_SHARE;
        if !(matches!(failure, Failure::TimedOut(_)) && was_hasty) {
            self.pool.close_those_before(began);
        }
    }

    /// The connection on which a command goes out: behind a late question, or an idle one.
    pub(super) fn usual(&self, same: SameConnection<'_>, now: Instant) -> Option<Connection> {
        let late = self.late.take(same, now);
        let idle = late.or_else(|| self.pool.take(now, Connection::is_in_step));
        idle.or_else(|| self.late.take_answered())
    }

    /// Keeps a connection on which an answer is missing for which nobody waits any more.
    pub(super) fn keep_behind(&self, connection: Connection, same: SameConnection<'_>) {
        match same {
            SameConnection::Asks(owner) => self.late.keep(owner, connection),
            SameConnection::Any | SameConnection::TakesBack(_) => self.keep(connection),
        }
    }

    /// What becomes of a connection that failed: see [`LateQuestions::leave`].
    pub(super) fn leave(
        &self,
        connection: Connection,
        same: SameConnection<'_>,
        failure: &Failure,
        deadline: &Deadline,
    ) {
        self.late.leave(connection, same, failure, deadline);
        if self.retired.is_set() {
            self.late.give_up_all();
        }
    }

    /// Keeps a connection on which answers may be missing whose commands need no other behind them.
    pub(super) fn keep(&self, connection: Connection) {
        if !self.retired.is_set() {
            self.pool.put(connection, time::now());
        }
    }
}

/// What fails after a connection was made may have been carried out: the server may have got all of the command. But it
/// sends on what isn't its own without looking at it.
fn answered(
    answer: Result<Answer, Failed<Failure>>,
    repeated: bool,
) -> Result<Answer, Failed<Failure>> {
    match answer {
        Ok(answer) => Ok(Answer { repeated, ..answer }),
        Err(Failed { error, .. }) => Err(Failed {
            sent: repeated || !error.is_refusal(),
            error,
        }),
    }
}

/// The share of the time for an idle connection, or for one of several servers: the rest is left for the next one.
pub(super) fn share(deadline: &Deadline) -> Deadline {
    let half = deadline.remaining() / 2;
    if half < SHORTEST_SHARE {
        deadline.clone()
    } else {
        deadline.within(half)
    }
}

/// More questions than these are late only when nothing comes through. The oldest is given up then.
pub(super) const MOST: usize = 32;

/// The connections on which the answer to a question is missing, the oldest first.
#[derive(Debug, Default)]
pub(super) struct LateQuestions(Mutex<VecDeque<Late>>);

#[derive(Debug)]
struct Late {
    owner: String,
    connection: Connection,
    since: Instant,
}

impl LateQuestions {
    /// An empty one for a child that was forked off, which closes its copies of the sockets.
    pub(super) fn after_fork(&self) -> Self {
        // Another thread of the parent may have locked it.
        if let Some(mut late) = self.0.try_lock() {
            late.clear();
        }
        LateQuestions::default()
    }

    /// The connection of the late question that a command has to come behind. Connections that were kept for longer
    /// than an idle one is are given up: something on the way has forgotten them.
    pub(super) fn take(&self, same: SameConnection<'_>, now: Instant) -> Option<Connection> {
        let mut all = self.0.lock();
        let is_old = |late: &Late| now.saturating_duration_since(late.since) > IDLE;
        let old: Vec<_> = match all.front() {
            Some(first) if is_old(first) => {
                let count = all.iter().take_while(|late| is_old(late)).count();
                all.drain(..count).collect()
            }
            _ => Vec::new(),
        };
        let is_its = |late: &Late| Some(&*late.owner) == same.owner();
        let at = all.iter().position(is_its);
        let found = at.and_then(|at| all.remove(at));
        drop(all);
        old.into_iter().for_each(|late| late.connection.give_up());
        found.map(|late| late.connection)
    }

    /// One on which nothing is missing any more.
    fn take_answered(&self) -> Option<Connection> {
        let mut all = self.0.lock();
        let at = all.iter_mut().position(|late| {
            let connection = &mut late.connection;
            connection.is_in_step() && !connection.is_awaited()
        })?;
        all.remove(at).map(|late| late.connection)
    }

    /// Keeps a connection without an answer for what its owner sends next, if a question is still on its way there and
    /// the call has no time left; else gives it up.
    pub(super) fn leave(
        &self,
        connection: Connection,
        same: SameConnection<'_>,
        failure: &Failure,
        deadline: &Deadline,
    ) {
        let asker = match same {
            SameConnection::TakesBack(_) if !connection.has_unwanted() => None,
            same => same.owner(),
        };
        let is_late = matches!(failure, Failure::TimedOut(_))
            && connection.is_awaited()
            && deadline.is_over();
        match asker {
            Some(owner) if is_late => self.keep(owner, connection),
            _ => connection.give_up(),
        }
    }

    fn keep(&self, owner: &str, connection: Connection) {
        let late = Late {
            owner: owner.to_owned(),
            connection,
            since: time::now(),
        };
        let mut all = self.0.lock();
        all.push_back(late);
        let oldest = (all.len() > MOST).then(|| all.pop_front()).flatten();
        drop(all);
        if let Some(late) = oldest {
            late.connection.give_up();
        }
    }

    pub(super) fn give_up_all(&self) {
        let all = std::mem::take(&mut *self.0.lock());
        all.into_iter().for_each(|late| late.connection.give_up());
    }
}
