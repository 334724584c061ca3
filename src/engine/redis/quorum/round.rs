//! One round: commands that go out to several servers at once, and their answers.
//!
//! The calling thread writes to all, and reads what comes, until its caller has heard enough. It connects to none: that
//! is done by a thread for each connection that is missing, and the command goes out when it is there. What isn't
//! answered by then is read by whoever uses the connection next; so one server that is slow delays no other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::redis::Value;

use super::nodes::{Arrival, Arrivals, Node, Nodes, SILENCE};
use crate::base::Deadline;
use crate::base::sys::channel::{Receiver, unbounded};
use crate::base::sys::{net, time};
use crate::engine::Failed;
use crate::engine::net::slice;
use crate::engine::redis::connection::{Connection, is_unknown_script};
use crate::engine::redis::failure::Failure;
use crate::engine::redis::script::{Call, Command, SameConnection};
use crate::engine::redis::server::Answer;

/// What one server said.
pub(super) type Said = Result<Answer, Failed<Failure>>;

/// For how long a full buffer may keep the others waiting.
const WRITING: Duration = Duration::from_millis(50);

/// For how long those may take that are still to answer when a majority has.
const LAST: Duration = Duration::from_millis(100);

struct Round<'a> {
    nodes: &'a Nodes,
    calls: &'a [Option<Call<'a>>],
    began: Instant,
    deadline: Deadline,
    flights: Vec<Flight<'a>>,
    /// Connections that are being made.
    arriving: usize,
    arrivals: Option<(Arrivals, Receiver<Arrival>)>,
    /// Which servers may have got a command already, on a connection that failed.
    repeated: u16,
    said: Vec<(usize, Said)>,
}

/// A command on its way.
struct Flight<'a> {
    at: usize,
    call: &'a Call<'a>,
    connection: Connection,
    is_in_full: bool,
}

impl Nodes {
    /// Sends each server its call, the first of them last. `hear` is told what each says, and says itself whether that
    /// is enough.
    pub(super) fn round(
        &self,
        calls: &[Option<Call<'_>>],
        deadline: &Deadline,
        mut hear: impl FnMut(usize, Said) -> bool,
    ) {
        let timeout = self.all[0].server.settings().io_timeout;
        let mut round = Round {
            nodes: self,
            calls,
            began: time::now(),
            deadline: deadline.within(timeout),
            flights: Vec::with_capacity(calls.len()),
            arriving: 0,
            arrivals: None,
            repeated: 0,
            said: Vec::new(),
        };
        for (at, call) in calls.iter().enumerate().rev() {
            if let Some(call) = call {
                round.begin(at, call);
            }
        }
        let (mut heard, mut is_enough, mut is_last_look) = (0, false, false);
        let mut all_of_majority = Some(self.majority());
        loop {
            for (at, said) in round.said.drain(..) {
                heard += usize::from(said.is_ok());
                is_enough |= hear(at, said);
            }
            let is_idle = round.flights.is_empty() && round.arriving == 0;
            if is_enough && round.is_out() || is_idle || is_last_look {
                break;
            }
            if all_of_majority
                .take_if(|majority| heard >= *majority)
                .is_some()
            {
                round.deadline = round.deadline.within(LAST);
            }
            is_last_look = round.deadline.is_over();
            round.look();
        }
        round.end();
    }
}

impl<'a> Round<'a> {
    /// Whether no more has to be sent. What takes something back goes out to all that can be reached, and in full to
    /// those that don't know its script.
    fn is_out(&self) -> bool {
        let mut flights = self.flights.iter();
        let is_known = |flight: &Flight<'_>| {
            flight.is_in_full || self.node(flight.at).has_script(flight.call.script_number())
        };
        !self.takes_back() || self.arriving == 0 && flights.all(is_known)
    }

    fn takes_back(&self) -> bool {
        let mut same = self
            .calls
            .iter()
            .flatten()
            .map(|call| call.same_connection());
        same.any(|same| matches!(same, SameConnection::TakesBack(_)))
    }

    fn node(&self, at: usize) -> &'a Arc<Node> {
        &self.nodes.all[at]
    }

    fn begin(&mut self, at: usize, call: &'a Call<'a>) {
        let node = self.node(at);
        let Some(mut connection) = node.server.usual(call.same_connection(), self.began) else {
            return self.connect(at);
        };
        // Perhaps it has answered, and nobody has read that.
        let is_silent = |connection: &Connection| connection.silent_for(self.began) > SILENCE;
        if is_silent(&connection) && !connection.is_in_step() {
            connection.give_up();
            return self.connect(at);
        }
        if is_silent(&connection) {
            connection.give_up();
            let failure = Failure::TimedOut("it doesn't answer".into());
            node.server.distrust(&failure, self.began, &self.deadline);
            node.failed("it doesn't answer");
            return self.fail(at, failure);
        }
        self.send(at, call, connection);
    }

    fn connect(&mut self, at: usize) {
        let arrivals = match &self.arrivals {
            Some((arrivals, _)) => Ok(arrivals.clone()),
            None => net::Waker::new().map(|waker| {
                let ((to, from), waker) = (unbounded(), Arc::new(waker));
                let arrivals = Arrivals { to, waker };
                self.arrivals = Some((arrivals.clone(), from));
                arrivals
            }),
        };
        let begun = arrivals.map_err(Failure::from);
        match begun.and_then(|arrivals| self.nodes.connect(at, arrivals)) {
            Ok(()) => self.arriving += 1,
            Err(failure) => self.fail(at, failure),
        }
    }

    fn send(&mut self, at: usize, call: &'a Call<'a>, mut connection: Connection) {
        if let Err(failure) = connection.check_vote(call) {
            self.node(at).server.keep(connection);
            return self.fail(at, failure);
        }
        let by = self.deadline.within(WRITING);
        match connection.send(&call.packed(), 1, &by) {
            Ok(()) => self.flights.push(Flight {
                at,
                call,
                connection,
                is_in_full: false,
            }),
            Err(failure) => self.break_off(at, call, connection, failure),
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
            match (made, &self.calls[at]) {
                (Ok(connection), Some(call)) => self.send(at, call, connection),
                (Ok(connection), None) => self.node(at).server.keep(connection),
                (Err(failure), _) => self.fail(at, failure),
            }
        }
        for mut flight in std::mem::take(&mut self.flights) {
            match flight.connection.reply_now() {
                Ok(None) => self.flights.push(flight),
                Ok(Some(value)) => self.answered(flight, value),
                Err(failure) => self.break_off(flight.at, flight.call, flight.connection, failure),
            }
        }
    }

    fn answered(&mut self, mut flight: Flight<'a>, value: Value) {
        let (is_unknown, script) = (is_unknown_script(&value), flight.call.script_number());
        self.node(flight.at).told_script(script, !is_unknown);
        if is_unknown
            && !flight.is_in_full
            && let Some(full) = flight.call.in_full()
        {
            flight.is_in_full = true;
            let by = self.deadline.within(WRITING);
            return match flight.connection.send(&full, 1, &by) {
                Ok(()) => self.flights.push(flight),
                Err(failure) => {
                    self.break_off(flight.at, flight.call, flight.connection, failure);
                }
            };
        }
        let (at, node) = (flight.at, self.node(flight.at));
        let Value::ServerError(error) = value else {
            node.answered();
            node.server.keep(flight.connection);
            let answer = Answer {
                value,
                repeated: self.is_repeated(at),
                moved: false,
                server: node.server.clone(),
                shortfall: None,
            };
            return self.said.push((at, Ok(answer)));
        };
        let failure = Failure::from(error);
        let is_demoted = matches!(failure, Failure::Demoted(_));
        let sent = self.is_repeated(at) || !is_demoted && !failure.is_refusal();
        if is_demoted {
            node.failed(&failure.to_string());
        } else {
            node.server.keep(flight.connection);
        }
        let error = failure.at(&node.server.address());
        self.said.push((at, Err(Failed { error, sent })));
    }

    /// A connection failed. The command goes out once more, on a new one.
    fn break_off(
        &mut self,
        at: usize,
        call: &'a Call<'a>,
        connection: Connection,
        failure: Failure,
    ) {
        connection.give_up();
        let node = self.node(at);
        node.server.distrust(&failure, self.began, &self.deadline);
        let was_repeated = self.is_repeated(at);
        self.repeated |= 1 << at;
        if was_repeated || call.is_once() || !failure.is_of_connection() {
            node.failed(&failure.to_string());
            self.fail(at, failure);
        } else {
            self.connect(at);
        }
    }

    fn is_repeated(&self, at: usize) -> bool {
        self.repeated & (1 << at) != 0
    }

    fn fail(&mut self, at: usize, failure: Failure) {
        let sent = self.is_repeated(at);
        let error = failure.at(&self.node(at).server.address());
        self.said.push((at, Err(Failed { error, sent })));
    }

    /// Leaves what isn't answered. A connection is kept for what its owner sends next, or for anything.
    fn end(self) {
        let (is_over, now) = (self.deadline.is_over(), time::now());
        for flight in self.flights {
            let node = &self.nodes.all[flight.at];
            let same = flight.call.same_connection();
            if flight.connection.silent_for(now) > SILENCE {
                node.failed("it doesn't answer");
            }
            if is_over {
                let failure = Failure::TimedOut("no answer in time".into());
                node.server
                    .leave(flight.connection, same, &failure, &self.deadline);
            } else {
                node.server.keep_behind(flight.connection, same);
            }
        }
    }
}
