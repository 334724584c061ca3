//! How a lock is asked for.

use std::sync::Arc;

use super::call::Call;
use super::{Commands, Needs, bytes, millis, mode, needs_of_renewal};
use crate::base::clock::Deadline;
use crate::engine::heartbeat::{Acquired, IfTaken};
use crate::engine::redis::answers::acquired;
use crate::engine::redis::script::Order;
use crate::engine::redis::server::{Answer, Server};
use crate::engine::{Request, Unanswered};

impl Commands {
    /// Gives also the server that answered.
    pub(in crate::engine::redis) fn acquire(
        &self,
        request: Request<'_>,
        if_taken: IfTaken<'_>,
        deadline: &Deadline,
    ) -> Result<(Acquired, Arc<Server>), Unanswered> {
        let call = self.acquisition(request, if_taken);
        self.acquired(request, self.send(&call, deadline))
    }

    pub(super) fn acquisition<'a>(
        &'a self,
        request: Request<'a>,
        if_taken: IfTaken<'a>,
    ) -> Call<'a> {
        let (ttl, mode) = (millis(request.ttl), mode(request.claim, true));
        let owner = request.owner.as_str().as_bytes();
        let (within, inbox) = match if_taken {
            IfTaken::Leave => (String::new(), None),
            IfTaken::Wait {
                heartbeat_within,
                inbox,
            } => (millis(heartbeat_within), inbox),
        };
        let hears_at = inbox.and_then(|inbox| inbox.server);
        let arguments = [
            owner.into(),
            bytes(ttl),
            bytes(mode),
            bytes(within),
            inbox.map_or("", |inbox| inbox.channel).as_bytes().into(),
            hears_at.unwrap_or_default().as_bytes().into(),
        ];
        let passed = match (if_taken, hears_at) {
            (IfTaken::Leave, _) => 3,
            (IfTaken::Wait { .. }, None) => 5,
            (IfTaken::Wait { .. }, Some(_)) => 6,
        };
        let needs = Needs {
            value: request.claim.valued,
            ..needs_of_renewal(request.ttl)
        };
        let script = self.acquire.of(request.claim);
        Call::new(script, request, needs, arguments.into_iter().take(passed))
            .in_order(Order::Asks(request.owner.as_str()))
    }

    pub(super) fn acquired(
        &self,
        request: Request<'_>,
        answer: Result<Answer, Unanswered>,
    ) -> Result<(Acquired, Arc<Server>), Unanswered> {
        let answer = answer?;
        // It may be a grant that was changed on its way.
        let acquired = acquired(answer.value)
            .ok_or_else(|| Unanswered::sent(self.surprised(request.key())))?;
        match (&acquired, answer.shortfall) {
            (Acquired::Granted { .. }, Some(shortfall)) => {
                Err(Unanswered::sent(self.unconfirmed(request.key(), shortfall)))
            }
            _ => Ok((acquired, answer.server)),
        }
    }
}
