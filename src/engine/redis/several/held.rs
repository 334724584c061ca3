//! What is done with the leases of several parts. The names of a part are on one slot, those of two parts aren't.
//!
//! Each change is sent to all parts, also behind one that fails, and may be repeated. What is true of one part is true of all:
//! not the owner's, or broken; else an error of one is that of all.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::thread;

use crate::base::claim::Claim;
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::base::name::Key;
use crate::base::sys;
use crate::base::token::{Ending, Token};
use crate::engine::redis::commands::Commands;
use crate::engine::redis::keys::Keys;
use crate::engine::redis::servers::slots::slot_of;
use crate::engine::{Change, Done, Gone, Outcome, Release, Request};

/// The parts of a claim whose names are on several slots, in the order of the slots; else `None`. The errors about a part
/// name the whole.
pub(in crate::engine::redis) fn parts(commands: &Commands, claim: &Claim) -> Option<Vec<Claim>> {
    if !claim.has_many() || !commands.is_cluster() {
        return None;
    }
    let mut slots: BTreeMap<u16, Vec<Key>> = BTreeMap::new();
    for key in claim.keys() {
        let slot = slot_of(&Keys::of(key).lock);
        slots.entry(slot).or_default().push(key.clone());
    }
    let part = |names: Vec<Key>| Claim {
        names: names.into(),
        ..claim.clone()
    };
    (slots.len() > 1).then(|| slots.into_values().map(part).collect())
}

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
            Change::Renew | Change::Verify | Change::Release(_) => {
                worst(self.each_changed(change, deadline), change)
            }
            Change::Adopt { .. } => self.adopt(change, deadline).map(Outcome::from),
            // Several names have no value, and are held exclusively.
            Change::Store(_) | Change::Downgrade { .. } => Ok(Outcome::NOT_OWNER),
            Change::GiveAway => Ok(Outcome::DONE),
        }
    }

    /// Raises the tokens of all parts, and makes their leases last for another ttl.
    pub(super) fn raise(&self, token: Token, deadline: &Deadline) -> Result<Outcome> {
        let raised = self.each(|one| self.commands.raise(one, token, deadline));
        worst(raised, Change::Renew)
    }

    /// Gives the token. If a part isn't the other owner's any more, what was adopted is released as what was abandoned.
    fn adopt(&self, change: Change<'_>, deadline: &Deadline) -> Result<Option<Token>> {
        let adopted = self.each_changed(change, deadline);
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

    fn each_changed(&self, change: Change<'_>, deadline: &Deadline) -> Vec<Result<Outcome>> {
        self.each(|one| self.commands.change_lease(one, change, deadline))
    }

    /// Does something with each part, and gives the answers in their order. All servers are called at the same time, so that
    /// one that doesn't answer keeps the others from nothing, and each by one thread: what an owner sends to a server comes
    /// behind a question of its that is late there.
    fn each(&self, call: impl Fn(Request<'_>) -> Result<Outcome> + Sync) -> Vec<Result<Outcome>> {
        let answers: Vec<_> = self.requests.iter().map(|_| OnceLock::new()).collect();
        let call_those = |which: &[usize]| {
            for at in which {
                answers[*at].get_or_init(|| call(self.requests[*at]));
            }
        };
        let servers = self.by_server();
        thread::scope(|scope| {
            let Some((first, others)) = servers.split_first() else {
                return;
            };
            for which in others {
                if let Err(e) = sys::spawn_scoped("crosslock-parts", scope, || call_those(which)) {
                    log::warn!(
                        "no thread for one of several servers, which is called after the others: {e}"
                    );
                }
            }
            call_those(first);
        });
        let answers = answers.into_iter().zip(&self.requests);
        answers
            .map(|(answer, request)| answer.into_inner().unwrap_or_else(|| call(*request)))
            .collect()
    }

    /// Which parts are for which server, as far as that is known.
    fn by_server(&self) -> Vec<Vec<usize>> {
        let mut servers: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (at, request) in self.requests.iter().enumerate() {
            let first = request.claim.keys().first();
            let server = first.and_then(|key| self.commands.server_of(key));
            let server = server.as_ref().map(Arc::as_ptr);
            servers.entry(server).or_default().push(at);
        }
        servers.into_values().collect()
    }
}

/// The first of the answers that say the most. A lease that is lost is over, whatever the others say; but a release that has no
/// answer is tried again, whatever the others say. Of errors those say more that no waiting mends.
fn worst(answers: Vec<Result<Outcome>>, change: Change<'_>) -> Result<Outcome> {
    let failed = if matches!(change, Change::Release(_)) {
        0
    } else {
        6
    };
    let rank = |answer: &Result<Outcome>| match answer {
        Err(Error::Unavailable { .. }) => failed + 1,
        Err(_) => failed,
        Ok(Outcome::Gone(Gone::Broken)) => 2,
        Ok(Outcome::Gone(Gone::NotOwner)) => 3,
        Ok(Outcome::Gone(Gone::Unclear)) => 4,
        Ok(Outcome::Gone(Gone::Repeated)) => 5,
        Ok(Outcome::Done(_)) => 8,
    };
    let worst = answers.into_iter().min_by_key(rank);
    worst.unwrap_or(Ok(Outcome::DONE))
}
