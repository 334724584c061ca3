//! Locks in a Redis or Valkey server.

use std::borrow::Cow;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use ::redis::Value;

use self::failure::Failure;
use self::inbox::Letterbox;
use self::keys::{Keys, VALUE};
use self::reply::check_length;
use self::script::Script;
use self::server::{Answer, Server, Unanswered};
use super::{Acquired, Engine, Failed, Grants, IfTaken, Kept, Release, Released, Request};
use crate::base::claim::{Claim, Mode, Prefer};
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::base::fork::ForkLocal;
use crate::base::name::Key;
use crate::base::options::Options;
use crate::base::owner::Owner;
use crate::base::token::{Ending, Token};
use crate::base::value::Stored;

mod address;
mod connection;
mod failure;
mod inbox;
mod keys;
#[cfg(crosslock_mutant)]
mod mutant;
mod pool;
mod reply;
mod role;
mod script;
mod server;
#[cfg(feature = "tls")]
mod tls;

#[derive(Debug)]
pub(crate) struct RedisEngine {
    server: Arc<Server>,
    letterbox: ForkLocal<Letterbox>,
    acquire: Pair,
    renew: Pair,
    release: Pair,
    downgrade: Script,
    permits: Script,
}

/// A script for one name, and the one for several.
#[derive(Debug)]
struct Pair {
    one: Script,
    all: Script,
}

impl Pair {
    fn of(&self, claim: &Claim) -> &Script {
        if claim.has_many() {
            &self.all
        } else {
            &self.one
        }
    }
}

impl RedisEngine {
    /// Connects once, so that a wrong URL, password or address is told now.
    pub(crate) fn open(url: &str, options: &Options) -> Result<Self> {
        let address = address::parse(url)?;
        let server = Arc::new(Server::new(address, options)?);
        let engine = RedisEngine {
            letterbox: ForkLocal::new(Letterbox::new(server.clone())),
            server,
            acquire: Pair {
                one: Script::new(include_str!("../../../lua/lock_acquire.lua")),
                all: Script::new(include_str!("../../../lua/all_acquire.lua")),
            },
            renew: Pair {
                one: Script::new(include_str!("../../../lua/lock_renew.lua")),
                all: Script::new(include_str!("../../../lua/all_renew.lua")),
            },
            release: Pair {
                one: Script::new(include_str!("../../../lua/lock_release.lua")),
                all: Script::new(include_str!("../../../lua/all_release.lua")),
            },
            downgrade: Script::new(include_str!("../../../lua/lock_downgrade.lua")),
            permits: Script::new(include_str!("../../../lua/lock_permits.lua")),
        };
        let role = engine.server.greet();
        let role = role.map_err(|e| engine.error(None, e.failure))?;
        role.check(engine.server.place())?;
        Ok(engine)
    }

    /// Runs a script on the keys of a lock, and with `valued` on that of its value.
    fn run(
        &self,
        script: &Script,
        request: Request<'_>,
        valued: bool,
        arguments: &[&[u8]],
        deadline: &Deadline,
    ) -> Result<Answer, Failed> {
        let keys: Vec<_> = request.claim.keys().iter().map(Keys::of).collect();
        let passed = if valued { VALUE + 1 } else { VALUE };
        let passed: Vec<_> = keys
            .iter()
            .flat_map(|keys| keys.all().into_iter().take(passed))
            .collect();
        let call = script.call(&passed, arguments);
        self.server
            .call(&call, request.owner.process(), deadline)
            .map_err(|e| self.failed(request.claim, e))
    }

    /// Runs a script that ends or renews what is held, and stores the value, if there is one. The answer is a number;
    /// 0 when the lock isn't the owner's. The last of the arguments is empty when it isn't needed.
    fn change(
        &self,
        script: &Script,
        request: Request<'_>,
        [second, third, last]: [&str; 3],
        value: Option<&[u8]>,
        deadline: &Deadline,
    ) -> Result<(u64, bool)> {
        check_length(request.key().name(), value)?;
        let owner = request.owner.as_str().as_bytes();
        let arguments = [
            owner,
            second.as_bytes(),
            third.as_bytes(),
            value.unwrap_or_default(),
            last.as_bytes(),
        ];
        let passed = match (value, last) {
            (None, "") => 3,
            (Some(_), "") => 4,
            _ => 5,
        };
        match self.run(
            script,
            request,
            value.is_some(),
            &arguments[..passed],
            deadline,
        ) {
            Ok(answer) => match answer.value {
                Value::Int(number) => u64::try_from(number)
                    .map(|number| (number, answer.repeated))
                    .map_err(|_| self.surprised(request.key())),
                _ => Err(self.surprised(request.key())),
            },
            // Whatever stands there now, it isn't ours.
            Err(Failed {
                error: Error::Conflict { .. },
                ..
            }) => Ok((0, false)),
            Err(e) => Err(e.error),
        }
    }

    /// Sends a command about a name's value.
    fn command(&self, verb: &str, key: &Key, deadline: &Deadline) -> Result<Value> {
        let mut command = ::redis::cmd(verb);
        command.arg(Keys::of(key).all()[VALUE]);
        let answer = self.server.call(&command, std::process::id(), deadline);
        let answer = answer.map_err(|e| self.error(Some(key), e.failure))?;
        Ok(answer.value)
    }

    /// A conflict is found before anything is changed, if there is one name; any other error of a script may come after that.
    fn failed(&self, claim: &Claim, unanswered: Unanswered) -> Failed {
        let Unanswered { failure, sent } = unanswered;
        let is_clean = !claim.has_many() && matches!(failure, Failure::Conflict(_));
        let error = match failure {
            Failure::Conflict(reason) => conflict(claim.key.name(), claim.keys(), &reason),
            failure => self.error(Some(&claim.key), failure),
        };
        Failed {
            error,
            sent: sent && !is_clean,
        }
    }

    fn error(&self, key: Option<&Key>, failure: Failure) -> Error {
        let name = key.map(Key::name);
        let place = self.server.place();
        match failure {
            Failure::Unreachable(cause) => Error::unavailable(name, place, cause),
            Failure::Denied(cause) => Error::denied(name, place, cause),
            Failure::Conflict(reason) => match key {
                Some(key) => conflict(key.name(), slice::from_ref(key), &reason),
                None => Error::engine(name, place, reason),
            },
            Failure::Other(cause) => Error::engine(name, place, cause),
        }
    }

    /// The answer isn't shown: what isn't a Redis server may send back what it was told.
    fn surprised(&self, key: &Key) -> Error {
        let cause = "it doesn't answer a script as a Redis server does";
        Error::engine(Some(key.name()), self.server.place(), cause)
    }
}

impl Engine for RedisEngine {
    fn acquire(
        &self,
        request: Request<'_>,
        if_taken: IfTaken<'_>,
        deadline: &Deadline,
    ) -> Result<Acquired, Failed> {
        let (owner, ttl) = (request.owner.as_str(), millis(request.ttl));
        let mode = mode(request.claim, true);
        let start = [owner.as_bytes(), ttl.as_bytes(), mode.as_bytes()];
        let valued = request.claim.valued;
        let answer = match if_taken {
            IfTaken::Leave => self.run(
                self.acquire.of(request.claim),
                request,
                valued,
                &start,
                deadline,
            ),
            IfTaken::Wait { promise, inbox, .. } => {
                let ([owner, ttl, mode], promise) = (start, millis(promise));
                let inbox = inbox.unwrap_or_default().as_bytes();
                let arguments = [owner, ttl, mode, promise.as_bytes(), inbox];
                self.run(
                    self.acquire.of(request.claim),
                    request,
                    valued,
                    &arguments,
                    deadline,
                )
            }
        }?;
        // It may be a grant that was changed on its way.
        acquired(answer.value).ok_or_else(|| Failed {
            error: self.surprised(request.key()),
            sent: true,
        })
    }

    fn renew(&self, request: Request<'_>, deadline: &Deadline) -> Result<bool> {
        let arguments = [&millis(request.ttl), &*mode(request.claim, false), ""];
        let (renewed, _) = self.change(
            self.renew.of(request.claim),
            request,
            arguments,
            None,
            deadline,
        )?;
        Ok(renewed == 1)
    }

    fn store(&self, request: Request<'_>, value: &[u8], deadline: &Deadline) -> Result<Kept> {
        let arguments = [&millis(request.ttl), &*mode(request.claim, false), ""];
        let script = self.renew.of(request.claim);
        Ok(
            match self.change(script, request, arguments, Some(value), deadline)? {
                (1, false) => Kept::Yes,
                (1, true) => Kept::AfterAll,
                _ => Kept::No,
            },
        )
    }

    fn release(
        &self,
        request: Request<'_>,
        release: Release<'_>,
        deadline: &Deadline,
    ) -> Result<Released> {
        let counter = release.ending.counter().unwrap_or(0).to_string();
        let keep = match release.keep {
            Duration::ZERO => String::new(),
            keep => millis(keep.saturating_add(Duration::from_nanos(999_999))),
        };
        let arguments = [&counter, &*mode(request.claim, false), &keep];
        Ok(
            match self.change(
                self.release.of(request.claim),
                request,
                arguments,
                release.value,
                deadline,
            )? {
                (1, _) => Released::Done,
                (2, true) => Released::Unclear,
                _ => Released::NotOwner,
            },
        )
    }

    fn downgrade(
        &self,
        request: Request<'_>,
        last_used: u64,
        value: Option<&[u8]>,
        deadline: &Deadline,
    ) -> Result<Option<Token>> {
        let counter = Ending::Clean { last_used }.counter();
        let counter = counter.unwrap_or(0).to_string();
        let arguments = [&*counter, &millis(request.ttl), ""];
        let (token, _) = self.change(&self.downgrade, request, arguments, value, deadline)?;
        Ok((token > 0).then(|| Token::from_number(token)))
    }

    fn load(&self, key: &Key, deadline: &Deadline) -> Result<Stored> {
        stored(self.command("GET", key, deadline)?).ok_or_else(|| self.surprised(key))
    }

    fn remove(&self, key: &Key, deadline: &Deadline) -> Result<()> {
        self.command("DEL", key, deadline).map(drop)
    }

    fn value_key(&self, key: &Key) -> String {
        Keys::of(key).all()[VALUE].to_owned()
    }

    fn free_permits(&self, key: &Key, of: u32, deadline: &Deadline) -> Result<u32> {
        let keys = Keys::of(key);
        let keys = keys.all();
        let call = self.permits.call(&keys[..VALUE], &[]);
        let answer = self.server.call(&call, std::process::id(), deadline);
        match answer.map_err(|e| self.error(Some(key), e.failure))?.value {
            Value::Int(used) => {
                // LeaseMonitor otherwise, none is free.
                let used = u32::try_from(used).unwrap_or(of);
                Ok(of.saturating_sub(used))
            }
            _ => Err(self.surprised(key)),
        }
    }

    fn supports(&self, _mode: Mode) -> bool {
        true
    }

    fn is_owner(&self, request: Request<'_>, deadline: &Deadline) -> Result<bool> {
        if !request.claim.is_exclusive() || request.claim.has_many() {
            let arguments = ["0", &*mode(request.claim, false), ""];
            let script = self.renew.of(request.claim);
            let (kept, _) = self.change(script, request, arguments, None, deadline)?;
            return Ok(kept == 1);
        }
        let mut get = ::redis::cmd("GET");
        get.arg(Keys::of(request.key()).lock);
        match self.server.call(&get, request.owner.process(), deadline) {
            Ok(answer) => {
                let owner = request.owner.as_str().as_bytes();
                Ok(matches!(answer.value, Value::BulkString(held) if held == owner))
            }
            Err(Unanswered {
                failure: Failure::Conflict(_),
                ..
            }) => Ok(false),
            Err(e) => Err(self.error(Some(request.key()), e.failure)),
        }
    }

    fn has_line(&self) -> bool {
        true
    }

    fn listen(
        &self,
        key: &Key,
        owner: &Owner,
        start: Option<&Deadline>,
    ) -> Option<Box<dyn Grants>> {
        let letterbox = self.letterbox.get(owner.process());
        letterbox.listen(key.namespace(), owner, start)
    }

    fn place(&self) -> &str {
        self.server.place()
    }
}

/// The acquire script says CONFLICT for a counter, and which; WRONGTYPE is the server's word, about a lock.
fn conflict(name: &str, keys: &[Key], reason: &str) -> Error {
    let counter = reason.strip_prefix("CONFLICT ");
    let counter = counter.and_then(|rest| rest.strip_suffix(" holds no counter"));
    let (key, reason) = match counter {
        Some(counter) => (counter.to_owned(), "it holds no counter"),
        None => {
            let locks: Vec<_> = keys.iter().map(|key| Keys::of(key).lock).collect();
            let reason = "it, or one of the keys beside it, is of another type";
            (locks.join(" or "), reason)
        }
    };
    Error::Conflict {
        name: name.to_owned(),
        key,
        reason: reason.to_owned(),
    }
}

fn millis(ttl: Duration) -> String {
    ttl.as_millis().to_string()
}

/// As the scripts have it: see `lua/held.lua`. Only who asks has preferences.
fn mode(claim: &Claim, asks: bool) -> Cow<'static, str> {
    match (claim.mode, claim.prefer) {
        (Mode::Exclusive, Prefer::Writers) => "w".into(),
        (Mode::Exclusive, _) => "x".into(),
        (Mode::Shared, Prefer::Readers) if asks => "R".into(),
        (Mode::Shared, _) => "r".into(),
        (Mode::Permits { count, of }, _) => format!("{count}/{of}").into(),
    }
}

fn acquired(value: Value) -> Option<Acquired> {
    match value {
        Value::Int(token) => granted(token, None),
        Value::Array(parts) => match <[Value; 2]>::try_from(parts) {
            Ok([Value::Int(token), value]) => granted(token, Some(stored(value)?)),
            Ok(_) => None,
            Err(parts) => match &parts[..] {
                &[
                    Value::Int(remaining),
                    Value::Int(counter),
                    Value::Int(stood),
                    Value::Int(known),
                    Value::Int(length),
                    ref holder @ ..,
                ] => Some(Acquired::Taken {
                    remaining: remaining.try_into().ok().map(Duration::from_millis),
                    counter: counter.try_into().ok()?,
                    stood: stood == 1,
                    known: known == 1,
                    length: length.try_into().ok()?,
                    holder: holder.first().and_then(text),
                }),
                _ => None,
            },
        },
        _ => None,
    }
}

fn granted(token: i64, value: Option<Stored>) -> Option<Acquired> {
    let token = Token::from_number(token.try_into().ok()?);
    Some(Acquired::Granted { token, value })
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        _ => None,
    }
}

fn stored(value: Value) -> Option<Stored> {
    match value {
        Value::Nil => Some(None),
        Value::BulkString(bytes) => Some(Some(bytes.into())),
        _ => None,
    }
}

#[cfg(test)]
pub(super) fn check_url(url: &str) -> Result<()> {
    address::parse(url).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_answers_are_no_grant() {
        for value in [
            Value::Nil,
            Value::Int(-5),
            Value::Okay,
            Value::Array(vec![]),
            Value::Array(vec![Value::Int(5), Value::Okay]),
        ] {
            assert_eq!(acquired(value), None);
        }
        let forever = [-1, 4, 0, 0, 0].map(Value::Int);
        let taken = |holder| Acquired::Taken {
            remaining: None,
            counter: 4,
            stood: false,
            known: false,
            length: 0,
            holder,
        };
        let mut forever = forever.to_vec();
        assert_eq!(acquired(Value::Array(forever.clone())), Some(taken(None)));
        forever.push(Value::BulkString(b"host/1/2".into()));
        let holder = Some("host/1/2".to_owned());
        assert_eq!(acquired(Value::Array(forever)), Some(taken(holder)));
        let token = Token {
            number: 7,
            abandoned: true,
        };
        let granted = |value| Some(Acquired::Granted { token, value });
        assert_eq!(acquired(Value::Int(7)), granted(None));
        let with = |value| Value::Array(vec![Value::Int(7), value]);
        assert_eq!(acquired(with(Value::Nil)), granted(Some(None)));
        let value = Some(b"1".as_slice().into());
        let text = Value::BulkString(b"1".into());
        assert_eq!(acquired(with(text)), granted(Some(value)));
    }
}
