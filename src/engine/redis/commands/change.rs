//! What is done with a lease, and what became of it: whether it is still its owner's, and how it lasts, ends or passes on.

use std::borrow::Cow;
use std::time::Duration;

use super::{Commands, millis, mode, number};
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::base::token::{Ending, Token};
use crate::engine::redis::reply::check_length;
use crate::engine::redis::script::{Call, Needs, Order};
use crate::engine::redis::server::Answer;
use crate::engine::{Change, Gone, Outcome, Request, Unanswered};

const RENEW: [&str; 2] = ["lock/renew", "all/renew"];
const RELEASE: [&str; 2] = ["lock/release", "all/release"];
const ADOPT: [&str; 2] = ["lock/adopt", "all/adopt"];
/// One name alone can be held to read, and a part of several is raised as several are.
const DOWNGRADE: [&str; 2] = ["lock/downgrade"; 2];
const RAISE: [&str; 2] = ["all/raise"; 2];

impl Commands {
    /// Does what is asked with a lease whose names are on one slot.
    pub(in crate::engine::redis) fn change_lease(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        // A master that was replaced, and doesn't know it, says yes to a mere look: only what was written can be confirmed.
        let change = match change {
            Change::Verify if self.asks_replicas() => Change::Renew,
            change => change,
        };
        check_length(request.key().name(), value_of(change))?;
        let Some(call) = self.changing(request, change) else {
            return Ok(Outcome::DONE);
        };
        self.outcome(request, change, self.send(request, &call, deadline))
    }

    /// Raises the token of a part, and makes its lease last for another ttl.
    pub(in crate::engine::redis) fn raise(
        &self,
        request: Request<'_>,
        token: Token,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let (ttl, token) = (millis(request.ttl), token.number.to_string());
        let needs = Needs {
            replicas: true,
            ..Needs::default()
        };
        let arguments = [Some(ttl.as_bytes()), Some(token.as_bytes())];
        let call = self.call_for(request, RAISE, needs, &arguments);
        self.outcome(request, Change::Renew, self.send(request, &call, deadline))
    }

    /// What is sent; `None` where nothing has to be done.
    fn changing<'a>(&'a self, request: Request<'a>, change: Change<'_>) -> Option<Call<'a>> {
        let Request { claim, owner, .. } = request;
        let (ttl, mode, value) = (millis(request.ttl), mode(claim, false), value_of(change));
        let granted = request.granted.map(|token| token.to_string());
        let needs = Needs {
            value: value.is_some(),
            replicas: true,
            ..Needs::default()
        };
        let renewal = Needs {
            lease_only: true,
            ..needs
        };
        let (script, needs, first, second, third, last) = match change {
            Change::Renew | Change::Store(_) => (RENEW, renewal, ttl, mode, value, granted),
            Change::Verify => (RENEW, renewal, "0".to_owned(), mode, None, granted),
            Change::Release(release) => {
                let needs = Needs {
                    replicas: value.is_some(),
                    order: Order::TakesBack(owner.as_str()),
                    ..needs
                };
                let keep = kept_for(release.keep);
                (
                    RELEASE,
                    needs,
                    counter_after(release.ending),
                    mode,
                    value,
                    keep,
                )
            }
            Change::Downgrade { last_used, .. } => {
                let counter = counter_after(Ending::Clean { last_used });
                (DOWNGRADE, needs, counter, Cow::from(ttl), value, None)
            }
            Change::Adopt { from, last_used } => {
                let needs = Needs {
                    value: claim.valued,
                    order: Order::Asks(owner.as_str()),
                    ..needs
                };
                let counter = counter_after(Ending::Clean { last_used });
                let from = Some(from.as_str().as_bytes());
                (ADOPT, needs, ttl, mode, from, Some(counter))
            }
            Change::GiveAway => return None,
        };
        let arguments = [
            Some(first.as_bytes()),
            Some(second.as_bytes()),
            third,
            last.as_deref().map(str::as_bytes),
        ];
        Some(self.call_for(request, script, needs, &arguments))
    }

    /// What an answer means, by the table of [`commands`](super). What too few replicas have may be lost.
    fn outcome(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        answer: Result<Answer, Unanswered>,
    ) -> Result<Outcome> {
        let answer = match answer {
            Ok(answer) => answer,
            // Whatever stands there now, it isn't the owner's.
            Err(Unanswered {
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
        Ok(match (change, number) {
            (_, 0) => Outcome::NOT_OWNER,
            (Change::Adopt { .. } | Change::Downgrade { .. }, token) => {
                Some((Token::from_number(token), value)).into()
            }
            // The second copy wrote nothing: what replicas have of that is no proof that they have the value.
            (Change::Release(_), 1 | 2) if may_lose_value && self.asks_replicas() => {
                let cause = "the answer was lost that says whether replicas have its value";
                return Err(self.unavailable(key, cause));
            }
            // It may not have had the lease, and then it isn't the first copy that has ended it there.
            (Change::Release(_), 2) if may_lose_value && answer.moved => {
                let cause = "the answer was lost of a server whose place another has taken";
                return Err(self.unavailable(key, cause));
            }
            (Change::Store(_), 1) if answer.repeated => Outcome::DONE_AGAIN,
            (_, 1) => Outcome::DONE,
            (Change::Release(_), 2) if answer.repeated => Outcome::Gone(Gone::Unclear),
            (Change::Release(_), 3) | (Change::Renew | Change::Verify, 2) => Outcome::BROKEN,
            _ => Outcome::NOT_OWNER,
        })
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

/// For how long a lock stays taken; `None` where it is free at once.
fn kept_for(keep: Duration) -> Option<String> {
    let keep = (!keep.is_zero()).then_some(keep)?;
    Some(millis(keep.saturating_add(Duration::from_nanos(999_999))))
}

/// What the counter becomes; 0 of an owner that doesn't know whether it was granted a token.
fn counter_after(ending: Ending) -> String {
    ending.counter().unwrap_or(0).to_string()
}
