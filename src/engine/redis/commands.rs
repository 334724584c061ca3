//! The commands of the engine: what is sent to the server about a name, and what its answers mean.
//!
//! | verb | script | its arguments, and what it answers |
//! |---|---|---|
//! | acquire | `acquire` | here |
//! | renew, verify, store | `renew` | `change` |
//! | release, downgrade, adopt | those of these names | `change` |
//! | what operators ask, and values without a lease | `inspect`, `break`, `locks`, `permits`, `remove` | `operate` |

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use ::redis::Value;

use super::keys::Keys;
use super::script::{Call, Needs, Order, Script};
use super::server::{Answer, Server};
use super::servers::{Route, Servers};
use crate::base::claim::{Claim, Mode, Prefer};
use crate::base::clock::Deadline;
use crate::base::name::Key;
use crate::base::token::Token;
use crate::base::value::Stored;
use crate::engine::heartbeat::{Acquired, IfTaken, Taken};
use crate::engine::{Request, Unanswered};

mod change;
mod errors;
mod operate;
mod parts;

/// The scripts, and the server that runs them.
#[derive(Debug)]
pub(super) struct Commands {
    servers: Arc<dyn Servers>,
    acquire: Pair,
    renew: Pair,
    release: Pair,
    adopt: Pair,
    downgrade: Script,
    permits: Script,
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

impl Commands {
    pub(super) fn new(servers: Arc<dyn Servers>) -> Self {
        Commands {
            servers,
            acquire: Pair::new("acquire"),
            renew: Pair::new("renew"),
            release: Pair::new("release"),
            adopt: Pair::new("adopt"),
            downgrade: Script::new("lock/downgrade"),
            permits: Script::new("semaphore/permits"),
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

    /// Gives also the server that answered.
    pub(super) fn acquire(
        &self,
        request: Request<'_>,
        if_taken: IfTaken<'_>,
        deadline: &Deadline,
    ) -> Result<(Acquired, Arc<Server>), Unanswered> {
        let call = self.acquisition(request, if_taken);
        self.acquired(request, self.send(request, &call, deadline))
    }

    fn acquisition<'a>(&'a self, request: Request<'a>, if_taken: IfTaken<'a>) -> Call<'a> {
        let (ttl, mode) = (millis(request.ttl), mode(request.claim, true));
        let (within, inbox) = match if_taken {
            IfTaken::Leave => (String::new(), None),
            IfTaken::Wait {
                heartbeat_within,
                inbox,
            } => (millis(heartbeat_within), inbox),
        };
        let hears_at = inbox.and_then(|inbox| inbox.server);
        let arguments = [
            request.owner.as_str(),
            &ttl,
            &mode,
            &within,
            inbox.map_or("", |inbox| inbox.channel),
            hears_at.unwrap_or_default(),
        ];
        let passed = match (if_taken, hears_at) {
            (IfTaken::Leave, _) => 3,
            (IfTaken::Wait { .. }, None) => 5,
            (IfTaken::Wait { .. }, Some(_)) => 6,
        };
        let needs = Needs {
            value: request.claim.valued,
            order: Order::Asks(request.owner.as_str()),
            ..needs_of_renewal(request.ttl)
        };
        let script = self.acquire.of(request.claim);
        let arguments = arguments.map(str::as_bytes);
        script.call_for(request.claim, needs, &arguments[..passed])
    }

    fn acquired(
        &self,
        request: Request<'_>,
        answer: Result<Answer, Unanswered>,
    ) -> Result<(Acquired, Arc<Server>), Unanswered> {
        let answer = answer?;
        // It may be a grant that was changed on its way.
        let acquired = acquired(answer.value)
            .ok_or_else(|| Unanswered::sent(self.surprised(request.key())))?;
        match (&acquired, answer.shortfall) {
            (Acquired::Granted { .. }, Some(shortfall)) => {
                Err(Unanswered::sent(self.unconfirmed(request.key(), shortfall)))
            }
            _ => Ok((acquired, answer.server)),
        }
    }

    /// Sends it to the server of its names.
    fn send(
        &self,
        request: Request<'_>,
        call: &Call<'_>,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered> {
        let answer = self.servers.call(route(call), call, deadline);
        answer.map_err(|e| self.unanswered(request.claim, e))
    }
}

fn route<'a>(call: &'a Call<'_>) -> Route<'a> {
    let (key, known_within) = call.to();
    Route { key, known_within }
}

fn needs_of_renewal(ttl: Duration) -> Needs<'static> {
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
        (permits, _) => permits.to_string().into(),
    }
}

fn acquired(value: Value) -> Option<Acquired> {
    match value {
        Value::Int(0) => Some(Acquired::Broken),
        Value::Int(token) => granted(token, None),
        Value::Array(parts) => match <[Value; 2]>::try_from(parts) {
            Ok([Value::Int(token), value]) => granted(token, Some(stored(value)?)),
            Ok(_) => None,
            Err(parts) => match &parts[..] {
                &[
                    Value::Int(remaining),
                    Value::Int(counter),
                    Value::Int(was_queued),
                    Value::Int(is_handed_on),
                    Value::Int(queue_length),
                    ref holder @ ..,
                ] => Some(Acquired::Taken(Taken {
                    remaining: remaining.try_into().ok().map(Duration::from_millis),
                    counter: counter.try_into().ok()?,
                    was_queued: was_queued == 1,
                    is_handed_on: is_handed_on == 1,
                    queue_length: queue_length.try_into().ok()?,
                    holder: holder.first().and_then(text),
                })),
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
        let taken = |holder| {
            Acquired::Taken(Taken {
                remaining: None,
                counter: 4,
                was_queued: false,
                is_handed_on: false,
                queue_length: 0,
                holder,
            })
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
        assert_eq!(acquired(Value::Int(0)), Some(Acquired::Broken));
        let granted = |value| Some(Acquired::Granted { token, value });
        assert_eq!(acquired(Value::Int(7)), granted(None));
        let with = |value| Value::Array(vec![Value::Int(7), value]);
        assert_eq!(acquired(with(Value::Nil)), granted(Some(None)));
        let value = Some(b"1".as_slice().into());
        let text = Value::BulkString(b"1".into());
        assert_eq!(acquired(with(text)), granted(Some(value)));
    }
}
