//! Locks in a Redis or Valkey server.

use std::sync::Arc;
use std::time::Duration;

use ::redis::Value;

use self::failure::Failure;
use self::inbox::Letterbox;
use self::script::Script;
use self::server::{Answer, Server, Unanswered};
use super::{Acquired, Engine, Failed, Grants, IfTaken, Released, Request};
use crate::clock::Deadline;
use crate::error::{Error, Result};
use crate::fence::Token;
use crate::lease::Owner;
use crate::name::Key;
use crate::options::Options;
use crate::per_process::PerProcess;

mod address;
mod connection;
mod failure;
mod inbox;
#[cfg(crosslock_mutant)]
mod mutant;
mod resolver;
mod script;
mod server;
mod socket;
#[cfg(feature = "tls")]
mod tls;

#[derive(Debug)]
pub(crate) struct RedisEngine {
    server: Arc<Server>,
    letterbox: PerProcess<Letterbox>,
    acquire: Script,
    renew: Script,
    release: Script,
}

impl RedisEngine {
    /// Connects once, so that a wrong URL, password or address is told now.
    pub(crate) fn open(url: &str, options: &Options) -> Result<Self> {
        let address = address::parse(url)?;
        let server = Arc::new(Server::new(address, options)?);
        let engine = RedisEngine {
            letterbox: PerProcess::new(Letterbox::new(server.clone())),
            server,
            acquire: Script::new(include_str!("../../../lua/lock_acquire.lua")),
            renew: Script::new(include_str!("../../../lua/lock_renew.lua")),
            release: Script::new(include_str!("../../../lua/lock_release.lua")),
        };
        let pinged = engine.server.ping();
        pinged.map_err(|e| engine.error(None, e.failure))?;
        Ok(engine)
    }

    /// Runs a script on the keys of a lock.
    fn run(
        &self,
        script: &Script,
        request: Request<'_>,
        arguments: &[&str],
        deadline: &Deadline,
    ) -> Result<Answer, Failed> {
        let keys = Keys::of(request.key);
        let keys = keys.all();
        let call = script.call(&keys, arguments);
        self.server
            .call(&call, request.owner.process(), deadline)
            .map_err(|e| self.failed(request.key, e))
    }

    /// A conflict is found before anything is changed; any other error of a script may come after that.
    fn failed(&self, key: &Key, unanswered: Unanswered) -> Failed {
        let Unanswered { failure, sent } = unanswered;
        let sent = sent && !matches!(failure, Failure::Conflict(_));
        Failed {
            error: self.error(Some(key), failure),
            sent,
        }
    }

    fn error(&self, key: Option<&Key>, failure: Failure) -> Error {
        let name = key.map(Key::name);
        let place = self.server.place();
        match failure {
            Failure::Unreachable(cause) => Error::unavailable(name, place, cause),
            Failure::Denied(cause) => Error::denied(name, place, cause),
            Failure::Conflict(reason) => match key {
                Some(key) => conflict(key, &reason),
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
        let answer = match if_taken {
            IfTaken::Leave => self.run(&self.acquire, request, &[owner, &ttl], deadline),
            IfTaken::Wait { promise, inbox, .. } => {
                let arguments = [owner, &ttl, &millis(promise), inbox.unwrap_or_default()];
                self.run(&self.acquire, request, &arguments, deadline)
            }
        }?;
        acquired(&answer.value).ok_or_else(|| self.surprised(request.key).into())
    }

    fn renew(&self, request: Request<'_>, deadline: &Deadline) -> Result<bool> {
        let arguments = [request.owner.as_str(), &millis(request.ttl)];
        match self.run(&self.renew, request, &arguments, deadline) {
            Ok(Answer {
                value: Value::Int(renewed),
                ..
            }) => Ok(renewed == 1),
            Ok(_) => Err(self.surprised(request.key)),
            // Whatever stands there now, it isn't ours.
            Err(Failed {
                error: Error::Conflict { .. },
                ..
            }) => Ok(false),
            Err(e) => Err(e.error),
        }
    }

    fn release(
        &self,
        request: Request<'_>,
        last_used: Option<u64>,
        deadline: &Deadline,
    ) -> Result<Released> {
        let counter = last_used.map_or(0, Token::released).to_string();
        let arguments = [request.owner.as_str(), &counter];
        match self.run(&self.release, request, &arguments, deadline) {
            Ok(Answer {
                value: Value::Int(1),
                ..
            }) => Ok(Released::Done),
            Ok(Answer {
                value: Value::Int(0),
                repeated: true,
            }) => Ok(Released::Unclear),
            Ok(Answer {
                value: Value::Int(0),
                ..
            }) => Ok(Released::NotOwner),
            Ok(_) => Err(self.surprised(request.key)),
            Err(Failed {
                error: Error::Conflict { .. },
                ..
            }) => Ok(Released::NotOwner),
            Err(e) => Err(e.error),
        }
    }

    fn is_owner(&self, request: Request<'_>, deadline: &Deadline) -> Result<bool> {
        let mut get = ::redis::cmd("GET");
        get.arg(Keys::of(request.key).lock);
        match self.server.call(&get, request.owner.process(), deadline) {
            Ok(answer) => {
                let owner = request.owner.as_str().as_bytes();
                Ok(matches!(answer.value, Value::BulkString(held) if held == owner))
            }
            Err(Unanswered {
                failure: Failure::Conflict(_),
                ..
            }) => Ok(false),
            Err(e) => Err(self.error(Some(request.key), e.failure)),
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

/// The acquire script says CONFLICT for the counter; WRONGTYPE is the server's word, about the lock.
fn conflict(key: &Key, reason: &str) -> Error {
    let keys = Keys::of(key);
    let (key_of, reason) = if reason.starts_with("CONFLICT") {
        (keys.fence().to_owned(), "it holds no counter")
    } else {
        (
            keys.lock,
            "it, or its :fence, :queue or :waiters, is of another type",
        )
    };
    Error::Conflict {
        name: key.name().to_owned(),
        key: key_of,
        reason: reason.to_owned(),
    }
}

fn millis(ttl: Duration) -> String {
    ttl.as_millis().to_string()
}

fn acquired(value: &Value) -> Option<Acquired> {
    match value {
        Value::Int(number) => {
            let number = u64::try_from(*number).ok()?;
            Some(Acquired::Granted(Token::from_number(number)))
        }
        Value::Array(parts) => match parts[..] {
            [
                Value::Int(remaining),
                Value::Int(counter),
                Value::Int(stood),
            ] => {
                let remaining = remaining.try_into().ok().map(Duration::from_millis);
                let counter = counter.try_into().ok()?;
                Some(Acquired::Taken {
                    remaining,
                    counter,
                    stood: stood == 1,
                })
            }
            _ => None,
        },
        _ => None,
    }
}

/// The keys of a name, all on one cluster slot.
#[derive(Debug, PartialEq)]
struct Keys {
    lock: String,
    /// The names of the others, one behind the other: memory is asked for once.
    others: String,
    tag: usize,
}

const FENCE: &str = ":fence";
const QUEUE: &str = ":queue";
const WAITERS: &str = ":waiters";

impl Keys {
    fn of(key: &Key) -> Self {
        let (namespace, name) = (key.namespace(), key.name());
        if !namespace.is_empty() {
            let lock = ["{", namespace, ":", name, "}"].concat();
            return Keys::beside(lock, None);
        }
        // Without a namespace the lock is where other programs have it.
        let tag = if !has_hash_tag(name) {
            ["{", name, "}"].concat()
        } else if name.starts_with('{') && name.ends_with('}') {
            // Those of `{x}` are not those of `x`.
            [name, ":"].concat()
        } else {
            name.to_owned()
        };
        Keys::beside(name.to_owned(), Some(tag))
    }

    /// `tag` decides on the slot, if the lock's key doesn't.
    fn beside(lock: String, tag: Option<String>) -> Self {
        let tag = tag.as_deref().unwrap_or(&lock);
        Keys {
            others: [tag, FENCE, tag, QUEUE, tag, WAITERS].concat(),
            tag: tag.len(),
            lock,
        }
    }

    fn all(&self) -> [&str; 4] {
        let (fence, rest) = self.others.split_at(self.tag + FENCE.len());
        let (queue, waiters) = rest.split_at(self.tag + QUEUE.len());
        [&self.lock, fence, queue, waiters]
    }

    fn fence(&self) -> &str {
        self.all()[1]
    }
}

/// Whether a cluster hashes only the part of `key` between its first braces.
fn has_hash_tag(key: &str) -> bool {
    let Some((_, behind)) = key.split_once('{') else {
        return false;
    };
    behind.find('}').is_some_and(|length| length > 0)
}

#[cfg(test)]
pub(super) fn check_url(url: &str) -> Result<()> {
    address::parse(url).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Namespace;
    use proptest::prelude::*;

    fn keys(namespace: &str, name: &str) -> Keys {
        Keys::of(&Key::new(&Namespace::new(namespace).unwrap(), name).unwrap())
    }

    /// The part of a key that decides on its slot, as the cluster specification has it.
    fn hashed(key: &str) -> &str {
        let Some((_, behind)) = key.split_once('{') else {
            return key;
        };
        match behind.split_once('}') {
            Some((tag, _)) if !tag.is_empty() => tag,
            _ => key,
        }
    }

    #[test]
    fn keys_are_as_documented() {
        for (namespace, name, lock, tag) in [
            ("app", "counter", "{app:counter}", "{app:counter}"),
            ("", "counter", "counter", "{counter}"),
            ("", "{user}:1", "{user}:1", "{user}:1"),
            ("", "{user}", "{user}", "{user}:"),
        ] {
            let [fence, queue, waiters] =
                ["fence", "queue", "waiters"].map(|kind| format!("{tag}:{kind}"));
            assert_eq!(
                keys(namespace, name).all(),
                [lock, &fence, &queue, &waiters]
            );
        }
    }

    proptest! {
        #[test]
        fn keys_of_a_name_share_a_slot(namespace in "[A-Za-z0-9._-]{1,64}", name in "[a{}:]{1,20}|\\PC{1,99}") {
            let keys = keys(&namespace, &name);
            for key in keys.all() {
                prop_assert_eq!(hashed(key), hashed(&keys.lock));
            }
        }

        #[test]
        fn no_two_names_of_the_empty_namespace_share_what_stands_beside_them(x in "[a{}]{1,6}", y in "[a{}]{1,6}") {
            prop_assume!(x != y);
            let (one, two) = (keys("", &x), keys("", &y));
            prop_assert_ne!(&one.lock, &two.lock);
            for key in &one.all()[1..] {
                prop_assert!(!two.all().contains(key), "{} {}", x, y);
            }
        }

        #[test]
        fn keys_are_injective(a in "[a-c]{1,2}", b in "[a-c]{1,2}", x in "[a{}:]{1,8}", y in "[a{}:]{1,8}") {
            prop_assume!((&a, &x) != (&b, &y));
            let (one, two) = (keys(&a, &x), keys(&b, &y));
            for key in one.all() {
                prop_assert!(!two.all().contains(&key));
            }
        }
    }

    #[test]
    fn other_answers_are_no_grant() {
        for value in [
            Value::Nil,
            Value::Int(-5),
            Value::Okay,
            Value::Array(vec![]),
        ] {
            assert_eq!(acquired(&value), None);
        }
        let forever = Value::Array(vec![Value::Int(-1), Value::Int(4), Value::Int(0)]);
        assert_eq!(
            acquired(&forever),
            Some(Acquired::Taken {
                remaining: None,
                counter: 4,
                stood: false
            })
        );
        let token = Token {
            number: 7,
            abandoned: true,
        };
        assert_eq!(acquired(&Value::Int(7)), Some(Acquired::Granted(token)));
    }
}
