//! Whether a lease is still its owner's, and how it is made to last.

use std::borrow::Cow;

use ::redis::Value;

use super::call::{Call, Needs};
use super::{Change, Commands, known_within, millis, mode, needs_of_renewal};
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::engine::redis::keys::Keys;
use crate::engine::redis::server::Answer;
use crate::engine::redis::servers::Route;
use crate::engine::{Outcome, Request, Unanswered};

impl Commands {
    /// If the lease is still the owner's, it lasts for another ttl then.
    pub(in crate::engine::redis) fn renew(
        &self,
        request: Request<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        self.renew_for(millis(request.ttl), request, deadline)
    }

    fn renew_for(
        &self,
        ttl: impl Into<Cow<'static, str>>,
        request: Request<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let call = self.renewing(ttl, request, None);
        self.renewed(request, self.send(&call, deadline))
    }

    pub(super) fn renewing<'a>(
        &'a self,
        ttl: impl Into<Cow<'static, str>>,
        request: Request<'a>,
        value: Option<&'a [u8]>,
    ) -> Call<'a> {
        let change = Change {
            value,
            last: request
                .granted
                .map_or("".into(), |token| token.to_string().into()),
            needs: Needs {
                lease_only: true,
                ..needs_of_renewal(request.ttl)
            },
            ..Change::new(ttl, mode(request.claim, false))
        };
        change.call(self.renew.of(request.claim), request)
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

    pub(in crate::engine::redis) fn is_owner(
        &self,
        request: Request<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        if self.asks_replicas() {
            // A master that was replaced, and doesn't know it, says yes to a mere look: only what was written can be confirmed.
            return self.renew(request, deadline);
        }
        let look = || self.renew_for("0", request, deadline);
        if !request.claim.is_exclusive()
            || request.claim.keys().len() > 1
            || !self.holds(request, deadline)?
        {
            // It also says why it isn't the owner's.
            return look();
        }
        Ok(Outcome::DONE)
    }

    /// Whether one name is held exclusively by the owner.
    fn holds(&self, request: Request<'_>, deadline: &Deadline) -> Result<bool> {
        let mut get = ::redis::cmd("MGET");
        let keys = Keys::of(request.key());
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
