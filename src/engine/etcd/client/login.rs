//! Who we are to the servers: a name and a password, which they exchange for a token.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::connection::{Connection, Incoming, Question};
use super::failure::{Effect, Failed, Failure};
use crate::base::clock::Deadline;
use crate::base::sys::sync::Mutex;
use crate::base::sys::sync::{TimedGuard, TimedMutex};
use crate::base::sys::time;
use crate::engine::net::address;
use crate::engine::net::limits::CANCEL_LATENESS;

/// Asks hosts, with the token that they have given for our login, if there is one.
///
/// A token ends when it wasn't used for some minutes, and when the member has been restarted that is asked.
pub(super) struct Login {
    login: address::Login,
    token: Mutex<Option<Arc<str>>>,
    /// Locked by the thread that asks for a token. Checking a password costs a server as much as hundreds of requests.
    asking: TimedMutex<()>,
}

impl Login {
    pub(super) fn new(login: address::Login) -> Self {
        Login {
            login,
            token: Mutex::default(),
            asking: TimedMutex::default(),
        }
    }

    /// The same for a child that was forked off, which asks for a token of its own: another thread of the parent may have
    /// locked this one's.
    pub(super) fn after_fork(&self) -> Self {
        Login::new(self.login.clone())
    }

    /// Asks, and reads the whole answer by `deadline`.
    pub(super) fn ask(
        &self,
        connection: &mut Connection,
        question: Question<'_>,
        deadline: &Deadline,
    ) -> Result<Value, Failed> {
        self.with_token(connection, deadline, |connection, token| {
            connection.ask(Question { token, ..question }, deadline)
        })
    }

    /// Asks, and reads by `deadline` that there will be an answer.
    pub(super) fn begin(
        &self,
        connection: &mut Connection,
        question: Question<'_>,
        deadline: &Deadline,
    ) -> Result<Incoming, Failed> {
        self.with_token(connection, deadline, |connection, token| {
            connection.begin(Question { token, ..question }, deadline)
        })
    }

    /// Asks once more with another token, when the host doesn't know the one that there was.
    fn with_token<T>(
        &self,
        connection: &mut Connection,
        deadline: &Deadline,
        mut ask: impl FnMut(&mut Connection, Option<&str>) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let token = self.token(connection, deadline)?;
        match (ask(connection, token.as_deref()), token) {
            (Err(failed), Some(unknown))
                if failed.effect == Effect::UnknownToken && connection.is_in_step() =>
            {
                self.forget(&unknown);
                let token = self.token(connection, deadline)?;
                ask(connection, token.as_deref())
            }
            (answer, _) => answer,
        }
    }

    /// `None`: the URL has no user.
    fn token(
        &self,
        connection: &mut Connection,
        deadline: &Deadline,
    ) -> Result<Option<Arc<str>>, Failed> {
        let (Some(user), Some(password)) = (&self.login.user, &self.login.password) else {
            return Ok(None);
        };
        let known = || self.token.lock().clone();
        if let Some(token) = known() {
            return Ok(Some(token));
        }
        let _asking = self.wait_for_turn(deadline);
        if let Some(token) = known() {
            return Ok(Some(token));
        }
        let body = json!({ "name": user, "password": password.as_str() }).to_string();
        let question = Question {
            path: "/v3/auth/authenticate",
            body: body.as_bytes(),
            token: None,
            needs_leader: true,
        };
        let answer = connection.ask(question, deadline).map_err(harmless)?;
        let token = answer.get("token").and_then(Value::as_str);
        let token = token.filter(|token| token.bytes().all(|byte| byte.is_ascii_graphic()));
        let token: Arc<str> = token
            .ok_or_else(|| Effect::Undone.by(Failure::surprised()))?
            .into();
        *self.token.lock() = Some(token.clone());
        Ok(Some(token))
    }

    /// `None`: there was no time left for it.
    fn wait_for_turn(&self, deadline: &Deadline) -> Option<TimedGuard<'_, ()>> {
        loop {
            // A cancel wakes nobody.
            let slice = deadline.remaining().min(CANCEL_LATENESS);
            match self.asking.try_lock_until(time::now() + slice) {
                None if !deadline.is_over() => {}
                turn => return turn,
            }
        }
    }

    /// Has the next question ask for another token, if there is one.
    pub(super) fn renew(&self) -> bool {
        self.token.lock().take().is_some()
    }

    fn forget(&self, unknown: &str) {
        let mut token = self.token.lock();
        // Another thread may have a new one already.
        if token.as_deref() == Some(unknown) {
            *token = None;
        }
    }
}

/// Without the token, which serves as well as the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}

/// Whatever came of a login, what follows it wasn't asked.
fn harmless(failed: Failed) -> Failed {
    match failed.effect {
        Effect::Unclear => Effect::Undone.by(failed.why),
        Effect::Undone | Effect::Refused | Effect::UnknownToken => failed,
    }
}
