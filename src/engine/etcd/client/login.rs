//! What hosts are asked on one connection, and who we are to them: a name and a password, which they exchange for a
//! token; and watches of keys, each of which has a connection of its own.

use std::time::{Duration, Instant};
use std::{fmt, sync::Arc};

use serde_json::{Value, json};

use super::answers::{self, Answer, Event, MemberStatus, WatchMessage, watch_message};
use super::connection::{Connection, Incoming, STATUS};
use super::failure::{Effect, Failure, HostFailure};
use super::hosts::{Hosts, Used};
use super::proof::Renewal;
use super::txn::{LeaseId, Range};
use crate::base::sys::sync::Mutex;
use crate::base::timed_mutex::{TimedGuard, TimedMutex};
use crate::base::{Deadline, sys::time};
use crate::engine::net::{CANCEL_LATENESS, address};

/// Requests on one connection, each by the same deadline, with the token that its host has given for our login, if
/// there is one.
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
    ) -> Result<T, HostFailure> {
        let incoming = self.begin(path, body.to_string().as_bytes())?;
        let answer = self.connection.value(incoming)?;
        understand(&answer).ok_or_else(|| HostFailure::not_understood(&answer))
    }

    /// Asks, and reads that there will be an answer. Asks once more with another token, when the host doesn't know
    /// the one that there was.
    pub(super) fn begin(&mut self, path: &str, body: &[u8]) -> Result<Incoming, HostFailure> {
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
    ) -> Result<Incoming, HostFailure> {
        self.connection.begin((path, body), token, self.deadline)
    }

    pub(super) fn transact(&mut self, txn: &Value) -> Result<Answer, HostFailure> {
        let answer = self.ask("/v3/kv/txn", txn, answers::transaction)?;
        self.connection.see(answer.by);
        Ok(answer)
    }

    /// Asks for a lease to be kept alive.
    pub(super) fn renew(&mut self, lease: LeaseId) -> Result<Renewal, HostFailure> {
        match self.ask("/v3/lease/keepalive", &lease.to_json(), answers::keep_alive) {
            Err(failed) if matches!(failed.why, Failure::LeaseGone) => Ok(Renewal {
                by: None,
                is_there: false,
            }),
            renewal => renewal,
        }
    }

    pub(super) fn status(&mut self) -> Result<MemberStatus, HostFailure> {
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

    /// The same for a child that was forked off, which asks for a token of its own: another thread of the parent may
    /// have locked this one's.
    pub(super) fn after_fork(&self) -> Self {
        Login::new(self.login.clone())
    }

    /// `None`: the URL has no user.
    fn token(
        &self,
        connection: &mut Connection,
        deadline: &Deadline,
    ) -> Result<Option<Arc<str>>, HostFailure> {
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

    /// Drops the token, so that the next question asks for another. Says whether there was one.
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
fn harmless(failed: HostFailure) -> HostFailure {
    match failed.effect {
        Effect::Unclear => Effect::Undone.by(failed.why),
        Effect::Undone | Effect::Refused | Effect::UnknownToken => failed,
    }
}

/// A watch of keys. Dropped, it ends at the servers, too.
#[derive(Debug)]
pub(crate) struct Watch {
    messages: Messages,
    used: Used,
    hosts: Arc<Hosts>,
    /// When the last message came.
    heard: Instant,
}

/// A watch that was silent for as long isn't trusted any more: something on the way may have forgotten its connection,
/// and would tell neither end.
const SILENCE: Duration = Duration::from_secs(30);

impl Watch {
    pub(super) fn new(messages: Messages, used: Used, hosts: Arc<Hosts>) -> Self {
        Watch {
            messages,
            used,
            hosts,
            heard: time::now(),
        }
    }

    /// Whether it was silent for so long that another has to take its place.
    pub(crate) fn is_silent(&self) -> bool {
        time::since(self.heard) >= SILENCE
    }

    /// It tells of all that comes after that revision, and of nothing before.
    pub(crate) fn begins_after(&self) -> u64 {
        self.messages.begins_after
    }

    /// Blocks until there are events, or until then: then there are none. After a failure it tells of nothing any
    /// more. A host that hangs tells of nothing either: so it fails also where another host is asked first by now, and
    /// after a long silence.
    pub(crate) fn next(&mut self, until: &Deadline) -> Result<Vec<Event>, Failure> {
        if self.hosts.rotation.first() != self.used.host {
            let cause = "another host answered a watch";
            return Err(Failure::Unreachable(cause.into()));
        }
        let trusted = SILENCE.saturating_sub(time::since(self.heard));
        self.used.connection.sleep_until(&until.within(trusted));
        loop {
            let message = self.messages.next(&mut self.used.connection);
            if message.is_ok() {
                self.heard = time::now();
            }
            match message {
                Ok(WatchMessage::Events(events)) if !events.is_empty() => return Ok(events),
                Ok(WatchMessage::Begun(_) | WatchMessage::Events(_)) => {}
                Ok(WatchMessage::Ended(reason)) => return Err(HostFailure::ended(&reason).why),
                Err(failed) if failed.why.is_timeout() => {
                    let cause = "a watch was silent for long";
                    return match self.is_silent() {
                        true => Err(Failure::Unreachable(cause.into())),
                        false => Ok(Vec::new()),
                    };
                }
                Err(failed) => {
                    self.hosts.rotation.failed(self.used.host);
                    return Err(failed.why);
                }
            }
        }
    }
}

/// The messages of a watch: a line each, in a body that doesn't end by itself.
#[derive(Debug)]
pub(super) struct Messages {
    incoming: Incoming,
    /// This revision.
    begins_after: u64,
    /// What has come, and wasn't told yet.
    text: Vec<u8>,
    /// There is no line's end before.
    looked_at: usize,
}

impl Messages {
    /// Asks, and waits until the watch of each range has begun. What is told before the last has is told by none: the
    /// watch begins after it.
    pub(super) fn begin(
        host: &mut Exchange<'_>,
        ranges: &[Range],
        puts: bool,
    ) -> Result<Self, HostFailure> {
        let incoming = host.begin("/v3/watch", &request(ranges, puts))?;
        let mut messages = Messages {
            incoming,
            begins_after: 0,
            text: Vec::new(),
            looked_at: 0,
        };
        let mut begun = 0;
        while begun < ranges.len() {
            let after = match messages.next(host.connection)? {
                WatchMessage::Begun(revision) => {
                    begun += 1;
                    revision
                }
                WatchMessage::Events(events) => {
                    events.iter().map(|one| one.revision).max().unwrap_or(0)
                }
                WatchMessage::Ended(reason) => return Err(HostFailure::ended(&reason)),
            };
            messages.begins_after = messages.begins_after.max(after);
        }
        Ok(messages)
    }

    fn next(&mut self, connection: &mut Connection) -> Result<WatchMessage, HostFailure> {
        loop {
            if let Some(line) = self.line() {
                let message: Value =
                    serde_json::from_slice(&line).map_err(|_| HostFailure::surprised())?;
                return match watch_message(&message) {
                    Some(told) => Ok(told),
                    None => Err(HostFailure::not_understood(&message)),
                };
            }
            let before = self.text.len();
            connection.receive(&mut self.incoming, &mut self.text)?;
            if self.text.len() == before {
                let cause = "it has ended a watch";
                return Err(Effect::Unclear.by(Failure::Unreachable(cause.into())));
            }
        }
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let mut unseen = self.text[self.looked_at..].iter();
        let Some(at) = unseen.position(|byte| *byte == b'\n') else {
            self.looked_at = self.text.len();
            return None;
        };
        let rest = self.text.split_off(self.looked_at + at + 1);
        self.looked_at = 0;
        Some(std::mem::replace(&mut self.text, rest))
    }
}

/// What the servers are asked for, a line for each range. A watch that was to begin in the past would be told of
/// nothing for up to 100 ms.
fn request(ranges: &[Range], puts: bool) -> Vec<u8> {
    let create = |range: &Range| {
        let mut fields = range.bounds();
        if !puts {
            fields.insert("filters".into(), json!(["NOPUT"]));
        }
        format!("{}\n", json!({ "create_request": fields }))
    };
    ranges.iter().map(create).collect::<String>().into_bytes()
}
