//! A question to all servers, and until when their votes are awaited.

use std::sync::Arc;
use std::time::Duration;

use super::node::SILENCE;
use super::shared::Quorum;
use super::votes::{Vote, Votes};
use crate::base::Deadline;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::round::{Arrivals, Members, Round};
use crate::engine::redis::script::{Command, SameConnection};
use crate::engine::redis::server::{Answer, Server};
use crate::engine::{Failed, Gone};

/// For how long those may take that are still to answer when a majority has.
const LAST: Duration = Duration::from_millis(100);

/// For how long those may take that are asked when a majority has answered, and those that are still connected to when
/// something is to be taken back: what isn't keeps others out for a ttl.
const REST: Duration = Duration::from_millis(400);

impl Quorum {
    /// Sends a command to each server that hasn't said anything yet, until the votes are enough. What takes something
    /// back goes out to all that can be reached, also when they are. `meaning` tells an answer's yes or no.
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
        let is_rest = votes.is_majority(votes.answered());
        let io_timeout = self.nodes[0].server.settings().io_timeout;
        let mut until = deadline.within(if is_rest { REST } else { io_timeout });
        let mut round = Round::new(self, call, until.clone());
        servers.into_iter().for_each(|at| round.ask(at));
        let takes_back = matches!(call.same_connection(), SameConnection::TakesBack(_));
        let (mut heard, mut enough, mut is_last_look) = (0, false, false);
        loop {
            while let Some((at, said)) = round.said() {
                self.nodes[at].heard(said.as_ref().err().map(|failed| &failed.error));
                heard += usize::from(said.is_ok());
                votes.has_repeated |= said.as_ref().is_ok_and(|answer| answer.repeated);
                let said = said.map_err(|failed| self.server(at).named(failed));
                votes.said[at] = Some(self.vote(at, said, &meaning));
                enough |= is_enough(votes);
            }
            let is_out = !takes_back || !round.is_connecting();
            if enough && is_out || round.is_over() || is_last_look {
                votes.is_cut_short = is_last_look && !round.is_over();
                return;
            }
            if heard >= self.majority() {
                until = until.within(if is_out { LAST } else { REST });
            }
            is_last_look = until.is_over();
            round.look(&until);
        }
    }

    fn vote<Y>(
        &self,
        at: usize,
        said: Result<Answer, Failed<Failure>>,
        meaning: impl Fn(Answer) -> Result<Result<Y, Gone>, Failure>,
    ) -> Vote<Y> {
        match said.and_then(|answer| meaning(answer).map_err(Failed::sent)) {
            Ok(Ok(yes)) => Vote::Yes(yes),
            Ok(Err(_)) if !self.nodes[at].votes() => Vote::Abstains,
            Ok(Err(no)) => Vote::No(no),
            Err(failed) => Vote::Failed(failed),
        }
    }
}

impl Members for Quorum {
    fn server(&self, at: usize) -> &Arc<Server> {
        &self.nodes[at].server
    }

    fn connect(&self, at: usize, arrivals: Arrivals) -> Result<(), Failure> {
        self.nodes[at].connect(at, (&self.tokens, &self.closed), arrivals)
    }

    fn patience(&self) -> Duration {
        SILENCE
    }

    fn fell_silent(&self, at: usize) {
        self.nodes[at].heard(Some(&Failure::TimedOut("it doesn't answer".into())));
    }
}
