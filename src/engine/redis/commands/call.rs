//! What is sent about a claim, and how: to one server, or to several at once.

use std::borrow::Cow;

use super::{Commands, Needs};
use crate::base::claim::Claim;
use crate::base::clock::Deadline;
use crate::engine::redis::keys::{Keys, VALUE};
use crate::engine::redis::script::{Command, Script, ScriptCall};
use crate::engine::redis::server::Answer;
use crate::engine::redis::servers::{Route, call_all};
use crate::engine::{Request, Unanswered};

/// A script, the keys of a claim, and the arguments.
pub(super) struct Call<'a> {
    script: &'a Script,
    claim: &'a Claim,
    keys: Vec<Keys>,
    needs: Needs,
    arguments: Vec<Cow<'a, [u8]>>,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        script: &'a Script,
        request: Request<'a>,
        needs: Needs,
        arguments: impl IntoIterator<Item = Cow<'a, [u8]>>,
    ) -> Self {
        Call {
            script,
            claim: request.claim,
            keys: request.claim.keys().iter().map(Keys::of).collect(),
            needs,
            arguments: arguments.into_iter().collect(),
        }
    }

    /// All keys of a claim are on one slot.
    fn route(&self) -> Route<'_> {
        Route {
            key: self.keys.first().map_or("", |keys| &keys.lock),
            known_within: self.needs.known_within,
        }
    }

    fn packed_by(&self, pack: impl FnOnce(&ScriptCall<'_>) -> Vec<u8>) -> Vec<u8> {
        let passed = if self.needs.value { VALUE + 1 } else { VALUE };
        let keys = self.keys.iter();
        let keys: Vec<_> = keys
            .flat_map(|keys| keys.all().into_iter().take(passed))
            .collect();
        let arguments: Vec<_> = self.arguments.iter().map(|one| &**one).collect();
        pack(&self.script.call(&keys, &arguments))
    }
}

impl Command for Call<'_> {
    fn packed(&self) -> Vec<u8> {
        self.packed_by(|call| call.packed())
    }

    fn in_full(&self) -> Option<Vec<u8>> {
        Some(self.packed_by(|call| call.in_full().unwrap_or_default()))
    }

    fn is_for_replicas(&self) -> bool {
        self.needs.replicas
    }
}

impl Commands {
    pub(super) fn send(&self, call: &Call<'_>, deadline: &Deadline) -> Result<Answer, Unanswered> {
        let answer = self.servers.call(call.route(), call, deadline);
        answer.map_err(|e| self.unanswered(call.claim, e))
    }

    /// Sends each to its server, and gives the answers in their order.
    pub(super) fn send_all(
        &self,
        calls: &[Call<'_>],
        deadline: &Deadline,
    ) -> Vec<Result<Answer, Unanswered>> {
        let routed: Vec<_> = calls
            .iter()
            .map(|call| (call.route(), call as &dyn Command))
            .collect();
        let answers = call_all(&*self.servers, &routed, deadline);
        let answers = answers.into_iter().zip(calls);
        answers
            .map(|(answer, call)| answer.map_err(|e| self.unanswered(call.claim, e)))
            .collect()
    }
}
