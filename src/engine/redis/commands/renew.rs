//! Whether a lease is still its owner's, and how it is made to last.

use std::borrow::Cow;

use ::redis::Value;

use super::call::Call;
use super::{Change, Commands, known_within, millis, mode, needs_of_renewal};
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::keys::Keys;
use crate::engine::redis::server::Answer;
use crate::engine::redis::servers::Route;
use crate::engine::{Renewed, Request, Unanswered};

impl Commands {
    /// If the lease is still the owner's, it lasts for another ttl then.
    pub(in crate::engine::redis) fn renew(
        &self,
        request: Request<'_>,
        deadline: &Deadline,
    ) -> Result<Renewed> {
        self.renew_for(millis(request.ttl), request, deadline)
    }

    fn renew_for(
        &self,
        ttl: impl Into<Cow<'static, str>>,
        request: Request<'_>,
        deadline: &Deadline,
    ) -> Result<Renewed> {
        let call = self.renewing(ttl, request);
        self.renewed(request, self.send(&call, deadline))
    }

    pub(super) fn renewing<'a>(
        &'a self,
        ttl: impl Into<Cow<'static, str>>,
        request: Request<'a>,
    ) -> Call<'a> {
        let change = Change {
            needs: needs_of_renewal(request.ttl),
            ..Change::new(ttl, mode(request.claim, false))
        };
        change.call(self.renew.of(request.claim), request)
    }

    pub(super) fn renewed(
        &self,
        request: Request<'_>,
        answer: Result<Answer, Unanswered>,
    ) -> Result<Renewed> {
        Ok(match self.changed(request, answer)? {
            (1, _) => Renewed::Done,
            (2, _) => Renewed::Broken,
            _ => Renewed::NotOwner,
        })
    }

    pub(in crate::engine::redis) fn is_owner(
        &self,
        request: Request<'_>,
        deadline: &Deadline,
    ) -> Result<Renewed> {
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
        Ok(Renewed::Done)
    }

    /// Whether one name is held exclusively by the owner.
    fn holds(&self, request: Request<'_>, deadline: &Deadline) -> Result<bool> {
        let mut get = ::redis::cmd("GET");
        let keys = Keys::of(request.key());
        let route = Route {
            key: &keys.lock,
            known_within: Some(known_within(request.ttl)),
        };
        get.arg(&keys.lock);
        match self.servers.call(route, &get, deadline) {
            Ok(answer) => {
                let owner = request.owner.as_str().as_bytes();
                Ok(matches!(answer.value, Value::BulkString(held) if held == owner))
            }
            Err(Unanswered {
                error: Failure::Conflict(_),
                ..
            }) => Ok(false),
            Err(e) => Err(self.error(Some(request.key()), e.error)),
        }
    }
}
