//! What is done with a lease by a majority. Each change is sent to all servers, and repeated where it has no answer.

use super::{round::Said, shared::Quorum};
use crate::base::{Deadline, Ending, Result, Token};
use crate::engine::heartbeat::{Acquired, IfTaken};
use crate::engine::redis::server::Answer as Reply;
use crate::engine::redis::{failure::Failure, leases::worst, script::Call};
use crate::engine::{Change, Done, Gone, Outcome, Release, Request};

/// What became of a change at each of the servers that have answered.
#[derive(Default)]
pub(super) struct Votes {
    done: Vec<(usize, Done)>,
    gone: Vec<(usize, Gone)>,
    /// How many don't have it, which were started a short while ago: it may be lost there, and nowhere else.
    abstained: usize,
    /// How many have failed, and why the first of them.
    failures: usize,
    failed: Option<Failure>,
}

impl Votes {
    fn fail(&mut self, failure: Failure) {
        self.failures += 1;
        self.failed.get_or_insert(failure);
    }

    fn answered(&self) -> usize {
        self.done.len() + self.gone.len() + self.abstained
    }
}

impl Quorum {
    pub(super) fn change(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        match change {
            Change::Adopt { last_used, .. } => self.adopt(request, change, last_used, deadline),
            // There are no values, and nobody reads.
            Change::Store(_) | Change::Downgrade { .. } => Ok(Outcome::NOT_OWNER),
            Change::GiveAway => Ok(Outcome::DONE),
            Change::Renew | Change::Verify | Change::Release(_) => {
                let all = 0..self.nodes.all.len();
                let mut votes = self.votes(request, change, all, deadline);
                let keeps = matches!(change, Change::Renew | Change::Verify);
                if keeps && votes.gone.len() <= self.nodes.minority() {
                    self.take_again(request, &mut votes, deadline);
                }
                self.outcome(request, change, votes)
            }
        }
    }

    /// Sends a change to some servers, until a majority of all is known to have done it, or can't do it.
    fn votes(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        servers: impl IntoIterator<Item = usize>,
        deadline: &Deadline,
    ) -> Votes {
        let (scripts, mut calls) = (self.scripts(), self.no_calls());
        for at in servers {
            calls[at] = scripts.changing(request, change);
        }
        let meaning = |answer| scripts.outcome(request, change, Ok(answer));
        // Those are found that have lost it, and asked again; or that have it now, and are to give it back.
        let is_for_all = matches!(change, Change::Renew | Change::Adopt { .. });
        let waits_for_all = leaves(change) || is_for_all;
        self.count(&calls, waits_for_all, deadline, meaning)
    }

    fn no_calls<'a>(&self) -> Vec<Option<Call<'a>>> {
        self.nodes.all.iter().map(|_| None).collect()
    }

    /// Counts what each says, until a majority of all servers has said yes, or can't any more.
    fn count(
        &self,
        calls: &[Option<Call<'_>>],
        waits_for_all: bool,
        deadline: &Deadline,
        meaning: impl Fn(Reply) -> Result<Outcome>,
    ) -> Votes {
        let (majority, minority) = (self.nodes.majority(), self.nodes.minority());
        let mut votes = Votes::default();
        self.nodes.round(calls, deadline, |at, said: Said| {
            match said.map(&meaning) {
                Ok(Ok(Outcome::Done(done))) => votes.done.push((at, done)),
                Ok(Ok(Outcome::Gone(_))) if !self.nodes.all[at].votes() => votes.abstained += 1,
                Ok(Ok(Outcome::Gone(gone))) => votes.gone.push((at, gone)),
                Ok(Err(error)) => votes.fail(Failure::Other(error.to_string().into())),
                Err(failed) => votes.fail(failed.error),
            }
            !waits_for_all && (votes.done.len() >= majority || votes.gone.len() > minority)
        });
        votes
    }

    fn outcome(&self, request: Request<'_>, change: Change<'_>, votes: Votes) -> Result<Outcome> {
        let (majority, minority) = (self.nodes.majority(), self.nodes.minority());
        let answered = votes.answered();
        if leaves(change) && answered + votes.failures < self.nodes.all.len() {
            // It may still have something there.
            return Err(self.too_few(request.key(), answered, votes.failed));
        }
        // Where a majority has nothing of it any more it is released.
        let is_released = matches!(change, Change::Release(_)) && !votes.done.is_empty();
        if votes.done.len() >= majority {
            return Ok(Outcome::DONE);
        }
        if votes.gone.len() > minority {
            let gone = votes
                .gone
                .into_iter()
                .map(|(_, gone)| Ok(Outcome::Gone(gone)));
            return worst(gone.collect(), change);
        }
        if is_released && answered >= majority {
            return Ok(Outcome::DONE);
        }
        Err(self.too_few(request.key(), answered, votes.failed))
    }

    /// Asks those servers for the lease again that don't have it: one that only just a majority has is lost with one
    /// server more. While it is valid nobody else has had a majority, so what they grant counts.
    fn take_again(&self, request: Request<'_>, votes: &mut Votes, deadline: &Deadline) {
        let (scripts, mut calls) = (self.scripts(), self.no_calls());
        for (at, gone) in &votes.gone {
            if *gone == Gone::NotOwner && !votes.done.is_empty() {
                let call = scripts.acquisition(request, IfTaken::Leave, request.granted);
                calls[*at] = Some(call);
            }
        }
        if calls.iter().all(Option::is_none) {
            return;
        }
        self.nodes.round(&calls, deadline, |at, said| {
            let acquired = said.map(|answer| scripts.acquired(request, answer.value));
            if let Ok(Ok(Acquired::Granted { .. })) = acquired {
                votes.gone.retain(|(other, _)| *other != at);
                votes.done.push((at, Done::default()));
            }
            false
        });
    }

    /// Raises the counters of these servers to a token. Says of how many they have it now.
    pub(super) fn raise(
        &self,
        request: Request<'_>,
        token: Token,
        servers: impl IntoIterator<Item = usize>,
        deadline: &Deadline,
    ) -> (usize, Option<Gone>) {
        let (scripts, mut calls) = (self.scripts(), self.no_calls());
        for at in servers {
            calls[at] = Some(scripts.raising(request, token));
        }
        let votes = self.count(&calls, false, deadline, |answer| {
            scripts.outcome(request, Change::Renew, Ok(answer))
        });
        let broken = votes.gone.into_iter().map(|(_, gone)| gone);
        (
            votes.done.len(),
            broken.into_iter().find(|gone| *gone == Gone::Broken),
        )
    }

    /// If too few have it to adopt, what was adopted is released as abandoned.
    fn adopt(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        last_used: u64,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let all = 0..self.nodes.all.len();
        let votes = self.votes(request, change, all, deadline);
        let tokens: Vec<_> = votes
            .done
            .iter()
            .filter_map(|(at, done)| Some((*at, done.token?)))
            .collect();
        let largest = tokens.iter().map(|(_, token)| *token).reduce(Token::and);
        if let Some(token) = largest.filter(|_| tokens.len() >= self.nodes.majority()) {
            let others = tokens.iter().filter(|(_, its)| *its != token);
            let others: Vec<_> = others.map(|(at, _)| *at).collect();
            let have = tokens.len() - others.len();
            if have + self.raise(request, token, others, deadline).0 >= self.nodes.majority() {
                return Ok(Some(token).into());
            }
        }
        let outcome = self.outcome(
            request,
            change,
            Votes {
                done: Vec::new(),
                ..votes
            },
        )?;
        let last_used = largest.map_or(last_used, |token| token.number);
        let release = Release {
            ending: Ending::Panicked { last_used },
            ..Release::UNKNOWN
        };
        let adopted = tokens.iter().map(|(at, _)| *at);
        self.votes(request, Change::Release(release), adopted, deadline);
        Ok(outcome)
    }

    /// Gives back what an owner may have at these servers, and leaves their queues. Says which of them may still get a
    /// copy of that: they didn't answer, or it was sent again.
    pub(super) fn give_back(
        &self,
        request: Request<'_>,
        servers: impl IntoIterator<Item = usize>,
        deadline: &Deadline,
    ) -> u16 {
        let (scripts, mut calls, mut silent) = (self.scripts(), self.no_calls(), 0);
        for at in servers {
            calls[at] = scripts.changing(request, Change::Release(Release::UNKNOWN));
            silent |= 1 << at;
        }
        self.nodes.round(&calls, deadline, |at, said| {
            if said.is_ok_and(|answer| !answer.repeated) {
                silent &= !(1 << at);
            }
            silent == 0
        });
        silent
    }
}

/// Whether it is the release of an owner that doesn't know what it has, and where.
fn leaves(change: Change<'_>) -> bool {
    matches!(change, Change::Release(release) if release.ending == Ending::Unknown)
}
