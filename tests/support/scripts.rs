//! The library's scripts, as a server and a proxy see them.

#[path = "../../src/engine/redis/lua.rs"]
mod lua;

use redis::Value;

pub const ACQUIRE: &str = "lock/acquire";
pub const RENEW: &str = "lock/renew";
pub const RELEASE: &str = "lock/release";

#[derive(Clone, Copy, Debug)]
pub enum Verb {
    Acquire,
    Renew,
    Release,
    Downgrade,
    Permits,
    AcquireAll,
    RenewAll,
    ReleaseAll,
    Inspect,
    Break,
    Adopt,
    AdoptAll,
    RaiseAll,
}

/// In the order of [`Verb`].
pub const ALL: [&str; 13] = [
    ACQUIRE,
    RENEW,
    RELEASE,
    "lock/downgrade",
    "semaphore/permits",
    "all/acquire",
    "all/renew",
    "all/release",
    "lock/inspect",
    "lock/break",
    "lock/adopt",
    "all/adopt",
    "all/raise",
];

/// What [`ACQUIRE`] answers, and the same of several.
#[derive(Clone, Debug, PartialEq)]
pub enum Acquired {
    Token(u64),
    /// To one who asks for the value, too.
    Valued(u64, Option<String>),
    Taken {
        remaining: i64,
        counter: u64,
        stood: bool,
        known: bool,
        /// Of the line, the owner included; 0 for one that doesn't wait.
        length: u64,
        /// Who holds it, told to one that enters the line.
        holder: Option<String>,
    },
    Broken,
}

pub fn whole(script: &str) -> String {
    lua::whole(script)
}

pub fn digest(script: &str) -> String {
    redis::Script::new(&whole(script)).get_hash().to_owned()
}

impl Acquired {
    pub fn of(answer: &Value) -> Self {
        match answer {
            Value::Int(0) => Acquired::Broken,
            Value::Int(token) => Acquired::Token(natural(*token)),
            Value::Array(parts) => Acquired::of_parts(parts),
            other => panic!("an acquisition isn't answered by {other:?}"),
        }
    }

    fn of_parts(parts: &[Value]) -> Self {
        match parts {
            [Value::Int(token), Value::Nil] => Acquired::Valued(natural(*token), None),
            [Value::Int(token), value @ Value::BulkString(_)] => {
                Acquired::Valued(natural(*token), Some(text(value).to_owned()))
            }
            [
                Value::Int(remaining),
                Value::Int(counter),
                Value::Int(stood @ 0..=1),
                Value::Int(known @ 0..=1),
                Value::Int(length),
                holder @ ..,
            ] if holder.len() < 2 => Acquired::Taken {
                remaining: *remaining,
                counter: natural(*counter),
                stood: *stood == 1,
                known: *known == 1,
                length: natural(*length),
                holder: holder.first().map(|holder| text(holder).to_owned()),
            },
            _ => panic!("an acquisition isn't answered by {parts:?}"),
        }
    }

    pub fn token(&self) -> Option<u64> {
        match self {
            Acquired::Token(token) | Acquired::Valued(token, _) => Some(*token),
            Acquired::Taken { .. } | Acquired::Broken => None,
        }
    }
}

pub fn text(value: &Value) -> &str {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).expect("text"),
        other => panic!("no text: {other:?}"),
    }
}

fn natural(number: i64) -> u64 {
    number.try_into().expect("it isn't negative")
}
