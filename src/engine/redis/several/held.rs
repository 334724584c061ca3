//! What is done with a lease of several parts.
//!
//! Each is sent to all parts, also behind one that fails, and may be repeated. What is true of one part is true of the lease:
//! not the owner's, or broken; else an error of one is that of all.

use crate::base::claim::Claim;
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::base::owner::Owner;
use crate::base::token::{Ending, Token};
use crate::engine::redis::commands::Commands;
use crate::engine::{Change, Gone, Outcome, Release, Request};

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
            Change::Renew => self.renew(deadline),
            Change::Verify => self.is_owner(deadline),
            Change::Release(release) => self.release(release, deadline),
            Change::Adopt { from, last_used } => {
                self.adopt(from, last_used, deadline).map(Outcome::from)
            }
            // Several names have no value, and are held exclusively.
            Change::Store(_) | Change::Downgrade { .. } => Ok(Outcome::NOT_OWNER),
            Change::GiveAway => Ok(Outcome::DONE),
        }
    }

    pub(in crate::engine::redis) fn renew(&self, deadline: &Deadline) -> Result<Outcome> {
        renewed(self.commands.renew_all(&self.requests, deadline))
    }

    pub(in crate::engine::redis) fn is_owner(&self, deadline: &Deadline) -> Result<Outcome> {
        if self.commands.asks_replicas() {
            // As for one name: only what was written can be confirmed.
            return self.renew(deadline);
        }
        renewed(self.commands.are_owner(&self.requests, deadline))
    }

    pub(in crate::engine::redis) fn release(
        &self,
        release: Release<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let answers = self.commands.release_all(&self.requests, release, deadline);
        let all = answers.into_iter().collect::<Result<Vec<_>>>()?;
        let of_one = |released: Gone| all.contains(&Outcome::Gone(released)).then_some(released);
        let worst = [Gone::Broken, Gone::NotOwner, Gone::Unclear];
        let worst = worst.into_iter().find_map(of_one);
        Ok(worst.map_or(Outcome::DONE, Outcome::Gone))
    }

    /// Gives the token. If a part isn't the other owner's any more, what was adopted is released as what was abandoned.
    pub(in crate::engine::redis) fn adopt(
        &self,
        from: &Owner,
        last_used: u64,
        deadline: &Deadline,
    ) -> Result<Option<Token>> {
        let adopted = self
            .commands
            .adopt_all(&self.requests, from, last_used, deadline);
        let tokens = adopted.into_iter().collect::<Result<Vec<_>>>()?;
        let token = tokens.iter().copied().flatten().reduce(Token::and);
        let Some(token) = token else {
            return Ok(None);
        };
        if tokens.iter().all(Option::is_some) {
            let raised = self.commands.raise_all(&self.requests, token, deadline);
            if renewed(raised)?.is_done() {
                return Ok(Some(token));
            }
        }
        let release = Release {
            ending: Ending::Panicked {
                last_used: token.number,
            },
            ..Release::UNKNOWN
        };
        if let Err(e) = self.release(release, deadline) {
            log::warn!("what was passed on of a lost lease stays taken for its ttl: {e}");
        }
        Ok(None)
    }
}

fn renewed(answers: Vec<Result<Outcome>>) -> Result<Outcome> {
    let of_one = |lost: Gone| {
        let mut all = answers.iter();
        all.any(|one| matches!(one, Ok(one) if *one == Outcome::Gone(lost)))
            .then_some(lost)
    };
    let lost = [Gone::Broken, Gone::NotOwner].into_iter().find_map(of_one);
    match lost {
        Some(lost) => Ok(Outcome::Gone(lost)),
        None => answers
            .into_iter()
            .collect::<Result<Vec<_>>>()
            .map(|_| Outcome::DONE),
    }
}
