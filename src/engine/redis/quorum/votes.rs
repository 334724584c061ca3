//! A question to servers, what they say to it, and when that is enough.

use super::round::Said;
use super::shared::Quorum;
use crate::base::{Deadline, Error, Key};
use crate::engine::redis::servers::heard::worse;
use crate::engine::redis::{failure::Failure, script::Command, server::Answer as Reply};
use crate::engine::{Failed, Gone};

/// What one server says.
#[derive(Debug)]
pub(super) enum Vote<Y> {
    Yes(Y),
    No(Gone),
    /// It says no, but was started a short while ago: it may be lost there, and nowhere else.
    Abstains,
    Failed(Failed<Failure>),
}

/// What the servers say, in the order of the URL.
#[derive(Debug)]
pub(super) struct Votes<Y> {
    /// `None`: nothing yet.
    pub(super) said: Vec<Option<Vote<Y>>>,
    /// Whether the line's server is asked behind the others: an owner that it lets in finds the lock free there.
    pub(super) is_line_last: bool,
}

impl<Y> Votes<Y> {
    pub(super) fn is_majority(&self, servers: usize) -> bool {
        servers > self.said.len() / 2
    }

    pub(super) fn yes(&self) -> impl Iterator<Item = &Y> {
        self.said.iter().filter_map(|vote| match vote {
            Some(Vote::Yes(yes)) => Some(yes),
            _ => None,
        })
    }

    pub(super) fn no(&self) -> impl Iterator<Item = Gone> {
        self.said.iter().filter_map(|vote| match vote {
            Some(Vote::No(no)) => Some(*no),
            _ => None,
        })
    }

    pub(super) fn is_yes(&self) -> bool {
        self.is_majority(self.yes().count())
    }

    pub(super) fn is_no(&self) -> bool {
        self.is_majority(self.no().count())
    }

    pub(super) fn is_decided(&self) -> bool {
        self.is_yes() || self.is_no()
    }

    /// Whether a server has answered or failed.
    pub(super) fn has_heard(&self, server: usize) -> bool {
        self.said[server].is_some()
    }

    /// How many have answered, whatever that is.
    pub(super) fn answered(&self) -> usize {
        let all = self.said.iter().flatten();
        all.filter(|vote| !matches!(vote, Vote::Failed(_))).count()
    }

    /// Those are asked again whose votes these are.
    pub(super) fn forget(&mut self, those: impl Fn(&Option<Vote<Y>>) -> bool) {
        for vote in self.said.iter_mut().filter(|vote| those(vote)) {
            *vote = None;
        }
    }

    /// Whether each has answered or failed.
    pub(super) fn is_complete(&self) -> bool {
        self.said.iter().all(Option::is_some)
    }
}

impl Quorum {
    pub(super) fn no_votes<Y>(&self) -> Votes<Y> {
        Votes {
            said: self.nodes.iter().map(|_| None).collect(),
            is_line_last: false,
        }
    }

    /// Sends a command to each server that hasn't said anything yet, until the votes are enough. `meaning` tells an
    /// answer's yes or no.
    pub(super) fn poll<Y>(
        &self,
        votes: &mut Votes<Y>,
        call: &dyn Command,
        deadline: &Deadline,
        meaning: impl Fn(Reply) -> Result<Result<Y, Gone>, Failure>,
        is_enough: impl Fn(&Votes<Y>) -> bool,
    ) {
        let line = self.line();
        let mut servers: Vec<_> = (0..self.nodes.len()).collect();
        servers.retain(|at| votes.said[*at].is_none());
        servers.sort_by_key(|at| (*at == line) == votes.is_line_last);
        let mut hear = |at: usize, said: Said| {
            let meant = said.and_then(|reply| meaning(reply).map_err(Failed::sent));
            votes.said[at] = Some(match meant {
                Ok(Ok(yes)) => Vote::Yes(yes),
                Ok(Err(_)) if !self.nodes[at].votes() => Vote::Abstains,
                Ok(Err(no)) => Vote::No(no),
                Err(failed) => Vote::Failed(failed),
            });
            is_enough(votes)
        };
        self.round(call, servers, deadline, &mut hear);
    }

    /// The error of a call that too few servers have answered.
    pub(super) fn too_few<Y>(&self, key: Option<&Key>, votes: Votes<Y>) -> Error {
        let (answered, all) = (votes.answered(), self.nodes.len());
        let failures = votes.said.into_iter().filter_map(|vote| match vote {
            Some(Vote::Failed(failed)) => Some(failed.error),
            _ => None,
        });
        let failure = match failures.fold(None, worse) {
            Some(failure @ (Failure::Denied(_) | Failure::Conflict(_) | Failure::Other(_))) => {
                failure
            }
            passing => {
                let why = passing.map_or_else(String::new, |failure| format!(" ({failure})"));
                let answered = format!("{answered} of {all} servers answered");
                Failure::Closed(format!("{answered}, which isn't a majority{why}").into())
            }
        };
        self.scripts().error(key, failure)
    }
}
