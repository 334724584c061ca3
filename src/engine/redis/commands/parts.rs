//! What is sent about several parts of a claim at once. The names of a part are on one slot, those of two parts aren't.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Commands, millis, needs_of_renewal, route};
use crate::base::claim::Claim;
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::base::token::Token;
use crate::engine::heartbeat::{Acquired, IfTaken};
use crate::engine::redis::keys::Keys;
use crate::engine::redis::script::{Call, Command};
use crate::engine::redis::server::{Answer, Server};
use crate::engine::redis::servers::at_once::call_all;
use crate::engine::redis::servers::slots::slot_of;
use crate::engine::redis::settings::Kind;
use crate::engine::{Outcome, Release, Request, Unanswered};

impl Commands {
    /// The parts of a claim whose names are on several slots, in the order of the slots; else `None`. The errors about a part
    /// name the whole.
    pub(in crate::engine::redis) fn parts(&self, claim: &Claim) -> Option<Vec<Claim>> {
        if !claim.has_many() || self.servers.settings().kind != Kind::Cluster {
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

    /// Asks for several parts at once.
    pub(in crate::engine::redis) fn acquire_all(
        &self,
        questions: &[(Request<'_>, IfTaken<'_>)],
        deadline: &Deadline,
    ) -> Vec<Result<(Acquired, Arc<Server>), Unanswered>> {
        let questions = questions.iter();
        let calls: Vec<_> = questions
            .map(|(request, if_taken)| (*request, self.acquisition(*request, *if_taken)))
            .collect();
        self.each(calls, deadline, Self::acquired)
    }

    /// Raises the tokens of several parts, and makes their leases last for another ttl.
    pub(in crate::engine::redis) fn raise_all(
        &self,
        requests: &[Request<'_>],
        token: Token,
        deadline: &Deadline,
    ) -> Vec<Result<Outcome>> {
        let calls = with(requests, |request| self.raising(request, token));
        self.each(calls, deadline, Self::renewed)
    }

    pub(in crate::engine::redis) fn renew_all(
        &self,
        requests: &[Request<'_>],
        deadline: &Deadline,
    ) -> Vec<Result<Outcome>> {
        let calls = with(requests, |request| {
            self.renewing(request, request.ttl, None)
        });
        self.each(calls, deadline, Self::renewed)
    }

    /// Whether the parts are the owner's: it only looks.
    pub(in crate::engine::redis) fn are_owner(
        &self,
        requests: &[Request<'_>],
        deadline: &Deadline,
    ) -> Vec<Result<Outcome>> {
        let calls = with(requests, |request| {
            self.renewing(request, Duration::ZERO, None)
        });
        self.each(calls, deadline, Self::renewed)
    }

    pub(in crate::engine::redis) fn release_all(
        &self,
        requests: &[Request<'_>],
        release: Release<'_>,
        deadline: &Deadline,
    ) -> Vec<Result<Outcome>> {
        let calls = with(requests, |request| self.releasing(request, release));
        self.each(calls, deadline, Self::released)
    }

    /// Releases parts whose tokens the owner doesn't know, or leaves their queues. Says whether a command was sent again.
    pub(in crate::engine::redis) fn give_up_all(
        &self,
        requests: &[Request<'_>],
        deadline: &Deadline,
    ) -> Vec<Result<bool, Unanswered>> {
        let calls = with(requests, |request| {
            self.releasing(request, Release::UNKNOWN)
        });
        self.each(calls, deadline, |_, _, answer| match answer {
            Ok(answer) => Ok(answer.repeated),
            // Whatever stands there now, it isn't the owner's.
            Err(Unanswered {
                error: Error::Conflict { .. },
                ..
            }) => Ok(false),
            Err(e) => Err(e),
        })
    }

    pub(in crate::engine::redis) fn adopt_all(
        &self,
        requests: &[Request<'_>],
        from: &Owner,
        last_used: u64,
        deadline: &Deadline,
    ) -> Vec<Result<Option<Token>>> {
        let calls = with(requests, |request| self.adopting(request, from, last_used));
        self.each(calls, deadline, |commands, request, answer| {
            let adopted = commands.adopted(request, answer)?;
            Ok(adopted.map(|(token, _)| token))
        })
    }

    fn raising<'a>(&'a self, request: Request<'a>, token: Token) -> Call<'a> {
        let (ttl, token) = (millis(request.ttl), token.number.to_string());
        let arguments = [request.owner.as_str(), &ttl, &token].map(str::as_bytes);
        let needs = needs_of_renewal(request.ttl);
        self.raise.call_for(request.claim, needs, &arguments)
    }

    /// Sends the calls, and says what each answer means.
    fn each<'a, T>(
        &'a self,
        calls: Vec<(Request<'a>, Call<'a>)>,
        deadline: &Deadline,
        meaning: impl Fn(&Self, Request<'_>, Result<Answer, Unanswered>) -> T,
    ) -> Vec<T> {
        let (requests, calls): (Vec<_>, Vec<_>) = calls.into_iter().unzip();
        let routed: Vec<_> = calls
            .iter()
            .map(|call| (route(call), call as &dyn Command))
            .collect();
        let answers = call_all(&*self.servers, &routed, deadline);
        let answers = answers.into_iter().zip(requests);
        answers
            .map(|(answer, request)| {
                let answer = answer.map_err(|e| self.unanswered(request.claim, e));
                meaning(self, request, answer)
            })
            .collect()
    }
}

fn with<'a>(
    requests: &[Request<'a>],
    call: impl Fn(Request<'a>) -> Call<'a>,
) -> Vec<(Request<'a>, Call<'a>)> {
    let requests = requests.iter();
    requests.map(|request| (*request, call(*request))).collect()
}
