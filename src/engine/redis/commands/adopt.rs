//! How a lease passes from one owner to another.

use ::redis::Value;

use super::call::Call;
use super::{Commands, Needs, bytes, millis, mode, needs_of_renewal};
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::base::owner::Owner;
use crate::base::token::{Ending, Token};
use crate::base::value::Stored;
use crate::engine::heartbeat::Acquired;
use crate::engine::redis::answers::acquired;
use crate::engine::redis::script::Order;
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
        let call = self.adopting(request, from, last_used);
        self.adopted(request, self.send(&call, deadline))
    }

    pub(super) fn adopting<'a>(
        &'a self,
        request: Request<'a>,
        from: &'a Owner,
        last_used: u64,
    ) -> Call<'a> {
        let counter = Ending::Clean { last_used }.counter();
        let arguments = [
            request.owner.as_str().as_bytes().into(),
            bytes(millis(request.ttl)),
            bytes(mode(request.claim, false)),
            from.as_str().as_bytes().into(),
            bytes(counter.unwrap_or(0).to_string()),
        ];
        let needs = Needs {
            value: request.claim.valued,
            ..needs_of_renewal(request.ttl)
        };
        Call::new(self.adopt.of(request.claim), request, needs, arguments)
            .in_order(Order::Asks(request.owner.as_str()))
    }

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
}
