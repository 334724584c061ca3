//! What servers say to one question, and when that is enough.

use super::shared::Quorum;
use crate::base::{Deadline, Error, Key};
use crate::engine::Failed;
use crate::engine::redis::servers::heard::worse;
use crate::engine::redis::{failure::Failure, script::Command, server::Answer as Reply};

/// Which servers say yes, and which say no.
#[derive(Debug)]
pub(super) struct Votes<Y, N> {
    /// How many servers there are.
    pub(super) of: usize,
    pub(super) yes: Vec<(usize, Y)>,
    pub(super) no: Vec<(usize, N)>,
    /// How many say no that were started a short while ago: it may be lost there, and nowhere else.
    pub(super) abstained: usize,
    pub(super) failed: Vec<(usize, Failed<Failure>)>,
    /// Whether the line's server is asked behind the others: an owner that it lets in finds the lock free there.
    pub(super) is_line_last: bool,
}

impl<Y, N> Votes<Y, N> {
    pub(super) fn is_majority(&self, servers: usize) -> bool {
        servers > self.of / 2
    }

    pub(super) fn is_yes(&self) -> bool {
        self.is_majority(self.yes.len())
    }

    pub(super) fn is_no(&self) -> bool {
        self.is_majority(self.no.len())
    }

    pub(super) fn is_decided(&self) -> bool {
        self.is_yes() || self.is_no()
    }

    pub(super) fn answered(&self) -> usize {
        self.yes.len() + self.no.len() + self.abstained
    }

    /// Whether a server has answered or failed. One that abstains isn't the line's.
    pub(super) fn has_heard(&self, server: usize) -> bool {
        let failed = self.failed.iter().any(|(at, _)| *at == server);
        failed || self.yes_of(server).is_some() || self.no.iter().any(|(at, _)| *at == server)
    }

    /// Whether each has answered or failed.
    pub(super) fn is_complete(&self) -> bool {
        self.answered() + self.failed.len() >= self.of
    }

    pub(super) fn yes_of(&self, server: usize) -> Option<&Y> {
        let found = self.yes.iter().find(|(at, _)| *at == server);
        found.map(|(_, yes)| yes)
    }
}

impl Quorum {
    pub(super) fn no_votes<Y, N>(&self) -> Votes<Y, N> {
        Votes {
            of: self.nodes.len(),
            yes: Vec::with_capacity(self.nodes.len()),
            no: Vec::new(),
            abstained: 0,
            failed: Vec::new(),
            is_line_last: false,
        }
    }

    fn order(&self, is_line_last: bool) -> Vec<usize> {
        let line = self.line();
        let mut all: Vec<_> = (0..self.nodes.len()).collect();
        all.sort_by_key(|at| (*at == line) == is_line_last);
        all
    }

    /// Sends each server what `call` has for it, and adds what it says to the votes, until they are enough. `meaning`
    /// tells an answer's yes or no.
    pub(super) fn poll<Y, N, C: Command>(
        &self,
        votes: &mut Votes<Y, N>,
        deadline: &Deadline,
        call: impl Fn(usize) -> Option<C>,
        meaning: impl Fn(Reply) -> Result<Result<Y, N>, Failure>,
        is_enough: impl Fn(&Votes<Y, N>) -> bool,
    ) {
        let calls: Vec<_> = (0..self.nodes.len()).map(call).collect();
        let order = self.order(votes.is_line_last);
        self.round(&calls, order, deadline, |at, said| {
            match said.and_then(|reply| meaning(reply).map_err(Failed::sent)) {
                Ok(Ok(yes)) => votes.yes.push((at, yes)),
                Ok(Err(_)) if !self.nodes[at].votes() => votes.abstained += 1,
                Ok(Err(no)) => votes.no.push((at, no)),
                Err(failed) => votes.failed.push((at, failed)),
            }
            is_enough(votes)
        });
    }

    /// The error of a call that too few servers have answered.
    pub(super) fn too_few<Y, N>(&self, key: Option<&Key>, votes: Votes<Y, N>) -> Error {
        let (answered, all) = (votes.answered(), self.nodes.len());
        let failures = votes.failed.into_iter().map(|(_, failed)| failed.error);
        let why = match failures.fold(None, worse) {
            Some(failure @ (Failure::Denied(_) | Failure::Conflict(_) | Failure::Other(_))) => {
                return self.scripts().error(key, failure);
            }
            Some(failure) => format!(" ({failure})"),
            None => String::new(),
        };
        let cause = format!("{answered} of {all} servers answered, which isn't a majority{why}");
        Error::unavailable(key.map(Key::name), self.scripts().endpoint(), cause)
    }
}
