//! What servers say to one question, and when that is enough.

use super::shared::Quorum;
use crate::base::{Error, Key};
use crate::engine::redis::failure::Failure;
use crate::engine::redis::servers::heard::worse;
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
    /// Whether a server that has answered may get another copy of the command.
    pub(super) has_repeated: bool,
    /// Whether time was over before what was awaited came.
    pub(super) is_cut_short: bool,
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

    /// Whether all have answered.
    pub(super) fn all_answered(&self) -> bool {
        self.answered() == self.said.len()
    }

    /// Whether what takes something back may have missed a server.
    pub(super) fn may_have_missed(&self) -> bool {
        let mut said = self.said.iter();
        self.is_cut_short || said.any(|vote| matches!(vote, Some(Vote::Failed(_))))
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
            has_repeated: false,
            is_cut_short: false,
        }
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
                let is_majority = answered >= self.majority();
                let lacks = if is_majority {
                    "without a majority that agrees"
                } else {
                    "which isn't a majority"
                };
                Failure::Closed(
                    format!("{answered} of {all} servers answered, {lacks}{why}").into(),
                )
            }
        };
        self.scripts().error(key, failure)
    }
}
