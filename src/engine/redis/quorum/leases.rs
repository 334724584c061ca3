//! What is done with a lease by a majority. Each change is sent to all servers, and repeated where it has no answer.

use super::{shared::Quorum, votes::Votes};
use crate::base::{Deadline, Ending, Result, Token};
use crate::engine::heartbeat::{Acquired, IfTaken};
use crate::engine::redis::{
    failure::Failure, leases::worst, script::Call, server::Answer as Reply,
};
use crate::engine::{Change, Done, Gone, Outcome, Release, Request};

/// What became of a change.
type Changed = Votes<Done, Gone>;

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
                let keeps = !matches!(change, Change::Release(_));
                if keeps && !votes.is_no() {
                    self.take_again(&mut votes);
                }
                self.outcome(change, votes)
            }
        }
    }

    /// Sends a change to all, until a majority is known to have done it, or can't do it.
    fn changed(self, change: Change<'_>) -> Changed {
        // Those are found that have lost it, and asked again; or that have it now, and are to give it back.
        let is_for_all = matches!(change, Change::Renew | Change::Adopt { .. }) || leaves(change);
        // Without the line's server the lock isn't free.
        let line = matches!(change, Change::Release(_)).then(|| self.quorum.line());
        let call = || self.quorum.scripts().changing(self.request, change);
        self.sent(call, change, |votes| {
            !is_for_all && votes.is_decided() && line.is_none_or(|line| votes.has_heard(line))
        })
    }

    /// Raises the counters of all that have the lease to a token.
    pub(super) fn raise(self, token: Token) -> Changed {
        let call = || Some(self.quorum.scripts().raising(self.request, token));
        self.sent(call, Change::Renew, Votes::is_decided)
    }

    /// Sends all a call whose answer is that of a change.
    fn sent(
        self,
        call: impl Fn() -> Option<Call<'a>>,
        change: Change<'_>,
        is_enough: impl Fn(&Changed) -> bool,
    ) -> Changed {
        let meaning = |reply| match self
            .quorum
            .scripts()
            .outcome(self.request, change, Ok(reply))
        {
            Ok(Outcome::Done(done)) => Ok(Ok(done)),
            Ok(Outcome::Gone(gone)) => Ok(Err(gone)),
            Err(error) => Err(Failure::Other(error.to_string().into())),
        };
        let (quorum, mut votes) = (self.quorum, self.quorum.no_votes());
        votes.is_line_last =
            matches!(change, Change::Release(_)) && quorum.contended.has(self.request.claim);
        quorum.poll(&mut votes, self.deadline, |_| call(), meaning, is_enough);
        votes
    }

    fn outcome(self, change: Change<'_>, votes: Changed) -> Result<Outcome> {
        // It may still have something where there is no answer.
        let is_known = !leaves(change) || votes.is_complete();
        // Where a majority has nothing of it any more it is released.
        let is_released = matches!(change, Change::Release(_))
            && !votes.yes.is_empty()
            && !votes.is_no()
            && votes.is_majority(votes.answered());
        if is_known && (votes.is_yes() || is_released) {
            return Ok(Outcome::DONE);
        }
        if is_known && votes.is_no() {
            let gone = votes.no.into_iter().map(|(_, gone)| gone);
            return worst(gone.map(|gone| Ok(Outcome::Gone(gone))).collect(), change);
        }
        Err(self.quorum.too_few(Some(self.request.key()), votes))
    }

    /// Asks those servers for the lease again that don't have it: one that only just a majority has is lost with one
    /// server more. While it is valid nobody else has had a majority, so what they grant counts.
    fn take_again(self, votes: &mut Changed) {
        if votes.yes.is_empty() {
            return;
        }
        let is_lost = |(_, gone): &mut (usize, Gone)| *gone == Gone::NotOwner;
        let lost: Vec<_> = votes.no.extract_if(.., is_lost).map(|(at, _)| at).collect();
        let (scripts, request) = (self.quorum.scripts(), self.request);
        let call = || scripts.acquisition(request, IfTaken::Leave, request.granted);
        let call = |at| lost.contains(&at).then(call);
        let meaning = |reply: Reply| match scripts.acquired(request, reply.value) {
            Ok(Acquired::Granted { .. }) => Ok(Ok(Done::default())),
            _ => Ok(Err(Gone::NotOwner)),
        };
        (self.quorum).poll(votes, self.deadline, call, meaning, |_| false);
    }

    /// If too few have it to adopt, what was adopted is released as abandoned.
    fn adopt(self, change: Change<'_>, last_used: u64) -> Result<Outcome> {
        let mut votes = self.changed(change);
        let tokens = votes.yes.iter().filter_map(|(_, done)| done.token);
        let largest = tokens.reduce(Token::and);
        if let Some(token) = largest
            && votes.is_yes()
            && self.raise(token).is_yes()
        {
            return Ok(Some(token).into());
        }
        votes.yes.clear();
        let outcome = self.outcome(change, votes)?;
        let last_used = largest.map_or(last_used, |token| token.number);
        let release = Release {
            ending: Ending::Panicked { last_used },
            ..Release::UNKNOWN
        };
        self.changed(Change::Release(release));
        Ok(outcome)
    }

    /// Gives back what the owner may have at servers, and leaves their queues. False if one of them may still get
    /// a copy of that: it didn't answer, or it was sent again.
    pub(super) fn give_back(self, may_have: impl Fn(usize) -> bool) -> bool {
        let (scripts, release) = (self.quorum.scripts(), Change::Release(Release::UNKNOWN));
        let release = || scripts.changing(self.request, release);
        let call = |at| may_have(at).then(release).flatten();
        let meaning = |reply: Reply| Ok(if reply.repeated { Err(()) } else { Ok(()) });
        let (quorum, mut votes) = (self.quorum, self.quorum.no_votes());
        votes.is_line_last = true;
        let asked = (0..quorum.nodes.len()).filter(|at| may_have(*at)).count();
        let is_enough = |votes: &Votes<(), ()>| votes.yes.len() == asked;
        quorum.poll(&mut votes, self.deadline, call, meaning, is_enough);
        is_enough(&votes)
    }
}

/// Whether it is the release of an owner that doesn't know what it has, and where.
fn leaves(change: Change<'_>) -> bool {
    matches!(change, Change::Release(release) if release.ending == Ending::Unknown)
}
