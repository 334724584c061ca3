//! One round: a command that goes out to several servers at once, and their answers.
//!
//! The calling thread writes to all servers, and reads their answers until its caller has heard enough. It never
//! connects: a thread makes each connection that is missing, and the command goes out when it is there. So a slow
//! server delays no other.
//!
//! | the command | when the connection fails | when the round ends |
//! |---|---|---|
//! | waits for a connection | the server has failed | the connection is kept if it is made, unless its [`Group`] ends before |
//! | was sent on an idle connection | it is sent again on a new one, also if the server is silent for too long | the connection is kept, and its next user reads the answer; if the server was silent for too long it is reset. But one with a question for a lease is kept for another `io_timeout`, since what its owner sends next comes behind that; and one with a release is closed so that the release is delivered |
//! | was sent on a new one | it is sent again on another, once | the same |
//!
//! A command that mustn't be carried out twice isn't sent again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::redis::Value;

use super::connection::{Connection, is_unknown_script};
use super::failure::Failure;
use super::script::{Command, SameConnection};
use super::server::{Answer, Server, share};
use crate::base::sys::channel::{Receiver, Sender, unbounded};
use crate::base::sys::{self, net, time};
use crate::base::{Cancel, Deadline};
use crate::engine::{Failed, net::slice};

/// What one of the servers says, by its number.
pub(super) type Said = (usize, Result<Answer, Failed<Failure>>);

/// For how long a full buffer may keep the others waiting.
const WRITING: Duration = Duration::from_millis(50);
/// For how long a server of a [`Group`] may owe an answer at the end, so that its connection is kept.
const LATE: Duration = Duration::from_millis(50);

/// The servers of a round, by their numbers.
pub(super) trait Members {
    fn server(&self, at: usize) -> &Arc<Server>;

    /// Connects to one of them, in a thread.
    ///
    /// # Errors
    ///
    /// When no connection is made now.
    fn connect(&self, at: usize, arrivals: Arrivals) -> Result<(), Failure>;

    /// For how long a server may owe an answer at the end, so that its connection is kept.
    fn patience(&self) -> Duration;

    /// It has owed one for longer.
    fn fell_silent(&self, _at: usize) {}
}

/// Where connections arrive for which a round waits.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    to: Sender<Arrival>,
    waker: Arc<net::Waker>,
}

type Arrival = (usize, Result<Connection, Failure>);

impl Arrivals {
    /// Connects to a server in a thread, which says how that ended. A connection for which no round waits any more is
    /// kept for later.
    pub(super) fn connect(
        self,
        (at, server): (usize, &Arc<Server>),
        deadline: Deadline,
        ended: impl FnOnce(&Result<Connection, Failure>) + Send + 'static,
    ) -> Result<(), Failure> {
        let server = server.clone();
        let connect = move || {
            let made = server.connect(&deadline);
            ended(&made);
            if let Err(unread) = self.to.send((at, made))
                && let (_, Ok(connection)) = unread.0
            {
                server.keep(connection);
            }
            self.waker.wake();
        };
        sys::spawn("crosslock-connect", connect)
            .map_err(|e| Failure::Closed(format!("can't start a thread that connects: {e}").into()))
    }
}

pub(super) struct Round<'a> {
    members: &'a dyn Members,
    call: &'a dyn Command,
    packed: Vec<u8>,
    began: Instant,
    deadline: Deadline,
    /// How long those may be silent that are asked on idle connections.
    idle_until: Deadline,
    flights: Vec<Flight>,
    /// How many connections are being made.
    connecting: usize,
    arrivals: Option<(Arrivals, Receiver<Arrival>)>,
    /// Which servers may have got the command already, on a connection that failed.
    repeated: Vec<usize>,
    said: VecDeque<Said>,
}

/// A server that has got the command.
struct Flight {
    at: usize,
    connection: Connection,
    was_idle: bool,
    /// The answers that have come to a command that is several.
    values: Vec<Value>,
}

impl Flight {
    /// The answer, if all of it is here.
    fn value(&mut self, length: usize) -> Result<Option<Value>, Failure> {
        while self.values.len() < length {
            match self.connection.reply_now()? {
                Some(value) => self.values.push(value),
                None => return Ok(None),
            }
        }
        Ok(match length {
            1 => self.values.pop(),
            _ => Some(Value::Array(std::mem::take(&mut self.values))),
        })
    }
}

impl<'a> Round<'a> {
    /// Of servers none of which is asked yet.
    pub(super) fn new(members: &'a dyn Members, call: &'a dyn Command, deadline: Deadline) -> Self {
        Round {
            members,
            call,
            packed: call.packed(),
            began: time::now(),
            deadline,
            idle_until: Deadline::NEVER,
            flights: Vec::new(),
            connecting: 0,
            arrivals: None,
            repeated: Vec::new(),
            said: VecDeque::new(),
        }
    }

    pub(super) fn ask(&mut self, at: usize) {
        let server = self.members.server(at);
        match server.usual(self.call.same_connection(), self.began) {
            Some(connection) => self.send(at, connection, true),
            None => self.connect(at),
        }
    }

    /// Whether the command is still to go out to a server.
    pub(super) fn is_connecting(&self) -> bool {
        self.connecting > 0
    }

    /// Whether nothing more will be said.
    pub(super) fn is_over(&self) -> bool {
        self.flights.is_empty() && self.connecting == 0
    }

    /// What was said, and hasn't been taken yet.
    pub(super) fn said(&mut self) -> Option<Said> {
        self.said.pop_front()
    }

    /// The next that is said; `None` when all have said something, or by `until`, or when the deadline is over.
    pub(super) fn next(&mut self, until: &Deadline) -> Option<(usize, Result<Value, Failure>)> {
        while self.said.is_empty() && !self.is_over() {
            let is_last = until.is_over() || self.deadline.is_over();
            self.look(until);
            if is_last {
                break;
            }
        }
        let (at, said) = self.said()?;
        let value = said.map(|answer| answer.value);
        let server = self.members.server(at);
        Some((at, value.map_err(|failed| server.named(failed).error)))
    }

    /// Waits for something to come, and takes what is there.
    pub(super) fn look(&mut self, until: &Deadline) {
        self.wait(until);
        while let Some((_, from)) = &self.arrivals
            && let Ok((at, made)) = from.try_recv()
        {
            self.connecting -= 1;
            match made {
                Ok(connection) => self.send(at, connection, false),
                Err(failure) => self.fail(at, failure),
            }
        }
        for mut flight in std::mem::take(&mut self.flights) {
            match flight.value(self.call.length()) {
                Ok(Some(value)) => self.answered(flight.at, flight.connection, value),
                Ok(None) if flight.was_idle && self.idle_until.is_over() => {
                    let failure = Failure::TimedOut("it doesn't answer".into());
                    self.break_off(flight.at, flight.connection, failure);
                }
                Ok(None) => self.flights.push(flight),
                Err(failure) => self.break_off(flight.at, flight.connection, failure),
            }
        }
    }

    fn wait(&self, until: &Deadline) {
        let mut patience = slice(until).min(slice(&self.deadline));
        if self.flights.iter().any(|flight| flight.was_idle) {
            patience = patience.min(self.idle_until.remaining());
        }
        let sockets = self.flights.iter().map(|flight| flight.connection.socket());
        let waker = self.arrivals.as_ref().map(|(arrivals, _)| &*arrivals.waker);
        // What fails is found by the reads.
        let _ = net::await_any(sockets, waker, patience);
    }

    fn connect(&mut self, at: usize) {
        let arrivals = self.arrivals();
        match arrivals.and_then(|arrivals| self.members.connect(at, arrivals)) {
            Ok(()) => self.connecting += 1,
            Err(failure) => self.fail(at, failure),
        }
    }

    fn arrivals(&mut self) -> Result<Arrivals, Failure> {
        let arrivals = match self.arrivals.take() {
            Some(arrivals) => arrivals,
            None => {
                let (waker, (to, from)) = (Arc::new(net::Waker::new()?), unbounded());
                (Arrivals { to, waker }, from)
            }
        };
        Ok(self.arrivals.insert(arrivals).0.clone())
    }

    fn send(&mut self, at: usize, mut connection: Connection, was_idle: bool) {
        if let Err(failure) = connection.check_vote(self.call) {
            self.members.server(at).keep(connection);
            return self.fail(at, failure);
        }
        // Perhaps nobody reads that the server doesn't know the script.
        let is_in_full = connection.is_first(self.call.script_number());
        let full = is_in_full.then(|| self.call.in_full()).flatten();
        let (packed, by) = (full.as_ref(), self.deadline.within(WRITING));
        let packed = packed.unwrap_or(&self.packed);
        match connection.send(packed, self.call.length(), &by) {
            Ok(()) => self.flights.push(Flight {
                at,
                connection,
                was_idle,
                values: Vec::new(),
            }),
            Err(failure) => self.break_off(at, connection, failure),
        }
    }

    fn answered(&mut self, at: usize, mut connection: Connection, value: Value) {
        if is_unknown_script(&value) {
            connection.forget_scripts();
            return self.send(at, connection, false);
        }
        let said = self.members.server(at).concluded(connection, value, None);
        self.say(at, said);
    }

    /// A connection failed. The command goes out once more, on a new one.
    fn break_off(&mut self, at: usize, connection: Connection, failure: Failure) {
        connection.give_up();
        let server = self.members.server(at);
        server.distrust(&failure, self.began, &self.deadline);
        let was_repeated = self.repeated.contains(&at);
        self.repeated.push(at);
        let is_final = was_repeated || self.call.is_once() || self.deadline.is_over();
        if is_final || !failure.is_of_connection() {
            self.fail(at, failure);
        } else {
            self.connect(at);
        }
    }

    fn fail(&mut self, at: usize, failure: Failure) {
        self.say(at, Err(Failed::unsent(failure)));
    }

    fn say(&mut self, at: usize, said: Result<Answer, Failed<Failure>>) {
        let repeated = self.repeated.contains(&at);
        let said = match said {
            Ok(answer) => Ok(Answer { repeated, ..answer }),
            Err(failed) => Err(Failed {
                sent: failed.sent || repeated,
                ..failed
            }),
        };
        self.said.push_back((at, said));
    }
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        let (now, same) = (time::now(), self.call.same_connection());
        for Flight { at, connection, .. } in self.flights.drain(..) {
            let (server, silent) = (self.members.server(at), connection.silent_for(now));
            let is_silent = silent > self.members.patience();
            match same {
                _ if !is_silent => server.keep_behind(connection, same),
                // What its owner sends next comes behind it.
                SameConnection::Asks(_) if silent <= server.settings().io_timeout => {
                    server.keep_behind(connection, same);
                }
                // It may be behind a question, and arrives even if that does late.
                SameConnection::TakesBack(_) => drop(connection),
                _ => connection.give_up(),
            }
            if is_silent {
                self.members.fell_silent(at);
            }
        }
    }
}

/// Servers that are asked for what they know, and connected to until this is dropped.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) servers: Vec<Arc<Server>>,
    deadline: Deadline,
    dropped: Cancel,
}

impl Group {
    pub(super) fn new(servers: Vec<Arc<Server>>, deadline: &Deadline) -> Self {
        Group {
            servers,
            deadline: deadline.clone(),
            dropped: Cancel::default(),
        }
    }

    /// Asks all of them. Those that are silent on idle connections for half of the time are asked on new ones.
    pub(super) fn ask<'a>(&'a self, question: &'a dyn Command) -> Round<'a> {
        let mut round = Round::new(self, question, self.deadline.clone());
        round.idle_until = share(&self.deadline);
        (0..self.servers.len()).for_each(|at| round.ask(at));
        round
    }
}

impl Members for Group {
    fn server(&self, at: usize) -> &Arc<Server> {
        &self.servers[at]
    }

    fn connect(&self, at: usize, arrivals: Arrivals) -> Result<(), Failure> {
        let deadline = self.deadline.clone().or(&self.dropped);
        arrivals.connect((at, &self.servers[at]), deadline, |_| {})
    }

    fn patience(&self) -> Duration {
        LATE
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.dropped.set();
    }
}

#[cfg(test)]
mod tests;
