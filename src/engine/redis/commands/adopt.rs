//! How a lease passes from one owner to another.

use std::borrow::Cow;

use ::redis::Value;

use super::{Commands, Needs, millis, mode, needs_of_renewal};
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::base::owner::Owner;
use crate::base::token::{Ending, Token};
use crate::base::value::Stored;
use crate::engine::heartbeat::Acquired;
use crate::engine::redis::answers::acquired;
use crate::engine::redis::server::Answer;
use crate::engine::{Request, Unanswered};

impl Commands {
    /// Makes the lease of `from` that of the request's owner. Gives its token, and the value if that was asked for; `None`
    /// when the lease isn't the other's any more.
    pub(in crate::engine::redis) fn adopt(
        &self,
        request: Request<'_>,
        from: &Owner,
        last_used: u64,
        deadline: &Deadline,
    ) -> Result<Option<(Token, Option<Stored>)>> {
        let (ttl, mode) = (millis(request.ttl), mode(request.claim, false));
        let counter = Ending::Clean { last_used }.counter();
        let counter: Cow<'_, str> = counter.unwrap_or(0).to_string().into();
        let arguments = [request.owner.as_str(), &ttl, &mode, from.as_str(), &counter];
        let arguments = arguments.map(str::as_bytes);
        let script = self.adopt.of(request.claim);
        let needs = Needs {
            value: request.claim.valued,
            ..needs_of_renewal(request.ttl)
        };
        match self.run(script, request, needs, &arguments, deadline) {
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
}
