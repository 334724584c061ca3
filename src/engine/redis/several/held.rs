//! What is done with the leases of several parts.
//!
//! Each is sent to all parts, also behind one that fails, and may be repeated. What is true of one part is true of all: not the
//! owner's, or broken; else an error of one is that of all.

use crate::base::claim::Claim;
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::base::token::{Ending, Token};
use crate::engine::redis::commands::Commands;
use crate::engine::{Change, Done, Gone, Outcome, Release, Request};

/// A lease, and its parts.
pub(in crate::engine::redis) struct Held<'a> {
    commands: &'a Commands,
    requests: Vec<Request<'a>>,
}

impl<'a> Held<'a> {
    pub(in crate::engine::redis) fn new(
        commands: &'a Commands,
        request: Request<'a>,
        parts: &'a [Claim],
    ) -> Self {
        let request_of = |claim| Request { claim, ..request };
        Held {
            commands,
            requests: parts.iter().map(request_of).collect(),
        }
    }

    pub(in crate::engine::redis) fn change(
        &self,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        match change {
            Change::Renew | Change::Verify => all_kept(self.each(change, deadline)),
            Change::Release(_) => all_released(self.each(change, deadline)),
            Change::Adopt { .. } => self.adopt(change, deadline).map(Outcome::from),
            // Several names have no value, and are held exclusively.
            Change::Store(_) | Change::Downgrade { .. } => Ok(Outcome::NOT_OWNER),
            Change::GiveAway => Ok(Outcome::DONE),
        }
    }

    /// Raises the tokens of all parts, and makes their leases last for another ttl.
    pub(super) fn raise(&self, token: Token, deadline: &Deadline) -> Result<Outcome> {
        let commands = self.commands;
        all_kept(commands.each(&self.requests, |one| commands.raise(one, token, deadline)))
    }

    /// Gives the token. If a part isn't the other owner's any more, what was adopted is released as what was abandoned.
    fn adopt(&self, change: Change<'_>, deadline: &Deadline) -> Result<Option<Token>> {
        let adopted = self.each(change, deadline);
        let adopted = adopted.into_iter().collect::<Result<Vec<_>>>()?;
        let tokens = adopted.iter().filter_map(|outcome| match outcome {
            Outcome::Done(Done { token, .. }) => *token,
            Outcome::Gone(_) => None,
        });
        let Some(token) = tokens.reduce(Token::and) else {
            return Ok(None);
        };
        if adopted.iter().all(Outcome::is_done) && self.raise(token, deadline)?.is_done() {
            return Ok(Some(token));
        }
        let release = Change::Release(Release {
            ending: Ending::Panicked {
                last_used: token.number,
            },
            ..Release::UNKNOWN
        });
        if let Err(e) = self.change(release, deadline) {
            log::warn!("what was passed on of a lost lease stays taken for its ttl: {e}");
        }
        Ok(None)
    }

    fn each(&self, change: Change<'_>, deadline: &Deadline) -> Vec<Result<Outcome>> {
        let commands = self.commands;
        commands.each(&self.requests, |one| {
            commands.change_lease(one, change, deadline)
        })
    }
}

/// A lease that is lost is over, whatever the others say.
fn all_kept(answers: Vec<Result<Outcome>>) -> Result<Outcome> {
    let of_one = |gone: Gone| {
        answers
            .iter()
            .flatten()
            .any(|one| *one == Outcome::Gone(gone))
    };
    let lost = [Gone::Broken, Gone::NotOwner]
        .into_iter()
        .find(|gone| of_one(*gone));
    lost.map_or_else(
        || all(answers).map(|_| Outcome::DONE),
        |lost| Ok(Outcome::Gone(lost)),
    )
}

/// A release that has no answer is tried again, whatever the others say.
fn all_released(answers: Vec<Result<Outcome>>) -> Result<Outcome> {
    let all = all(answers)?;
    let of_one = |gone: &Gone| all.contains(&Outcome::Gone(*gone));
    let worst = [Gone::Broken, Gone::NotOwner, Gone::Unclear, Gone::Repeated];
    let worst = worst.into_iter().find(of_one);
    Ok(worst.map_or(Outcome::DONE, Outcome::Gone))
}

/// The answers, or an error: rather one that no waiting mends.
fn all(answers: Vec<Result<Outcome>>) -> Result<Vec<Outcome>> {
    let passes = |answer: &Result<_>| matches!(answer, Err(Error::Unavailable { .. }));
    let mut answers = answers;
    answers.sort_by_key(|answer| passes(answer));
    answers.into_iter().collect()
}
