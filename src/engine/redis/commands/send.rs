//! How calls are sent: one to its server, or several at once.

use super::Commands;
use super::call::Call;
use crate::base::clock::Deadline;
use crate::engine::Unanswered;
use crate::engine::redis::script::Command;
use crate::engine::redis::server::Answer;
use crate::engine::redis::servers::at_once::call_all;

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
