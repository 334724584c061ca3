//! One round: a command that goes out to several servers at once, and their answers.
//!
//! The calling thread writes to all, and reads what comes, until its caller has heard enough. It connects to none: that
//! is done by a thread for each connection that is missing, and the command goes out when it is there. What isn't
//! answered by then is read by whoever uses the connection next; so one server that is slow delays no other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::redis::Value;

use super::node::{Arrival, Arrivals, Node, SILENCE};
use super::shared::Quorum;
use super::votes::{Vote, Votes};
use crate::base::Deadline;
use crate::base::sys::channel::{Receiver, unbounded};
use crate::base::sys::{net, time};
use crate::engine::net::slice;
use crate::engine::redis::connection::{Connection, is_unknown_script};
use crate::engine::redis::script::{Command, SameConnection};
use crate::engine::redis::{failure::Failure, server::Answer};
use crate::engine::{Failed, Gone};

/// What one server said.
type Said = Result<Answer, Failed<Failure>>;

/// For how long a full buffer may keep the others waiting.
const WRITING: Duration = Duration::from_millis(50);

/// For how long those may take that are still to answer when a majority has.
const LAST: Duration = Duration::from_millis(100);

/// And for how long a connection may be made then on which something is to be taken back: what isn't keeps others out
/// for a ttl.
const CONNECTING: Duration = Duration::from_millis(400);

struct Round<'a> {
    quorum: &'a Quorum,
    call: &'a dyn Command,
    packed: Vec<u8>,
    /// Whether it takes something back: then it goes out to all that can be reached, also when a majority has answered.
    takes_back: bool,
    began: Instant,
    deadline: Deadline,
    /// The servers that have got the command, each with its connection.
    flights: Vec<(usize, Connection)>,
    /// Connections that are being made.
    arriving: usize,
    arrivals: Option<(Arrivals, Receiver<Arrival>)>,
    /// Which servers may have got the command already, on a connection that failed.
    repeated: Vec<usize>,
    /// Is told what each server says, and says whether that is enough.
    hear: &'a mut dyn FnMut(usize, Said) -> bool,
    is_enough: bool,
    /// How many have answered.
    heard: usize,
}

impl Quorum {
    /// Sends a command to each server that hasn't said anything yet, until the votes are enough. `meaning` tells an
    /// answer's yes or no.
    pub(super) fn poll<Y>(
        &self,
        votes: &mut Votes<Y>,
        call: &dyn Command,
        deadline: &Deadline,
        meaning: impl Fn(Answer) -> Result<Result<Y, Gone>, Failure>,
        is_enough: impl Fn(&Votes<Y>) -> bool,
    ) {
        let line = self.line();
        let mut servers: Vec<_> = (0..self.nodes.len()).collect();
        servers.retain(|at| !votes.has_heard(*at));
        servers.sort_by_key(|at| (*at == line) == votes.is_line_last);
        let mut hear = |at: usize, said: Said| {
            votes.has_repeated |= said.as_ref().is_ok_and(|answer| answer.repeated);
            let meant = said.and_then(|answer| meaning(answer).map_err(Failed::sent));
            votes.said[at] = Some(match meant {
                Ok(Ok(yes)) => Vote::Yes(yes),
                Ok(Err(_)) if !self.nodes[at].votes() => Vote::Abstains,
                Ok(Err(no)) => Vote::No(no),
                Err(failed) => Vote::Failed(failed),
            });
            is_enough(votes)
        };
        let mut round = Round {
            quorum: self,
            call,
            packed: call.packed(),
            takes_back: matches!(call.same_connection(), SameConnection::TakesBack(_)),
            began: time::now(),
            deadline: deadline.within(self.nodes[0].server.settings().io_timeout),
            flights: Vec::with_capacity(servers.len()),
            arriving: 0,
            arrivals: None,
            repeated: Vec::new(),
            hear: &mut hear,
            is_enough: false,
            heard: 0,
        };
        servers.into_iter().for_each(|at| round.begin(at));
        let mut is_last_look = false;
        while !round.is_over() && !is_last_look {
            is_last_look = round.deadline.is_over();
            round.look();
        }
        round.end();
    }
}

impl<'a> Round<'a> {
    fn node(&self, at: usize) -> &'a Arc<Node> {
        &self.quorum.nodes[at]
    }

    /// Whether nothing more has to come. When a majority has answered, the others have little time.
    fn is_over(&mut self) -> bool {
        let is_out = !self.takes_back || self.arriving == 0;
        if self.heard >= self.quorum.majority() {
            let last = if is_out { LAST } else { CONNECTING };
            self.deadline = self.deadline.within(last);
        }
        let is_idle = self.flights.is_empty() && self.arriving == 0;
        self.is_enough && is_out || is_idle
    }

    fn begin(&mut self, at: usize) {
        let same = self.call.same_connection();
        match self.node(at).server.usual(same, self.began) {
            Some(connection) => self.send(at, connection),
            None => self.connect(at),
        }
    }

    fn connect(&mut self, at: usize) {
        let Quorum { tokens, closed, .. } = self.quorum;
        let (node, arrivals) = (self.node(at), self.arrivals());
        match arrivals.and_then(|arrivals| node.connect(at, (tokens, closed), arrivals)) {
            Ok(()) => self.arriving += 1,
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

    fn send(&mut self, at: usize, mut connection: Connection) {
        if let Err(failure) = connection.check_vote(self.call) {
            self.node(at).server.keep(connection);
            return self.fail(at, failure);
        }
        // Perhaps nobody reads that the server doesn't know the script.
        let is_in_full = connection.is_first(self.call.script_number());
        let full = is_in_full.then(|| self.call.in_full()).flatten();
        let (packed, by) = (full.as_ref(), self.deadline.within(WRITING));
        match connection.send(packed.unwrap_or(&self.packed), 1, &by) {
            Ok(()) => self.flights.push((at, connection)),
            Err(failure) => self.break_off(at, connection, failure),
        }
    }

    /// Waits for something to come, and takes what is there.
    fn look(&mut self) {
        let sockets = self
            .flights
            .iter()
            .map(|(_, connection)| connection.socket());
        let waker = self.arrivals.as_ref().map(|(arrivals, _)| &*arrivals.waker);
        // What fails is found by the reads.
        let _ = net::await_any(sockets, waker, slice(&self.deadline));
        while let Some((_, from)) = &self.arrivals
            && let Ok((at, made)) = from.try_recv()
        {
            self.arriving -= 1;
            match made {
                Ok(connection) => self.send(at, connection),
                Err(failure) => self.fail(at, failure),
            }
        }
        for (at, mut connection) in std::mem::take(&mut self.flights) {
            match connection.reply_now() {
                Ok(None) => self.flights.push((at, connection)),
                Ok(Some(value)) => self.answered(at, connection, value),
                Err(failure) => self.break_off(at, connection, failure),
            }
        }
    }

    fn answered(&mut self, at: usize, mut connection: Connection, value: Value) {
        if is_unknown_script(&value) {
            connection.forget_scripts();
            return self.send(at, connection);
        }
        let said = self.node(at).server.concluded(connection, value, None);
        self.say(at, said);
    }

    /// A connection failed. The command goes out once more, on a new one.
    fn break_off(&mut self, at: usize, connection: Connection, failure: Failure) {
        connection.give_up();
        let server = &self.node(at).server;
        server.distrust(&failure, self.began, &self.deadline);
        let was_repeated = self.repeated.contains(&at);
        self.repeated.push(at);
        if was_repeated || self.call.is_once() || !failure.is_of_connection() {
            self.fail(at, failure);
        } else {
            self.connect(at);
        }
    }

    fn fail(&mut self, at: usize, failure: Failure) {
        self.say(at, Err(Failed::unsent(failure)));
    }

    fn say(&mut self, at: usize, said: Said) {
        let (node, repeated) = (self.node(at), self.repeated.contains(&at));
        node.heard(said.as_ref().err().map(|failed| &failed.error));
        let said = match said {
            Ok(answer) => Ok(Answer { repeated, ..answer }),
            Err(Failed { error, sent }) => Err(Failed {
                error: error.at(&node.server.address()),
                sent: sent || repeated,
            }),
        };
        self.heard += usize::from(said.is_ok());
        self.is_enough |= (self.hear)(at, said);
    }

    /// Leaves what isn't answered. A connection is kept for what its owner sends next, or for anything; but not if its
    /// server has been silent for long.
    fn end(self) {
        let (now, same) = (time::now(), self.call.same_connection());
        for (at, connection) in self.flights {
            let node = &self.quorum.nodes[at];
            if connection.silent_for(now) <= SILENCE {
                node.server.keep_behind(connection, same);
                continue;
            }
            let failure = Failure::TimedOut("it doesn't answer".into());
            connection.give_up();
            node.server.distrust(&failure, now, &self.deadline);
            node.heard(Some(&failure));
        }
    }
}
