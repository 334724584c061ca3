//! One round: commands that go out to several servers at once, and their answers.
//!
//! The calling thread writes to all, and reads what comes, until its caller has heard enough. It connects to none: that
//! is done by a thread for each connection that is missing, and the command goes out when it is there. What isn't
//! answered by then is read by whoever uses the connection next; so one server that is slow delays no other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::redis::Value;

use super::node::{Arrival, Arrivals, Node, SILENCE};
use super::shared::Quorum;
use crate::base::Deadline;
use crate::base::sys::channel::{Receiver, unbounded};
use crate::base::sys::{net, time};
use crate::engine::Failed;
use crate::engine::net::slice;
use crate::engine::redis::connection::{Connection, is_unknown_script};
use crate::engine::redis::script::{Command, SameConnection};
use crate::engine::redis::{failure::Failure, server::Answer};

/// What one server said.
pub(super) type Said = Result<Answer, Failed<Failure>>;

/// For how long a full buffer may keep the others waiting.
const WRITING: Duration = Duration::from_millis(50);

/// For how long those may take that are still to answer when a majority has.
const LAST: Duration = Duration::from_millis(100);

/// And for how long a connection may be made then on which something is to be taken back: what isn't keeps others out
/// for a ttl.
const CONNECTING: Duration = Duration::from_millis(400);

struct Round<'a, C> {
    quorum: &'a Quorum,
    calls: &'a [Option<C>],
    began: Instant,
    deadline: Deadline,
    flights: Vec<Flight<'a, C>>,
    /// Connections that are being made.
    arriving: usize,
    arrivals: Option<(Arrivals, Receiver<Arrival>)>,
    /// Which servers may have got a command already, on a connection that failed.
    repeated: Vec<usize>,
    said: Vec<(usize, Said)>,
}

/// A command on its way.
struct Flight<'a, C> {
    at: usize,
    call: &'a C,
    connection: Connection,
    is_in_full: bool,
}

impl Quorum {
    /// Sends each server its call, in that order of the servers. `hear` is told what each says, and says itself whether
    /// that is enough. What takes something back goes out to all that can be reached before that.
    pub(super) fn round<C: Command>(
        &self,
        calls: &[Option<C>],
        order: Vec<usize>,
        deadline: &Deadline,
        mut hear: impl FnMut(usize, Said) -> bool,
    ) {
        let mut round = Round {
            quorum: self,
            calls,
            began: time::now(),
            deadline: deadline.within(self.nodes[0].server.settings().io_timeout),
            flights: Vec::with_capacity(calls.len()),
            arriving: 0,
            arrivals: None,
            repeated: Vec::new(),
            said: Vec::new(),
        };
        order.into_iter().for_each(|at| round.begin(at));
        let goes_to_all = calls.iter().flatten().any(takes_back);
        let (mut heard, mut is_enough, mut is_last_look) = (0, false, false);
        loop {
            for (at, said) in round.said.drain(..) {
                heard += usize::from(said.is_ok());
                is_enough |= hear(at, said);
            }
            let is_out = !goes_to_all || round.arriving == 0;
            let is_idle = round.flights.is_empty() && round.arriving == 0;
            if is_enough && is_out || is_idle || is_last_look {
                break;
            }
            if heard >= self.majority() {
                let last = if is_out { LAST } else { CONNECTING };
                round.deadline = round.deadline.within(last);
            }
            is_last_look = round.deadline.is_over();
            round.look();
        }
        round.end();
    }
}

fn takes_back(call: &impl Command) -> bool {
    matches!(call.same_connection(), SameConnection::TakesBack(_))
}

impl<'a, C: Command> Round<'a, C> {
    fn node(&self, at: usize) -> &'a Arc<Node> {
        &self.quorum.nodes[at]
    }

    fn begin(&mut self, at: usize) {
        let Some(call) = &self.calls[at] else { return };
        let node = self.node(at);
        let Some(mut connection) = node.server.usual(call.same_connection(), self.began) else {
            return self.connect(at);
        };
        let began = self.began;
        let is_silent = |connection: &Connection| connection.silent_for(began) > SILENCE;
        // Perhaps it has answered, and nobody has read that.
        let is_whole = !is_silent(&connection) || connection.is_in_step();
        if is_whole && !is_silent(&connection) {
            return self.send(at, connection);
        }
        connection.give_up();
        if is_whole {
            let failure = Failure::TimedOut("it doesn't answer".into());
            node.server.distrust(&failure, began, &self.deadline);
            node.failed(&failure.to_string());
        }
        self.connect(at);
    }

    fn connect(&mut self, at: usize) {
        let quorum = self.quorum;
        let begun = self.arrivals().and_then(|arrivals| {
            let shared = (&quorum.tokens, &quorum.closed);
            self.node(at).connect(at, shared, arrivals)
        });
        match begun {
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
        let Some(call) = &self.calls[at] else { return };
        let node = self.node(at);
        if let Err(failure) = connection.check_vote(call) {
            node.server.keep(connection);
            return self.fail(at, failure);
        }
        // Perhaps nobody reads that the server doesn't know the script.
        let is_in_full = takes_back(call) && connection.is_first(call.script_number());
        self.write(Flight {
            at,
            call,
            connection,
            is_in_full,
        });
    }

    fn write(&mut self, mut flight: Flight<'a, C>) {
        let full = flight.is_in_full.then(|| flight.call.in_full());
        let packed = full.flatten().unwrap_or_else(|| flight.call.packed());
        let by = self.deadline.within(WRITING);
        match flight.connection.send(&packed, 1, &by) {
            Ok(()) => self.flights.push(flight),
            Err(failure) => self.break_off(flight, failure),
        }
    }

    /// Waits for something to come, and takes what is there.
    fn look(&mut self) {
        let sockets = self.flights.iter().map(|flight| flight.connection.socket());
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
        for mut flight in std::mem::take(&mut self.flights) {
            match flight.connection.reply_now() {
                Ok(None) => self.flights.push(flight),
                Ok(Some(value)) => self.answered(flight, value),
                Err(failure) => self.break_off(flight, failure),
            }
        }
    }

    fn answered(&mut self, mut flight: Flight<'a, C>, value: Value) {
        if is_unknown_script(&value) && !flight.is_in_full {
            flight.connection.forget_scripts();
            flight.is_in_full = true;
            return self.write(flight);
        }
        let (at, node) = (flight.at, self.node(flight.at));
        let said = node.server.concluded(flight.connection, value, None);
        match &said {
            Err(Failed { error, .. }) if error.is_of_connection() => {
                node.failed(&error.to_string())
            }
            _ => node.answered(),
        }
        self.say(at, said);
    }

    /// A connection failed. The command goes out once more, on a new one.
    fn break_off(&mut self, flight: Flight<'a, C>, failure: Failure) {
        let (at, node) = (flight.at, self.node(flight.at));
        flight.connection.give_up();
        node.server.distrust(&failure, self.began, &self.deadline);
        let was_repeated = self.repeated.contains(&at);
        self.repeated.push(at);
        if was_repeated || flight.call.is_once() || !failure.is_of_connection() {
            node.failed(&failure.to_string());
            self.fail(at, failure);
        } else {
            self.connect(at);
        }
    }

    fn fail(&mut self, at: usize, failure: Failure) {
        self.say(at, Err(Failed::unsent(failure)));
    }

    fn say(&mut self, at: usize, said: Said) {
        let repeated = self.repeated.contains(&at);
        let said = match said {
            Ok(answer) => Ok(Answer { repeated, ..answer }),
            Err(Failed { error, sent }) => Err(Failed {
                error: error.at(&self.node(at).server.address()),
                sent: sent || repeated,
            }),
        };
        self.said.push((at, said));
    }

    /// Leaves what isn't answered. A connection is kept for what its owner sends next, or for anything.
    fn end(self) {
        let (is_over, now) = (self.deadline.is_over(), time::now());
        for flight in self.flights {
            let (connection, same) = (flight.connection, flight.call.same_connection());
            let node = &self.quorum.nodes[flight.at];
            if connection.silent_for(now) > SILENCE {
                node.failed("it doesn't answer");
            }
            if is_over {
                let failure = Failure::TimedOut("no answer in time".into());
                node.server
                    .leave(connection, same, &failure, &self.deadline);
            } else {
                node.server.keep_behind(connection, same);
            }
        }
    }
}
