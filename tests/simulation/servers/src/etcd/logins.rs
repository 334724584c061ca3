//! Logins: who says a password is given a token. Members forget one that isn't used, and all when they are killed.

use std::collections::BTreeMap;
use std::time::Duration;

use crosslock_world::service::Host;
use serde_json::{Value, json};

use super::http::{Question, Refusal};
use super::{Etcd, store};

/// When each token ends, at each member.
pub(super) type Tokens = BTreeMap<(Host, String), Duration>;

/// A token lasts so long if it isn't used: by default five minutes, and longer than any way to a member and back.
const LASTS: Duration = Duration::from_secs(5);

impl Etcd {
    /// Lets only those in that log in: it has no users, and any password is right.
    #[must_use]
    pub fn with_logins(self) -> Self {
        Self {
            tokens: Some(Tokens::new()),
            ..self
        }
    }

    /// Gives a token, which all members know, also those that hear of it later.
    pub(super) fn log_in(&mut self, at: Host) -> Result<Value, Refusal> {
        if !self.is_healthy() {
            return Err(Refusal::NO_LEADER);
        }
        let token = format!("token.{}", self.number());
        let until = self.now + LASTS;
        let known = (0..self.members.len()).map(|at| ((at, token.clone()), until));
        self.tokens.get_or_insert_default().extend(known);
        let header = store::header(self.members[at].state.revision);
        Ok(json!({ "header": header, "token": token }))
    }

    /// Refuses a question whose token the member doesn't know.
    pub(super) fn check_token(&mut self, at: Host, question: &Question) -> Result<(), Refusal> {
        let (now, Some(tokens)) = (self.now, &mut self.tokens) else {
            return Ok(());
        };
        let known = tokens.get_mut(&(at, question.token.clone()));
        let until = known.filter(|until| now < **until);
        *until.ok_or(Refusal::UNKNOWN_TOKEN)? = now + LASTS;
        Ok(())
    }
}
