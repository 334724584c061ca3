//! What is done with a lease by a majority. Each change is sent to all servers, and repeated where it has no answer.

use std::sync::atomic::Ordering;

use super::shared::Quorum;
use super::votes::{Vote, Votes};
use crate::base::{Deadline, Ending, Result, Token};
use crate::engine::heartbeat::{Acquired, IfTaken};
use crate::engine::redis::{
    failure::Failure, leases::worst, script::Call, server::Answer as Reply,
};
use crate::engine::{Change, Done, Gone, Outcome, Release, Request};

/// Where an owner has a lease, with the token if that is told.
pub(super) type Leases = Votes<Option<Token>>;

/// What an owner has, or may have, and by when a change of it is answered.
#[derive(Clone, Copy)]
pub(super) struct Held<'a> {
    pub(super) quorum: &'a Quorum,
    pub(super) request: Request<'a>,
    pub(super) deadline: &'a Deadline,
}

impl<'a> Held<'a> {
    pub(super) fn change(self, change: Change<'_>) -> Result<Outcome> {
        match change {
            Change::Adopt { last_used, .. } => self.adopt(change, last_used),
            // There are no values, and nobody reads.
            Change::Store(_) | Change::Downgrade { .. } => Ok(Outcome::NOT_OWNER),
            Change::GiveAway => Ok(Outcome::DONE),
            Change::Renew | Change::Verify | Change::Release(_) => {
                let mut votes = self.changed(change);
                if is_kept(change) {
                    self.take_again(&mut votes);
                }
                self.outcome(change, votes)
            }
        }
    }

    /// Sends a change to all, until a majority is known to have done it, or can't do it.
    fn changed(self, change: Change<'_>) -> Leases {
        let (mut votes, line) = (self.quorum.no_votes(), self.quorum.line());
        let call = self.sent(change);
        self.send(&mut votes, call, change, |votes| match change {
            Change::Verify => votes.is_decided(),
            // Without the line's server the lock isn't free.
            Change::Release(_) if !leaves(change) => votes.is_decided() && votes.has_heard(line),
            // Those are found that have lost it, and asked again; or that have it now, and are to give it back.
            _ => false,
        });
        votes
    }

    /// Raises the counters of all that have the lease to a token.
    pub(super) fn raise(self, token: Token) -> Leases {
        let mut votes = self.quorum.no_votes();
        let call = self.quorum.scripts().raising(self.request, token);
        self.send(&mut votes, Some(call), Change::Renew, Votes::is_decided);
        votes
    }

    /// Gives back what the owner may have at servers, and leaves their queues. False if one of them may still get
    /// a copy of that: it didn't answer, or it was sent again.
    pub(super) fn give_back(self, may_have: impl Fn(usize) -> bool) -> bool {
        let release = Change::Release(Release::UNKNOWN);
        let call = self.quorum.scripts().changing(self.request, release);
        let mut votes = self.quorum.no_votes();
        for (at, vote) in votes.said.iter_mut().enumerate() {
            *vote = (!may_have(at)).then_some(Vote::No(Gone::NotOwner));
        }
        self.send(&mut votes, call, release, |_| false);
        votes.all_answered() && !votes.has_repeated
    }

    /// Sends a call, whose answer is that of a change, to those servers that haven't said anything yet.
    fn send(
        self,
        votes: &mut Leases,
        call: Option<Call<'_>>,
        change: Change<'_>,
        is_enough: impl Fn(&Leases) -> bool,
    ) {
        let (quorum, request) = (self.quorum, self.request);
        let meaning = |reply| match quorum.scripts().outcome(request, change, Ok(reply)) {
            Ok(Outcome::Done(done)) => Ok(Ok(done.token)),
            Ok(Outcome::Gone(gone)) => Ok(Err(gone)),
            Err(error) => Err(Failure::Other(error.to_string().into())),
        };
        votes.is_line_last =
            matches!(change, Change::Release(_)) && quorum.contended.has(request.claim);
        if let Some(call) = call {
            quorum.poll(votes, &call, self.deadline, meaning, is_enough);
        }
    }

    fn outcome(self, change: Change<'_>, votes: Leases) -> Result<Outcome> {
        // It may still have something where there is no answer.
        let is_known = !leaves(change) || votes.all_answered();
        let (some, is_gone) = (votes.yes().count(), votes.is_no());
        let is_done = match change {
            // Where a majority has nothing of it any more it is released.
            Change::Release(_) => some > 0 && !is_gone && votes.is_majority(votes.answered()),
            _ => votes.is_majority(some),
        };
        if is_known && is_done {
            return Ok(Outcome::Done(Done {
                is_partial: !is_kept(change) && votes.may_have_missed(),
                ..Done::default()
            }));
        }
        if is_known && is_gone {
            let gone = votes.no().map(|gone| Ok(Outcome::Gone(gone)));
            return worst(gone.collect(), change);
        }
        Err(self.quorum.too_few(Some(self.request.key()), votes))
    }

    /// Asks those servers for the lease again that don't have it: one that only just a majority has is lost with one
    /// server more. While it is valid nobody else has had a majority, so what they grant counts.
    fn take_again(self, votes: &mut Leases) {
        let is_lost = |vote: &_| matches!(vote, Some(Vote::No(Gone::NotOwner)));
        let some_have_it = votes.yes().next().is_some() && !votes.is_no();
        // When the deadline is over the lease may have been released.
        if !some_have_it || !votes.said.iter().any(is_lost) || self.deadline.is_over() {
            return;
        }
        votes.forget(is_lost);
        self.ask(votes, self.request.granted, |_| false);
        let tokens = votes.yes().filter_map(|token| *token);
        let again = tokens.map(|token| token.number).max().unwrap_or(0);
        self.quorum.taken_again.fetch_max(again, Ordering::Relaxed);
    }

    /// The call of a change. Servers that granted the lease again have a larger token for it: so they don't compare it,
    /// and a release sets their counters above that.
    fn sent(self, change: Change<'_>) -> Option<Call<'a>> {
        let (mut request, mut change) = (self.request, change);
        match &mut change {
            Change::Release(release) => {
                if let Ending::Clean { last_used } | Ending::Panicked { last_used } =
                    &mut release.ending
                {
                    let again = self.quorum.taken_again.load(Ordering::Relaxed);
                    *last_used = again.max(*last_used);
                }
            }
            Change::Adopt { last_used, .. } => {
                *last_used = (*last_used).max(self.quorum.tokens.now() | 1);
            }
            _ => request.granted = None,
        }
        self.quorum.scripts().changing(request, change)
    }

    /// Asks those servers for the lock that haven't said anything yet. Their tokens are no smaller than `tokens_from`.
    pub(super) fn ask(
        self,
        votes: &mut Leases,
        tokens_from: Option<u64>,
        is_enough: impl Fn(&Leases) -> bool,
    ) {
        let (scripts, request) = (self.quorum.scripts(), self.request);
        let call = scripts.acquisition(request, IfTaken::Leave, tokens_from);
        let meaning = |reply: Reply| match scripts.acquired(request, reply.value) {
            Ok(Acquired::Granted { token, .. }) => Ok(Ok(Some(token))),
            Ok(Acquired::Taken(_)) => Ok(Err(Gone::NotOwner)),
            Ok(Acquired::Broken) => Ok(Err(Gone::Broken)),
            Err(strange) => Err(Failure::Other(strange.error.to_string().into())),
        };
        (self.quorum).poll(votes, &call, self.deadline, meaning, is_enough);
    }

    /// If too few have it to adopt, what was adopted is released as abandoned.
    fn adopt(self, change: Change<'_>, last_used: u64) -> Result<Outcome> {
        let mut votes = self.changed(change);
        let largest = votes.yes().filter_map(|token| *token).reduce(Token::and);
        if let Some(token) = largest
            && votes.is_yes()
            && self.raise(token).is_yes()
        {
            return Ok(Some(token).into());
        }
        votes.forget(|vote| matches!(vote, Some(Vote::Yes(_))));
        let outcome = self.outcome(change, votes)?;
        let last_used = largest.map_or(last_used, |token| token.number);
        let release = Release::abandoned(last_used);
        self.changed(Change::Release(release));
        Ok(outcome)
    }
}

/// Whether the owner goes on with the lease.
fn is_kept(change: Change<'_>) -> bool {
    !matches!(change, Change::Release(_))
}

/// Whether it is the release of an owner that doesn't know what it has, and where.
fn leaves(change: Change<'_>) -> bool {
    matches!(change, Change::Release(release) if release.ending == Ending::Unknown)
}
