//! The commands of the engine: what is sent to the server about a name, and what its answers mean.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use ::redis::Value;

use self::call::{Call, Needs};
use super::answers::stored;
use super::keys::{Keys, VALUE};
use super::reply::check_length;
use super::script::{Order, Script};
use super::server::{Answer, Server};
use super::servers::{Route, Servers};
use crate::base::claim::{Claim, Mode, Prefer};
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::base::name::Key;
use crate::base::token::{Ending, Token};
use crate::base::value::Stored;
use crate::engine::{Gone, Outcome, Release, Request, Unanswered};

mod acquire;
mod adopt;
mod call;
mod errors;
mod operate;
mod parts;
mod raise;
mod renew;
mod send;

/// The scripts, and the server that runs them.
#[derive(Debug)]
pub(super) struct Commands {
    servers: Arc<dyn Servers>,
    acquire: Pair,
    renew: Pair,
    release: Pair,
    downgrade: Script,
    permits: Script,
    adopt: Pair,
    raise: Script,
    inspect: Script,
    break_lock: Script,
    are_locks: Script,
    remove: Script,
}

/// A script for one name, and the one for several.
#[derive(Debug)]
struct Pair {
    one: Script,
    all: Script,
}

impl Pair {
    fn new(name: &str) -> Self {
        Pair {
            one: Script::new(&["lock/", name].concat()),
            all: Script::new(&["all/", name].concat()),
        }
    }

    fn of(&self, claim: &Claim) -> &Script {
        if claim.keys().len() > 1 {
            &self.all
        } else {
            &self.one
        }
    }
}

/// The arguments of a script that changes what is held, after the owner.
struct Change<'a> {
    arguments: [Cow<'a, str>; 2],
    value: Option<&'a [u8]>,
    /// What follows the value. Empty when it isn't needed.
    last: Cow<'a, str>,
    needs: Needs,
}

impl<'a> Change<'a> {
    fn call(self, script: &'a Script, request: Request<'a>) -> Call<'a> {
        let passed = match (self.value, &*self.last) {
            (None, "") => 3,
            (Some(_), "") => 4,
            _ => 5,
        };
        let needs = Needs {
            value: self.value.is_some(),
            ..self.needs
        };
        let [first, second] = self.arguments;
        let arguments = [
            request.owner.as_str().as_bytes().into(),
            bytes(first),
            bytes(second),
            self.value.unwrap_or_default().into(),
            bytes(self.last),
        ];
        Call::new(script, request, needs, arguments.into_iter().take(passed))
    }

    fn new(first: impl Into<Cow<'a, str>>, second: impl Into<Cow<'a, str>>) -> Self {
        Change {
            arguments: [first.into(), second.into()],
            value: None,
            last: "".into(),
            needs: Needs::default(),
        }
    }
}

impl Commands {
    pub(super) fn new(servers: Arc<dyn Servers>) -> Self {
        Commands {
            servers,
            acquire: Pair::new("acquire"),
            renew: Pair::new("renew"),
            release: Pair::new("release"),
            downgrade: Script::new("lock/downgrade"),
            permits: Script::new("semaphore/permits"),
            adopt: Pair::new("adopt"),
            raise: Script::new("all/raise"),
            inspect: Script::new("lock/inspect"),
            break_lock: Script::new("lock/break"),
            are_locks: Script::new("list/locks"),
            remove: Script::new("lock/remove"),
        }
    }

    pub(super) fn place(&self) -> &str {
        &self.servers.settings().shown
    }

    /// Whether replicas must have what is granted.
    pub(super) fn asks_replicas(&self) -> bool {
        self.servers.settings().replicas.is_some()
    }

    /// Whether another server may have a lock than the one that grants it.
    pub(super) fn is_on_its_way(&self, key: &Key) -> bool {
        self.servers.is_on_its_way(Route::to(&Keys::of(key).lock))
    }

    /// The server of a lock, if it is known without asking.
    pub(super) fn server_of(&self, key: &Key) -> Option<Arc<Server>> {
        self.servers.known(Route::to(&Keys::of(key).lock))
    }

    /// Does what is asked with a lease whose names are on one slot.
    pub(super) fn change_lease(
        &self,
        request: Request<'_>,
        change: crate::engine::Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        use crate::engine::Change;
        match change {
            Change::Renew => self.renew(request, deadline),
            Change::Verify => self.is_owner(request, deadline),
            Change::Release(release) => self.release(request, release, deadline),
            Change::Store(value) => self.store(request, value, deadline),
            Change::Downgrade { last_used, value } => self
                .downgrade(request, last_used, value, deadline)
                .map(Outcome::from),
            Change::Adopt { from, last_used } => self
                .adopt(request, from, last_used, deadline)
                .map(Outcome::from),
            Change::GiveAway => Ok(Outcome::DONE),
        }
    }

    fn store(&self, request: Request<'_>, value: &[u8], deadline: &Deadline) -> Result<Outcome> {
        check_length(request.key().name(), Some(value))?;
        let call = self.renewing(millis(request.ttl), request, Some(value));
        let answer = self.send(&call, deadline);
        Ok(match self.changed(request, answer)? {
            (1, false) => Outcome::DONE,
            (1, true) => Outcome::DONE_AGAIN,
            _ => Outcome::NOT_OWNER,
        })
    }

    fn release(
        &self,
        request: Request<'_>,
        release: Release<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        check_length(request.key().name(), release.value)?;
        let call = self.releasing(request, release);
        let answer = self.send(&call, deadline);
        let was_repeated = matches!(&answer, Ok(Answer { repeated: true, .. }));
        let has_moved = matches!(&answer, Ok(Answer { moved: true, .. }));
        let released = self.released(request, answer)?;
        let unknown = match released {
            _ if release.value.is_none() => return Ok(released),
            // The second copy wrote nothing: what replicas have of that is no proof that they have the value.
            Outcome::Done(_) | Outcome::Gone(Gone::Unclear)
                if was_repeated && self.asks_replicas() =>
            {
                "the answer was lost that says whether replicas have its value"
            }
            // It may not have had the lease, and then it isn't the first copy that has ended it there.
            Outcome::Gone(Gone::Unclear) if has_moved => {
                "the answer was lost of a server whose place another has taken"
            }
            _ => return Ok(released),
        };
        Err(self.unavailable(request.key(), unknown))
    }

    fn released(
        &self,
        request: Request<'_>,
        answer: Result<Answer, Unanswered>,
    ) -> Result<Outcome> {
        Ok(match self.changed(request, answer)? {
            (1, _) => Outcome::DONE,
            (2, true) => Outcome::Gone(Gone::Unclear),
            (3, _) => Outcome::BROKEN,
            _ => Outcome::NOT_OWNER,
        })
    }

    fn releasing<'a>(&'a self, request: Request<'a>, release: Release<'a>) -> Call<'a> {
        let counter = release.ending.counter().unwrap_or(0).to_string();
        let keep = match release.keep {
            Duration::ZERO => String::new(),
            keep => millis(keep.saturating_add(Duration::from_nanos(999_999))),
        };
        let change = Change {
            value: release.value,
            last: keep.into(),
            needs: Needs {
                replicas: release.value.is_some(),
                // A master that was replaced would say yes, and leave the lock taken at its successor.
                ..needs_of_renewal(request.ttl)
            },
            ..Change::new(counter, mode(request.claim, false))
        };
        change
            .call(self.release.of(request.claim), request)
            .in_order(Order::TakesBack(request.owner.as_str()))
    }

    pub(super) fn downgrade(
        &self,
        request: Request<'_>,
        last_used: u64,
        value: Option<&[u8]>,
        deadline: &Deadline,
    ) -> Result<Option<Token>> {
        let counter = Ending::Clean { last_used }.counter();
        let counter = counter.unwrap_or(0).to_string();
        let change = Change {
            value,
            needs: needs_of_renewal(request.ttl),
            ..Change::new(counter, millis(request.ttl))
        };
        let (token, _) = self.change(&self.downgrade, request, change, deadline)?;
        Ok((token > 0).then(|| Token::from_number(token)))
    }

    pub(super) fn load(&self, key: &Key, deadline: &Deadline) -> Result<Stored> {
        stored(self.get(key, deadline)?).ok_or_else(|| self.surprised(key))
    }

    pub(super) fn remove(&self, key: &Key, deadline: &Deadline) -> Result<()> {
        let keys = Keys::of(key);
        let keys = keys.all();
        // The value that one look shows is deleted by the next call: one that comes late finds another, and leaves it. Where it
        // is stored anew all the time, a call that comes late deletes no more than one that comes now.
        const LOOKS: usize = 20;
        let mut seen = Vec::new();
        for looks in 0.. {
            let arguments = [if looks < LOOKS { &seen[..] } else { b"*" }];
            let call = self.remove.call(&keys, &arguments);
            let answer = self.servers.call(Route::to(keys[0]), &call, deadline);
            match answer.map_err(|e| self.error(Some(key), e.error))?.value {
                Value::BulkString(found) if found.is_empty() => return Ok(()),
                Value::BulkString(found) => seen = found,
                _ => break,
            }
        }
        Err(self.surprised(key))
    }

    pub(super) fn free_permits(&self, key: &Key, of: u32, deadline: &Deadline) -> Result<u32> {
        let keys = Keys::of(key);
        let keys = keys.all();
        let call = self.permits.call(&keys[..VALUE], &[]);
        let answer = self.servers.call(Route::to(keys[0]), &call, deadline);
        match answer.map_err(|e| self.error(Some(key), e.error))?.value {
            Value::Int(used) => {
                // Held otherwise, none is free.
                let used = u32::try_from(used).unwrap_or(of);
                Ok(of.saturating_sub(used))
            }
            _ => Err(self.surprised(key)),
        }
    }

    /// Runs a script that changes what is held, and gives what [`Commands::changed`] does.
    fn change(
        &self,
        script: &Script,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<(u64, bool)> {
        check_length(request.key().name(), change.value)?;
        let call = change.call(script, request);
        self.changed(request, self.send(&call, deadline))
    }

    /// The number of an answer, 0 when the lock isn't the owner's, and whether the server was asked twice. What too few
    /// replicas have may be lost.
    fn changed(
        &self,
        request: Request<'_>,
        answer: Result<Answer, Unanswered>,
    ) -> Result<(u64, bool)> {
        let key = request.key();
        let answer = match answer {
            Ok(answer) => answer,
            // Whatever stands there now, it isn't ours.
            Err(Unanswered {
                error: Error::Conflict { .. },
                ..
            }) => return Ok((0, false)),
            Err(e) => return Err(e.error),
        };
        let Value::Int(number) = answer.value else {
            return Err(self.surprised(key));
        };
        let number = u64::try_from(number).map_err(|_| self.surprised(key))?;
        let is_done = number == 1 || number > 3;
        match answer.shortfall.filter(|_| is_done) {
            Some(shortfall) => Err(self.unconfirmed(key, shortfall)),
            None => Ok((number, answer.repeated)),
        }
    }

    /// Sends a command about a name's value.
    fn get(&self, key: &Key, deadline: &Deadline) -> Result<Value> {
        let mut command = ::redis::cmd("GET");
        let keys = Keys::of(key);
        command.arg(keys.all()[VALUE]);
        let answer = self.servers.call(Route::to(&keys.lock), &command, deadline);
        let answer = answer.map_err(|e| self.error(Some(key), e.error))?;
        Ok(answer.value)
    }
}

fn needs_of_renewal(ttl: Duration) -> Needs {
    Needs {
        replicas: true,
        known_within: Some(known_within(ttl)),
        ..Needs::default()
    }
}

/// How old a look-up of the master may be that renews a lease. One that was replaced, and doesn't know it, still renews.
/// With a renewal each third of the ttl, the successor has the next one by 7/12 of a ttl after it took over, and its copy of
/// the lease lasts for 11/12.
fn known_within(ttl: Duration) -> Duration {
    ttl / 4
}

fn bytes<'a>(text: impl Into<Cow<'a, str>>) -> Cow<'a, [u8]> {
    match text.into() {
        Cow::Borrowed(text) => text.as_bytes().into(),
        Cow::Owned(text) => text.into_bytes().into(),
    }
}

fn millis(ttl: Duration) -> String {
    ttl.as_millis().to_string()
}

/// As the scripts have it: see `lua/lib/mode.lua`. Only who asks has preferences.
fn mode(claim: &Claim, asks: bool) -> Cow<'static, str> {
    match (claim.mode, claim.prefer) {
        (Mode::Exclusive, Prefer::Writers) => "w".into(),
        (Mode::Exclusive, _) => "x".into(),
        (Mode::Shared, Prefer::Readers) if asks => "R".into(),
        (Mode::Shared, _) => "r".into(),
        (Mode::Permits { count, of }, _) => format!("{count}/{of}").into(),
    }
}
