//! What the answers of the scripts mean.

use std::time::Duration;

use ::redis::Value;

use super::keys::Keys;
use crate::base::error::Error;
use crate::base::name::Key;
use crate::base::token::Token;
use crate::base::value::Stored;
use crate::engine::heartbeat::{Acquired, Taken};

/// The acquire script says CONFLICT for a counter, and which; WRONGTYPE is the server's word, about a lock.
pub(super) fn conflict(name: &str, keys: &[Key], reason: &str) -> Error {
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

pub(super) fn acquired(value: Value) -> Option<Acquired> {
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

pub(super) fn stored(value: Value) -> Option<Stored> {
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
