//! What is done with a lease, and what became of it: whether it is still its owner's, and how it lasts, ends or passes on.

use std::time::Duration;

use ::redis::Value;

use super::{Commands, acquired, known_within, millis, mode, needs_of_renewal};
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::base::token::{Ending, Token};
use crate::base::value::Stored;
use crate::engine::heartbeat::Acquired;
use crate::engine::redis::keys::Keys;
use crate::engine::redis::reply::check_length;
use crate::engine::redis::script::{Call, Needs, Order, Script};
use crate::engine::redis::server::Answer;
use crate::engine::redis::servers::Route;
use crate::engine::{Change, Gone, Outcome, Release, Request, Unanswered};

impl Commands {
    /// Does what is asked with a lease whose names are on one slot.
    pub(in crate::engine::redis) fn change_lease(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        match change {
            Change::Renew => self.renew(request, request.ttl, deadline),
            Change::Verify => self.verify(request, deadline),
            Change::Release(release) => self.release(request, release, deadline),
            Change::Store(value) => self.store(request, value, deadline),
            Change::Downgrade { last_used, value } => {
                self.downgrade(request, last_used, value, deadline)
            }
            Change::Adopt { from, last_used } => {
                let call = self.adopting(request, from, last_used);
                let answer = self.send(request, &call, deadline);
                self.adopted(request, answer).map(Outcome::from)
            }
            Change::GiveAway => Ok(Outcome::DONE),
        }
    }

    /// With no ttl it only looks.
    fn renew(&self, request: Request<'_>, ttl: Duration, deadline: &Deadline) -> Result<Outcome> {
        let call = self.renewing(request, ttl, None);
        self.renewed(request, self.send(request, &call, deadline))
    }

    pub(super) fn renewing<'a>(
        &'a self,
        request: Request<'a>,
        ttl: Duration,
        value: Option<&[u8]>,
    ) -> Call<'a> {
        let granted = request.granted.map(|token| token.to_string());
        let needs = Needs {
            lease_only: true,
            ..needs_of_renewal(request.ttl)
        };
        let arguments = [
            millis(ttl),
            mode(request.claim, false).into_owned(),
            granted.unwrap_or_default(),
        ];
        changing(
            self.renew.of(request.claim),
            request,
            needs,
            &arguments,
            value,
        )
    }

    pub(super) fn renewed(
        &self,
        request: Request<'_>,
        answer: Result<Answer, Unanswered>,
    ) -> Result<Outcome> {
        Ok(match self.changed(request, answer)? {
            (1, _) => Outcome::DONE,
            (2, _) => Outcome::BROKEN,
            _ => Outcome::NOT_OWNER,
        })
    }

    fn verify(&self, request: Request<'_>, deadline: &Deadline) -> Result<Outcome> {
        if self.asks_replicas() {
            // A master that was replaced, and doesn't know it, says yes to a mere look: only what was written can be confirmed.
            return self.renew(request, request.ttl, deadline);
        }
        if let [key] = request.claim.keys()
            && request.claim.is_exclusive()
            && self.holds(key, request, deadline)?
        {
            return Ok(Outcome::DONE);
        }
        // It also says why it isn't the owner's.
        self.renew(request, Duration::ZERO, deadline)
    }

    /// Whether one name is held exclusively by the owner.
    fn holds(&self, key: &Key, request: Request<'_>, deadline: &Deadline) -> Result<bool> {
        let mut get = ::redis::cmd("MGET");
        let keys = Keys::of(key);
        let route = Route {
            key: &keys.lock,
            known_within: Some(known_within(request.ttl)),
        };
        get.arg(&keys.all()[..2]);
        let answer = self.servers.call(route, &get, deadline);
        let answer = answer.map_err(|e| self.error(Some(request.key()), e.error))?;
        let owner = request.owner.as_str().as_bytes();
        Ok(match answer.value {
            Value::Array(parts) => match &parts[..] {
                [Value::BulkString(lock), counter] => lock == owner && !is_anew(counter, request),
                _ => false,
            },
            _ => false,
        })
    }

    fn store(&self, request: Request<'_>, value: &[u8], deadline: &Deadline) -> Result<Outcome> {
        check_length(request.key().name(), Some(value))?;
        let call = self.renewing(request, request.ttl, Some(value));
        let answer = self.send(request, &call, deadline);
        Ok(match self.changed(request, answer)? {
            (1, false) => Outcome::DONE,
            (1, true) => Outcome::DONE_AGAIN,
            _ => Outcome::NOT_OWNER,
        })
    }

    fn release(
        &self,
        request: Request<'_>,
        release: Release<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        check_length(request.key().name(), release.value)?;
        let call = self.releasing(request, release);
        let answer = self.send(request, &call, deadline);
        let was_repeated = matches!(&answer, Ok(Answer { repeated: true, .. }));
        let has_moved = matches!(&answer, Ok(Answer { moved: true, .. }));
        let released = self.released(request, answer)?;
        let unknown = match released {
            _ if release.value.is_none() => return Ok(released),
            // The second copy wrote nothing: what replicas have of that is no proof that they have the value.
            Outcome::Done(_) | Outcome::Gone(Gone::Unclear)
                if was_repeated && self.asks_replicas() =>
            {
                "the answer was lost that says whether replicas have its value"
            }
            // It may not have had the lease, and then it isn't the first copy that has ended it there.
            Outcome::Gone(Gone::Unclear) if has_moved => {
                "the answer was lost of a server whose place another has taken"
            }
            _ => return Ok(released),
        };
        Err(self.unavailable(request.key(), unknown))
    }

    pub(super) fn releasing<'a>(&'a self, request: Request<'a>, release: Release<'_>) -> Call<'a> {
        let keep = match release.keep {
            Duration::ZERO => String::new(),
            keep => millis(keep.saturating_add(Duration::from_nanos(999_999))),
        };
        let needs = Needs {
            replicas: release.value.is_some(),
            order: Order::TakesBack(request.owner.as_str()),
            // A master that was replaced would say yes, and leave the lock taken at its successor.
            ..needs_of_renewal(request.ttl)
        };
        let arguments = [
            counter_after(release.ending),
            mode(request.claim, false).into_owned(),
            keep,
        ];
        let script = self.release.of(request.claim);
        changing(script, request, needs, &arguments, release.value)
    }

    pub(super) fn released(
        &self,
        request: Request<'_>,
        answer: Result<Answer, Unanswered>,
    ) -> Result<Outcome> {
        Ok(match self.changed(request, answer)? {
            (1, _) => Outcome::DONE,
            (2, true) => Outcome::Gone(Gone::Unclear),
            (3, _) => Outcome::BROKEN,
            _ => Outcome::NOT_OWNER,
        })
    }

    fn downgrade(
        &self,
        request: Request<'_>,
        last_used: u64,
        value: Option<&[u8]>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        check_length(request.key().name(), value)?;
        let counter = counter_after(Ending::Clean { last_used });
        let arguments = [counter, millis(request.ttl), String::new()];
        let needs = needs_of_renewal(request.ttl);
        let call = changing(&self.downgrade, request, needs, &arguments, value);
        let answer = self.send(request, &call, deadline);
        let (token, _) = self.changed(request, answer)?;
        Ok((token > 0).then(|| Token::from_number(token)).into())
    }

    pub(super) fn adopting<'a>(
        &'a self,
        request: Request<'a>,
        from: &Owner,
        last_used: u64,
    ) -> Call<'a> {
        let needs = Needs {
            value: request.claim.valued,
            order: Order::Asks(request.owner.as_str()),
            ..needs_of_renewal(request.ttl)
        };
        let arguments = [
            request.owner.as_str(),
            &millis(request.ttl),
            &mode(request.claim, false),
            from.as_str(),
            &counter_after(Ending::Clean { last_used }),
        ];
        let script = self.adopt.of(request.claim);
        script.call_for(request.claim, needs, &arguments.map(str::as_bytes))
    }

    /// The token of the lease that was the other's, and the value if that was asked for; `None` when it isn't the other's any
    /// more.
    pub(super) fn adopted(
        &self,
        request: Request<'_>,
        answer: Result<Answer, Unanswered>,
    ) -> Result<Option<(Token, Option<Stored>)>> {
        match answer {
            Ok(answer) if answer.value == Value::Int(0) => Ok(None),
            Ok(Answer {
                shortfall: Some(shortfall),
                ..
            }) => Err(self.unconfirmed(request.key(), shortfall)),
            Ok(answer) => match acquired(answer.value) {
                Some(Acquired::Granted { token, value }) => Ok(Some((token, value))),
                _ => Err(self.surprised(request.key())),
            },
            // Whatever stands there now, it isn't the other's.
            Err(Unanswered {
                error: Error::Conflict { .. },
                ..
            }) => Ok(None),
            Err(e) => Err(e.error),
        }
    }

    /// The number of an answer, 0 when the lock isn't the owner's, and whether the server was asked twice. What too few
    /// replicas have may be lost.
    fn changed(
        &self,
        request: Request<'_>,
        answer: Result<Answer, Unanswered>,
    ) -> Result<(u64, bool)> {
        let key = request.key();
        let answer = match answer {
            Ok(answer) => answer,
            // Whatever stands there now, it isn't ours.
            Err(Unanswered {
                error: Error::Conflict { .. },
                ..
            }) => return Ok((0, false)),
            Err(e) => return Err(e.error),
        };
        let Value::Int(number) = answer.value else {
            return Err(self.surprised(key));
        };
        let number = u64::try_from(number).map_err(|_| self.surprised(key))?;
        let is_done = number == 1 || number > 3;
        match answer.shortfall.filter(|_| is_done) {
            Some(shortfall) => Err(self.unconfirmed(key, shortfall)),
            None => Ok((number, answer.repeated)),
        }
    }
}

/// A call of a script that takes two arguments after the owner, then the value, and one more. The last two are passed as far
/// as there is something.
fn changing<'a>(
    script: &'a Script,
    request: Request<'a>,
    needs: Needs<'a>,
    [first, second, last]: &[String; 3],
    value: Option<&[u8]>,
) -> Call<'a> {
    let passed = match (value, &**last) {
        (None, "") => 3,
        (Some(_), "") => 4,
        _ => 5,
    };
    let arguments = [
        request.owner.as_str().as_bytes(),
        first.as_bytes(),
        second.as_bytes(),
        value.unwrap_or_default(),
        last.as_bytes(),
    ];
    let needs = Needs {
        value: value.is_some(),
        ..needs
    };
    script.call_for(request.claim, needs, &arguments[..passed])
}

/// What the counter becomes; 0 of an owner that doesn't know whether it was granted a token.
fn counter_after(ending: Ending) -> String {
    ending.counter().unwrap_or(0).to_string()
}

/// Whether the counter says that the lock was granted since, as `lua/lock/renew.lua` finds it.
fn is_anew(counter: &Value, request: Request<'_>) -> bool {
    let Value::BulkString(counter) = counter else {
        return false;
    };
    let digits = counter.iter().take_while(|byte| byte.is_ascii_digit());
    let digits = String::from_utf8(digits.copied().collect()).unwrap_or_default();
    let stored: Option<u64> = digits.parse().ok();
    stored
        .zip(request.granted)
        .is_some_and(|(stored, granted)| stored > granted)
}
