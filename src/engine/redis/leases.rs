//! What is done with a lease, and what became of it: whether it is still its owner's, and how it lasts, ends or passes
//! on.
//!
//! The names of a lease may be on several slots of a cluster. Those of one slot are a part. Each change is sent to all
//! parts, also behind one that fails, and may be repeated. What is true of one part is true of all: not the owner's, or
//! broken; else an error of one is that of all.

use std::sync::{Arc, OnceLock};
use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use super::keys::{Keys, slot_of};
use super::lock_scripts::{LockScripts, millis, mode, number};
use super::script::{Call, Needs, SameConnection};
use super::{reply::check_length, server::Answer};
use crate::base::{Claim, Deadline, Ending, Error, Key, Mode, Result, Token, sys};
use crate::engine::{Change, Done, Failed, Gone, Outcome, Release, Request};

const RENEW: [&str; 2] = ["lock/renew", "all/renew"];
const RELEASE: [&str; 2] = ["lock/release", "all/release"];
const ADOPT: [&str; 2] = ["lock/adopt", "all/adopt"];
/// Those of a task are beside its queue's.
const RENEW_TASK: [&str; 2] = ["task/renew"; 2];
const END_TASK: [&str; 2] = ["task/finish"; 2];
/// Only a single name can be held to read. A part is raised by the script for several names.
const DOWNGRADE: [&str; 2] = ["lock/downgrade"; 2];
const RAISE: [&str; 2] = ["all/raise"; 2];

impl LockScripts {
    /// Changes a lease whose names are on one slot.
    pub(super) fn change_lease(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        // A master that was replaced, and doesn't know it, says yes to a mere look: only what was written can be
        // confirmed.
        let change = match change {
            Change::Verify if self.asks_replicas() => Change::Renew,
            change => change,
        };
        check_length(request.key().name(), value_of(change))?;
        if let Change::Release(release) = change
            && let Some(next) = release.next
        {
            return self.end_and_take(request, release, next, deadline);
        }
        let Some(call) = self.changing(request, change) else {
            return Ok(Outcome::DONE);
        };
        self.outcome(request, change, self.send(request, &call, deadline))
    }

    /// Raises the token of a part, and makes its lease last for another ttl.
    pub(super) fn raise(
        &self,
        request: Request<'_>,
        token: Token,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let call = self.raising(request, token);
        self.outcome(request, Change::Renew, self.send(request, &call, deadline))
    }

    pub(super) fn raising<'a>(&'a self, request: Request<'a>, token: Token) -> Call<'a> {
        let (ttl, token) = (millis(request.ttl), token.number.to_string());
        let needs = Needs {
            replicas: true,
            ..Needs::default()
        };
        let arguments = [Some(ttl.as_bytes()), Some(token.as_bytes())];
        self.call_for(request, RAISE, needs, &arguments)
    }

    /// What is sent; `None` where nothing has to be done.
    pub(super) fn changing<'a>(
        &'a self,
        request: Request<'a>,
        change: Change<'_>,
    ) -> Option<Call<'a>> {
        let (ttl, mode) = (millis(request.ttl), mode(request.claim, false));
        let (value, granted) = (
            value_of(change),
            request.granted.map(|token| token.to_string()),
        );
        let (script, first, second, third, last) = match change {
            Change::Renew | Change::Store(_) => (RENEW, ttl, mode, value, granted),
            Change::Verify => (RENEW, "0".to_owned(), mode, None, granted),
            Change::Release(Release { ending, keep, .. }) => {
                (RELEASE, counter_after(ending), mode, value, kept_for(keep))
            }
            Change::Downgrade { last_used, .. } => {
                let counter = counter_after(Ending::Clean { last_used });
                (DOWNGRADE, counter, Cow::from(ttl), value, None)
            }
            Change::Adopt { from, last_used } => {
                let counter = counter_after(Ending::Clean { last_used });
                let from = Some(from.as_str().as_bytes());
                (ADOPT, ttl, mode, from, Some(counter))
            }
            Change::GiveAway => return None,
        };
        let script = match (request.claim.mode, script) {
            (Mode::Task, RENEW) => RENEW_TASK,
            (Mode::Task, RELEASE) => END_TASK,
            (_, script) => script,
        };
        let arguments = [
            Some(first.as_bytes()),
            Some(second.as_bytes()),
            third,
            last.as_deref().map(str::as_bytes),
        ];
        Some(self.call_for(request, script, needs_of(request, change), &arguments))
    }

    /// What an answer means, by the table of [`lock_scripts`](super::lock_scripts). What too few replicas
    /// have may be lost.
    pub(super) fn outcome(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        answer: Result<Answer, Failed>,
    ) -> Result<Outcome> {
        let answer = match answer {
            Ok(answer) => answer,
            // Whatever stands there now, it isn't the owner's.
            Err(Failed {
                error: Error::Conflict { .. },
                ..
            }) => return Ok(Outcome::NOT_OWNER),
            Err(e) => return Err(e.error),
        };
        let key = request.key();
        let gives_token = matches!(change, Change::Adopt { .. } | Change::Downgrade { .. });
        let may_have_value = matches!(change, Change::Adopt { .. });
        let number = number(answer.value).filter(|(_, value)| may_have_value || value.is_none());
        let (number, value) = number.ok_or_else(|| self.surprised(key))?;
        let is_done = number == 1 || (gives_token && number > 0);
        if let Some(shortfall) = answer.shortfall.filter(|_| is_done) {
            return Err(self.unconfirmed(key, shortfall));
        }
        let may_lose_value = answer.repeated && value_of(change).is_some();
        if let Change::Release(_) = change
            && may_lose_value
            && let Some(cause) = self.lost_value(number, answer.moved)
        {
            return Err(self.unavailable(key, cause));
        }
        Ok(match (change, number) {
            (_, 0) => Outcome::NOT_OWNER,
            (Change::Adopt { .. } | Change::Downgrade { .. }, token) => {
                Some((Token::from_number(token), value)).into()
            }
            (Change::Store(_), 1) if answer.repeated => Outcome::DONE_AGAIN,
            (_, 1) => Outcome::DONE,
            (Change::Release(_), 2) if answer.repeated => Outcome::Gone(Gone::Unclear),
            (Change::Release(_), 3) | (Change::Renew | Change::Verify, 2) => Outcome::BROKEN,
            _ => Outcome::NOT_OWNER,
        })
    }

    /// Why it isn't known whether the value of a release is stored whose first answer was lost.
    fn lost_value(&self, number: u64, moved: bool) -> Option<&'static str> {
        match number {
            // The second copy wrote nothing: what replicas have of that is no proof that they have the value.
            1 | 2 if self.asks_replicas() => {
                Some("no answer shows whether replicas have the value")
            }
            // It may not have had the lease, and then it isn't the first copy that has ended it there.
            2 if moved => Some("the answer of a server that was replaced was lost"),
            _ => None,
        }
    }
}

fn needs_of<'a>(request: Request<'a>, change: Change<'_>) -> Needs<'a> {
    let (owner, has_value) = (request.owner.as_str(), value_of(change).is_some());
    let needs = Needs {
        value: has_value,
        replicas: true,
        ..Needs::default()
    };
    match change {
        Change::Renew | Change::Verify | Change::Store(_) => Needs {
            lease_only: true,
            ..needs
        },
        Change::Release(_) => Needs {
            replicas: has_value,
            same_connection: SameConnection::TakesBack(owner),
            ..needs
        },
        Change::Adopt { .. } => Needs {
            value: request.claim.has_value,
            same_connection: SameConnection::Asks(owner),
            ..needs
        },
        Change::Downgrade { .. } | Change::GiveAway => needs,
    }
}

/// The value that is stored with a change.
fn value_of(change: Change<'_>) -> Option<&[u8]> {
    match change {
        Change::Store(value) => Some(value),
        Change::Release(release) => release.value,
        Change::Downgrade { value, .. } => value,
        Change::Renew | Change::Verify | Change::Adopt { .. } | Change::GiveAway => None,
    }
}

/// For how long a lock stays taken; `None` where it is free at once. The server counts whole milliseconds from the
/// beginning of one.
fn kept_for(keep: Duration) -> Option<String> {
    let keep = (!keep.is_zero()).then_some(keep)?;
    Some(millis(keep.saturating_add(Duration::from_nanos(1_999_999))))
}

/// What the counter becomes; 0 if the owner doesn't know whether it was granted a token.
pub(super) fn counter_after(ending: Ending) -> String {
    ending.counter().unwrap_or(0).to_string()
}

/// The parts of a claim whose names are on several slots, in the order of the slots, or the shards of a queue; else
/// `None`. The errors about a
/// part name the whole.
pub(super) fn parts(scripts: &LockScripts, claim: &Claim) -> Option<Vec<Claim>> {
    if !claim.is_multi() || !scripts.is_cluster() {
        return None;
    }
    if claim.mode == Mode::Task {
        let shards = claim.keys().iter();
        return Some(shards.map(|key| claim.of_shard(key.clone())).collect());
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
pub(super) struct Held<'a> {
    scripts: &'a LockScripts,
    requests: Vec<Request<'a>>,
}

impl<'a> Held<'a> {
    pub(super) fn new(scripts: &'a LockScripts, request: Request<'a>, parts: &'a [Claim]) -> Self {
        let request_of = |claim| Request { claim, ..request };
        Held {
            scripts,
            requests: parts.iter().map(request_of).collect(),
        }
    }

    pub(super) fn change(&self, change: Change<'_>, deadline: &Deadline) -> Result<Outcome> {
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
        let raised = self.each(|one| self.scripts.raise(one, token, deadline));
        worst(raised, Change::Renew)
    }

    /// Returns the token. If a part isn't the other owner's any more, the adopted parts are released as abandoned ones.
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
        let release = Change::Release(Release::abandoned(token.number));
        if let Err(e) = self.change(release, deadline) {
            log::warn!("a lock that was handed over stays taken until its lease ends: {e}");
        }
        Ok(None)
    }

    fn each_changed(&self, change: Change<'_>, deadline: &Deadline) -> Vec<Result<Outcome>> {
        self.each(|one| self.scripts.change_lease(one, change, deadline))
    }

    /// Calls for each part, and returns the answers in the order of parts. All servers are called at the same time, so
    /// a server that doesn't answer delays no other. One thread calls one server, because what an owner sends there has
    /// to come behind its late question.
    fn each(&self, call: impl Fn(Request<'_>) -> Result<Outcome> + Sync) -> Vec<Result<Outcome>> {
        let answers: Vec<_> = self.requests.iter().map(|_| OnceLock::new()).collect();
        let call_those = |which: &[usize]| {
            for at in which {
                answers[*at].get_or_init(|| call(self.requests[*at]));
            }
        };
        let servers = self.by_server();
        sys::scope(|scope| {
            let Some((first, others)) = servers.split_first() else {
                return;
            };
            for which in others {
                if let Err(e) = sys::spawn_scoped("crosslock-parts", scope, || call_those(which)) {
                    log::warn!(
                        "can't start a thread for one of several servers, so it is called after the others: {e}"
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

    /// The parts by server, as far as servers are known: in the order of their first parts.
    fn by_server(&self) -> Vec<Vec<usize>> {
        let mut servers: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (at, request) in self.requests.iter().enumerate() {
            let first = request.claim.keys().first();
            let server = first.and_then(|key| self.scripts.server_of(key));
            let server = server.as_ref().map(Arc::as_ptr);
            servers.entry(server).or_default().push(at);
        }
        let mut servers: Vec<_> = servers.into_values().collect();
        servers.sort_unstable();
        servers
    }
}

/// The answer that counts for all parts. A lost lease is over, whatever the other answers are. A release without an
/// answer is tried again, whatever the other answers are. An error that no waiting mends goes before one that may pass.
pub(super) fn worst(answers: Vec<Result<Outcome>>, change: Change<'_>) -> Result<Outcome> {
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
