//! The commands of the engine: what is sent to the server about a name, and what its answers mean.
//!
//! Behind the owner, the scripts of an owner's verbs are given:
//!
//! | verb | script | arguments | answer |
//! |---|---|---|---|
//! | acquire | `acquire` | ttl, mode, when its heartbeat is overdue, inbox, server | a token, with the value if that was asked for; how it is taken; 0: broken |
//! | renew, verify, store | `renew` | ttl, mode, value, token | 1; 2: broken |
//! | release | `release` | counter, mode, value, for how long it stays taken | 1; 2: perhaps by the same release before; 3: broken |
//! | downgrade | `downgrade` | counter, ttl, value | a token |
//! | adopt | `adopt` | ttl, mode, the other owner, counter | a token, with the value if that was asked for |
//! | raise | `raise` | ttl, token | 1; 2: broken |
//!
//! To all but the first, 0 says that the lock isn't the owner's. `change` has them.

use std::{borrow::Cow, slice, sync::Arc, time::Duration};

use ::redis::Value;

use super::script::{Call, Command, Needs, Route, SameConnection, Script};
use super::server::{Answer, Server};
use super::{
    failure::Failure,
    keys::{Keys, VALUE},
    reply::text_of,
    servers::Servers,
    settings::Kind,
    shortfall::Shortfall,
};
use crate::base::{Cause, Claim, Deadline, Error, Key, Mode, Prefer, Result, Stored, Token};
use crate::engine::heartbeat::{Acquired, IfTaken, Taken};
use crate::engine::{Failed, Request, denied};

const LOGIN: &str = "user, password and permissions";

/// What sends the scripts, and the server that runs them.
#[derive(Debug)]
pub(super) struct LockScripts {
    pub(super) servers: Arc<Servers>,
}

impl LockScripts {
    pub(super) fn new(servers: Arc<Servers>) -> Self {
        LockScripts { servers }
    }

    /// The script of that name in `lua/`, such as `lock/acquire`.
    fn script(name: &str) -> &'static Script {
        let script = Script::all().iter().find(|(known, _)| *known == name);
        &script
            .unwrap_or_else(|| panic!("there is no lua/{name}.lua"))
            .1
    }

    /// The call of a script that isn't sent for an owner.
    pub(super) fn call(&self, script: &str, keys: &[&str], arguments: &[&[u8]]) -> Call<'_> {
        Self::script(script).call(keys, arguments)
    }

    /// The call of an owner's verb: the owner is the first argument.
    pub(super) fn call_for<'a>(
        &'a self,
        request: Request<'a>,
        [one, several]: [&str; 2],
        needs: Needs<'a>,
        arguments: &[Option<&[u8]>],
    ) -> Call<'a> {
        let needs = Needs {
            sharded_channel: needs.value && self.is_cluster(),
            ..needs
        };
        let has_several = request.claim.keys().len() > 1;
        let script = Self::script(if has_several { several } else { one });
        let owner = Some(request.owner.as_str().as_bytes());
        script.call_for(request.claim, needs, &[&[owner], arguments].concat())
    }

    pub(super) fn endpoint(&self) -> &str {
        &self.servers.settings().shown
    }

    /// The keys of a script that changes the value: those who watch it hear on a channel of that name, which in a
    /// cluster is a sharded one. Then the key is there twice.
    pub(super) fn with_channel<'a>(&self, keys: &'a Keys) -> Vec<&'a str> {
        let all = keys.all();
        let channel = self.is_cluster().then_some(all[VALUE]);
        all.into_iter().chain(channel).collect()
    }

    pub(super) fn is_cluster(&self) -> bool {
        self.servers.settings().kind == Kind::Cluster
    }

    /// Whether replicas must have a lease before it counts.
    pub(super) fn asks_replicas(&self) -> bool {
        self.servers.settings().replicas.is_some()
    }

    /// Whether a lock's slot is on its way: then another server than the one that grants the lock may have it.
    pub(super) fn is_on_its_way(&self, key: &Key) -> bool {
        self.servers.is_on_its_way(Route::to(&Keys::of(key).lock))
    }

    /// The server of a lock, if it is known without asking.
    pub(super) fn server_of(&self, key: &Key) -> Option<Arc<Server>> {
        self.servers.known(Route::to(&Keys::of(key).lock))
    }

    /// Returns the server that answered, too.
    pub(super) fn acquire(
        &self,
        request: Request<'_>,
        if_taken: IfTaken<'_>,
        deadline: &Deadline,
    ) -> Result<(Acquired, Arc<Server>), Failed> {
        let call = self.acquisition(request, if_taken, None);
        let answer = self.send(request, &call, deadline)?;
        let Answer {
            value,
            shortfall,
            server,
            ..
        } = answer;
        let acquired = self.acquired(request, value)?;
        match (&acquired, shortfall) {
            (Acquired::Granted { .. }, Some(shortfall)) => {
                Err(Failed::sent(self.unconfirmed(request.key(), shortfall)))
            }
            _ => Ok((acquired, server)),
        }
    }

    /// What an answer to an acquisition means.
    pub(super) fn acquired(&self, request: Request<'_>, value: Value) -> Result<Acquired, Failed> {
        // It may be a grant that was changed on its way.
        let unit = match request.claim.mode {
            Mode::Task => Duration::from_micros,
            // The server's clock counts whole milliseconds.
            _ => |millis| Duration::from_millis(millis + 1),
        };
        let acquired = acquired(value, unit);
        acquired.ok_or_else(|| Failed::sent(self.surprised(request.key())))
    }

    /// `tokens_from` is what its token is no smaller than, in place of the server's time.
    pub(super) fn acquisition<'a>(
        &'a self,
        request: Request<'a>,
        if_taken: IfTaken<'_>,
        tokens_from: Option<u64>,
    ) -> Call<'a> {
        let (ttl, mode) = (millis(request.ttl), mode(request.claim, true));
        let (within, inbox) = match if_taken {
            IfTaken::Leave => (None, None),
            IfTaken::Wait {
                heartbeat_within,
                inbox,
            } => (Some(millis(heartbeat_within)), inbox),
        };
        let tokens_from = tokens_from.map(|from| from.to_string());
        let arguments = [
            Some(&*ttl),
            Some(&*mode),
            within.as_deref(),
            within
                .as_ref()
                .map(|_| inbox.map_or("", |inbox| inbox.channel)),
            inbox.and_then(|inbox| inbox.server),
            tokens_from.as_deref(),
        ];
        let needs = Needs {
            value: request.claim.has_value,
            replicas: true,
            same_connection: SameConnection::Asks(request.owner.as_str()),
            ..Needs::default()
        };
        let arguments = arguments.map(|one| one.map(str::as_bytes));
        let script = match request.claim.mode {
            Mode::Task => ["task/take"; 2],
            _ => ["lock/acquire", "all/acquire"],
        };
        self.call_for(request, script, needs, &arguments)
    }

    /// Sends it to the server of its names.
    pub(super) fn send(
        &self,
        request: Request<'_>,
        call: &Call<'_>,
        deadline: &Deadline,
    ) -> Result<Answer, Failed> {
        let route = Route {
            key: call.locks.first().map_or("", String::as_str),
            known_within: Some(known_within(request.ttl)),
        };
        let answer = self.servers.call(route, call, deadline);
        answer.map_err(|e| self.failed(request.claim, e))
    }

    /// The answer of a name's server to a command that isn't sent for an owner.
    pub(super) fn value(
        &self,
        key: Option<&Key>,
        route: Route<'_>,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Value> {
        let answer = self.servers.call(route, command, deadline);
        Ok(answer.map_err(|e| self.error(key, e.error))?.value)
    }

    /// The same, if replicas have what it wrote, where the options say so.
    pub(super) fn confirmed(
        &self,
        key: &Key,
        route: Route<'_>,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Value> {
        let answer = self.servers.call(route, command, deadline);
        let answer = answer.map_err(|e| self.error(Some(key), e.error))?;
        match answer.shortfall {
            Some(shortfall) => Err(self.unconfirmed(key, shortfall)),
            None => Ok(answer.value),
        }
    }

    pub(super) fn unconfirmed(&self, key: &Key, shortfall: Shortfall) -> Error {
        let error = self.unavailable(key, shortfall.to_string());
        error.advising("check its replicas")
    }

    pub(super) fn unavailable(&self, key: &Key, cause: impl Into<Cause>) -> Error {
        Error::unavailable(Some(key.name()), self.endpoint(), cause)
    }

    /// With one name, a script finds a conflict before it changes anything. Any other error may come after a change.
    pub(super) fn failed(&self, claim: &Claim, failed: Failed<Failure>) -> Failed {
        let Failed { error, sent } = failed;
        let is_clean = claim.keys().len() == 1 && matches!(error, Failure::Conflict(_));
        let error = match error {
            Failure::Conflict(reason) => conflict(claim.key.name(), claim.keys(), &reason),
            failure => self.error(Some(&claim.key), failure),
        };
        Failed {
            error,
            sent: sent && !is_clean,
        }
    }

    pub(super) fn error(&self, key: Option<&Key>, failure: Failure) -> Error {
        let name = key.map(Key::name);
        let endpoint = self.endpoint();
        match failure {
            Failure::Closed(cause)
            | Failure::TimedOut(cause)
            | Failure::Demoted(cause)
            | Failure::TryAgain(cause)
            | Failure::ClusterDown(cause)
            | Failure::Busy(cause)
            | Failure::Abstains(cause) => Error::unavailable(name, endpoint, cause),
            Failure::Redirected(redirect) => {
                Error::unavailable(name, endpoint, redirect.to_string())
            }
            Failure::Denied(cause) => denied(name, endpoint, LOGIN, cause),
            Failure::Conflict(reason) => match key {
                Some(key) => conflict(key.name(), slice::from_ref(key), &reason),
                None => Error::engine(name, endpoint, self.advice(), reason),
            },
            Failure::Other(cause) => Error::engine(name, endpoint, self.advice(), cause),
        }
    }

    /// What to check when the server fails.
    fn advice(&self) -> &'static str {
        match self.endpoint().split_once("://") {
            Some(("rediss" | "valkeys", _)) => "host, port, certificate and the server's log",
            Some(("unix", _)) => "the socket and the server's log",
            _ => "host, port and the server's log",
        }
    }

    /// The error doesn't show the answer: another program than Redis may send back what it was sent.
    pub(super) fn surprised(&self, key: &Key) -> Error {
        let cause = "it doesn't answer a script like a Redis server";
        Error::engine(Some(key.name()), self.endpoint(), self.advice(), cause)
    }
}

/// How old the last look-up of a master may be when a lease is renewed there. A master that was replaced, and doesn't
/// know it, still renews. The ttl has three renewals, so the successor gets one within 7/12 of the ttl after it took
/// over. Its copy of the lease lasts for 11/12.
fn known_within(ttl: Duration) -> Duration {
    ttl / 4
}

pub(super) fn millis(ttl: Duration) -> String {
    ttl.as_millis().to_string()
}

/// The mode as the scripts know it: see `lua/lib/mode.lua`. Only a request for the lock has preferences.
pub(super) fn mode(claim: &Claim, asks: bool) -> Cow<'static, str> {
    match (claim.mode, claim.prefer) {
        (Mode::Exclusive, Prefer::Writers) => "w".into(),
        (Mode::Exclusive, _) => "x".into(),
        (Mode::Shared, Prefer::Readers) if asks => "R".into(),
        (Mode::Shared, _) => "r".into(),
        (Mode::Task, _) => "t".into(),
        (permits, _) => permits.to_string().into(),
    }
}

/// `unit` is that of the time for which a lock stays taken.
fn acquired(value: Value, unit: fn(u64) -> Duration) -> Option<Acquired> {
    match value {
        Value::Array(parts) if parts.len() != 2 => taken(&parts, unit).map(Acquired::Taken),
        value => Some(match number(value)? {
            (0, None) => Acquired::Broken,
            (token, value) => Acquired::Granted {
                token: Token::from_number(token),
                value,
            },
        }),
    }
}

fn taken(parts: &[Value], unit: fn(u64) -> Duration) -> Option<Taken> {
    match *parts {
        [
            Value::Int(remaining),
            Value::Int(counter),
            Value::Int(was_queued),
            Value::Int(is_handed_on),
            Value::Int(queue_length),
            ref holder @ ..,
        ] => Some(Taken {
            remaining: remaining.try_into().ok().map(unit),
            counter: counter.try_into().ok()?,
            was_queued: was_queued == 1,
            is_handed_on: is_handed_on == 1,
            queue_length: queue_length.try_into().ok()?,
            holder: holder.first().and_then(text_of).map(str::to_owned),
        }),
        _ => None,
    }
}

/// A token, or another number that a script answers; with the value, if that was asked for.
pub(super) fn number(value: Value) -> Option<(u64, Option<Stored>)> {
    match value {
        Value::Int(number) => Some((number.try_into().ok()?, None)),
        Value::Array(parts) => match <[Value; 2]>::try_from(parts).ok()? {
            [Value::Int(number), value] => Some((number.try_into().ok()?, Some(stored(value)?))),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn stored(value: Value) -> Option<Stored> {
    match value {
        Value::Nil => Some(None),
        Value::BulkString(bytes) => Some(Some(bytes.into())),
        _ => None,
    }
}

/// The acquire script says CONFLICT for a counter, and which; WRONGTYPE is the server's word, about a lock.
fn conflict(name: &str, keys: &[Key], reason: &str) -> Error {
    let counter = reason.strip_prefix("CONFLICT ");
    let counter = counter.and_then(|rest| rest.strip_suffix(" holds no counter"));
    let (key, reason) = match counter {
        Some(counter) => (counter.to_owned(), "it doesn't contain a counter"),
        None => {
            let locks: Vec<_> = keys.iter().map(|key| Keys::of(key).lock).collect();
            let reason = "it or a key beside it has another type";
            (locks.join(" or "), reason)
        }
    };
    Error::Conflict {
        name: name.to_owned(),
        key,
        reason: reason.to_owned(),
    }
}
