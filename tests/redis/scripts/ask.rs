//! Who asks for a lock, and what is answered.

use redis::{RedisResult, Value};

use super::TTL;

/// Who asks for the lock, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    owner: &'a str,
    ttl: u64,
    mode: &'a str,
    /// In how many milliseconds its heartbeat is overdue, and its inbox.
    waits: Option<(u64, &'a str)>,
    pub(crate) valued: bool,
}

/// What `lock/acquire.lua` answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Acquired {
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
}

impl<'a> Ask<'a> {
    /// Takes the lock or leaves it.
    pub(crate) fn once(owner: &'a str) -> Self {
        Ask {
            owner,
            ttl: TTL,
            mode: "x",
            waits: None,
            valued: false,
        }
    }

    /// Takes the lock or waits in line for `promise` milliseconds.
    pub(crate) fn waiting(owner: &'a str, promise: u64, inbox: &'a str) -> Self {
        Ask {
            waits: Some((promise, inbox)),
            ..Ask::once(owner)
        }
    }

    pub(crate) fn with_ttl(self, ttl: u64) -> Self {
        Ask { ttl, ..self }
    }

    pub(crate) fn with_mode(self, mode: &'a str) -> Self {
        Ask { mode, ..self }
    }

    /// Asks for the value that the lock protects.
    pub(crate) fn with_value(self) -> Self {
        let valued = true;
        Ask { valued, ..self }
    }

    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            self.owner.to_owned(),
            self.ttl.to_string(),
            self.mode.to_owned(),
        ];
        if let Some((promise, inbox)) = self.waits {
            arguments.extend([promise.to_string(), inbox.to_owned()]);
        }
        arguments
    }
}

impl Acquired {
    pub(crate) fn of(answer: Value) -> Self {
        let token = |number: i64| u64::try_from(number).expect("it isn't negative");
        match answer {
            Value::Int(number) => Acquired::Token(token(number)),
            Value::Array(parts) => match &parts[..] {
                [Value::Int(number), Value::Nil] => Acquired::Valued(token(*number), None),
                [Value::Int(number), Value::BulkString(value)] => {
                    let value = String::from_utf8(value.clone()).expect("text");
                    Acquired::Valued(token(*number), Some(value))
                }
                [
                    Value::Int(remaining),
                    Value::Int(counter),
                    Value::Int(stood @ 0..=1),
                    Value::Int(known @ 0..=1),
                    Value::Int(length),
                    holder @ ..,
                ] => Acquired::Taken {
                    remaining: *remaining,
                    counter: token(*counter),
                    stood: *stood == 1,
                    known: *known == 1,
                    length: token(*length),
                    holder: holder.first().map(|holder| match holder {
                        Value::BulkString(text) => String::from_utf8(text.clone()).expect("text"),
                        other => panic!("{other:?}"),
                    }),
                },
                _ => panic!("{parts:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn token(&self) -> Option<u64> {
        match self {
            Acquired::Token(token) | Acquired::Valued(token, _) => Some(*token),
            Acquired::Taken { .. } => None,
        }
    }
}

/// 1 released, 0 not the owner's, 2 that or released before.
pub(crate) fn released(answer: &RedisResult<Value>) -> i64 {
    match answer {
        Ok(Value::Int(answer @ 0..=2)) => *answer,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn is_one(answer: &Value) -> bool {
    match answer {
        Value::Int(1) => true,
        Value::Int(0) => false,
        other => panic!("{other:?}"),
    }
}
