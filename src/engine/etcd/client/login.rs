//! What hosts are asked on one connection, and who we are to them: a name and a password, which they exchange for a token.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::answers::{self, Answer, MemberStatus};
use super::connection::{Connection, Incoming, STATUS};
use super::failure::{Effect, Failed, Failure};
use super::proof::Renewal;
use super::txn::LeaseId;
use crate::base::clock::Deadline;
use crate::base::sys::sync::Mutex;
use crate::base::sys::sync::{TimedGuard, TimedMutex};
use crate::base::sys::time;
use crate::engine::net::address;
use crate::engine::net::limits::CANCEL_LATENESS;

/// Requests on one connection, each by the same deadline, with the token that its host has given for our login, if there is one.
pub(super) struct Exchange<'a> {
    pub(super) connection: &'a mut Connection,
    login: &'a Login,
    deadline: &'a Deadline,
}

impl<'a> Exchange<'a> {
    pub(super) fn new(
        connection: &'a mut Connection,
        login: &'a Login,
        deadline: &'a Deadline,
    ) -> Self {
        Exchange {
            connection,
            login,
            deadline,
        }
    }

    /// Asks, and reads the whole answer, of which `understand` makes nothing if it isn't one of etcd.
    pub(super) fn ask<T>(
        &mut self,
        path: &str,
        body: &Value,
        understand: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, Failed> {
        let incoming = self.begin(path, body.to_string().as_bytes())?;
        let answer = self.connection.value(incoming)?;
        understand(&answer).ok_or_else(|| Failed::not_understood(&answer))
    }

    /// Asks, and reads that there will be an answer. Asks once more with another token, when the host doesn't know the one that there
    /// was.
    pub(super) fn begin(&mut self, path: &str, body: &[u8]) -> Result<Incoming, Failed> {
        let token = self.login.token(self.connection, self.deadline)?;
        let begun = self.begin_with(path, body, token.as_deref());
        match (begun, token) {
            (Err(failed), Some(unknown))
                if failed.effect == Effect::UnknownToken && self.connection.is_in_step() =>
            {
                self.login.forget(&unknown);
                let token = self.login.token(self.connection, self.deadline)?;
                self.begin_with(path, body, token.as_deref())
            }
            (begun, _) => begun,
        }
    }

    fn begin_with(
        &mut self,
        path: &str,
        body: &[u8],
        token: Option<&str>,
    ) -> Result<Incoming, Failed> {
        self.connection.begin((path, body), token, self.deadline)
    }

    pub(super) fn transact(&mut self, txn: &Value) -> Result<Answer, Failed> {
        let answer = self.ask("/v3/kv/txn", txn, answers::transaction)?;
        self.connection.see(answer.by);
        Ok(answer)
    }

    /// Asks for a lease to be kept alive.
    pub(super) fn renew(&mut self, lease: LeaseId) -> Result<Renewal, Failed> {
        match self.ask("/v3/lease/keepalive", &lease.to_json(), answers::keep_alive) {
            Err(failed) if matches!(failed.why, Failure::LeaseGone) => Ok(Renewal {
                by: None,
                is_there: false,
            }),
            renewal => renewal,
        }
    }

    pub(super) fn status(&mut self) -> Result<MemberStatus, Failed> {
        self.ask(STATUS, &json!({}), answers::status)
    }
}

/// Our login, and the token that hosts have given for it.
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
        let question = ("/v3/auth/authenticate", body.as_bytes());
        let answer = connection.begin(question, None, deadline);
        let answer = answer.and_then(|incoming| connection.value(incoming));
        let answer = answer.map_err(harmless)?;
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
