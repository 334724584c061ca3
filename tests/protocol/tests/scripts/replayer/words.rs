//! What scripts are asked, and what they answer.

use crosslock_protocol::server::{
    Acquire, Acquired, Answer, Broke, Call, Message, Names, Release, Released, Remaining, Renewed,
    Taken, Ticks, Token,
};
use redis::Value;

use super::keys::{
    BROKEN, ENDLESS, TICK, channel_of, holder_of, inbox_of, number, owner_of, text_of, ticks,
};
use support::scripts::{self, Verb};

/// One of the scripts, its arguments, and whether the key of the value is among its keys.
pub(super) struct Request {
    pub(super) verb: Verb,
    pub(super) arguments: Vec<String>,
    pub(super) valued: bool,
}

impl Request {
    pub(super) fn of(names: Names, call: Call) -> Self {
        let request = match call {
            Call::Acquire(ask) => Request::acquire(ask),
            Call::Renew(ask) => {
                let start = [text_of(ask.owner), millis(ask.ttl), ask.mode.to_string()];
                let mut request = Request::change(Verb::Renew, start, ask.value);
                if ask.granted > 0 {
                    request.arguments.resize(4, String::new());
                    request.arguments.push(ask.granted.to_string());
                }
                request
            }
            Call::Release(ask) => Request::release(ask),
            Call::Downgrade { ask, counter_after } => {
                let counter = counter_after.to_string();
                let start = [text_of(ask.owner), counter, millis(ask.ttl)];
                Request::change(Verb::Downgrade, start, ask.value)
            }
            Call::Permits => Request::plain(Verb::Permits, Vec::new()),
            Call::Adopt(ask) => {
                let (owner, mode) = (text_of(ask.owner), ask.mode.to_string());
                let (from, counter) = (text_of(ask.from), ask.counter_after.to_string());
                let arguments = vec![owner, millis(ask.ttl), mode, from, counter];
                Request::plain(Verb::Adopt, arguments)
            }
            Call::Break => Request::plain(Verb::Break, vec![BROKEN.to_owned()]),
        };
        if names.count > 1 {
            return request.for_several();
        }
        request
    }

    /// What has nothing to do with the value.
    fn plain(verb: Verb, arguments: Vec<String>) -> Self {
        Request {
            verb,
            arguments,
            valued: false,
        }
    }

    fn acquire(ask: Acquire) -> Self {
        let mut arguments = vec![text_of(ask.owner), millis(ask.ttl), ask.mode.to_string()];
        if let Some(wait) = ask.wait {
            let inbox = wait.inbox.map(|inbox| channel_of(inbox.into()));
            arguments.extend([millis(wait.promise), inbox.unwrap_or_default()]);
        }
        Request {
            verb: Verb::Acquire,
            arguments,
            valued: ask.valued,
        }
    }

    fn release(ask: Release) -> Self {
        let counter = ask.counter_after.to_string();
        let start = [text_of(ask.owner), counter, ask.mode.to_string()];
        let mut request = Request::change(Verb::Release, start, ask.value);
        if let Some(keep) = ask.keep {
            request.arguments.resize(4, String::new());
            request.arguments.push(millis(keep));
        }
        request
    }

    /// What writes the value, if there is one.
    fn change(verb: Verb, start: [String; 3], value: Option<u16>) -> Self {
        let text = value.map(|value| value.to_string());
        Request {
            verb,
            arguments: start.into_iter().chain(text).collect(),
            valued: value.is_some(),
        }
    }

    fn for_several(self) -> Self {
        assert!(!self.valued, "several names have no value");
        let verb = match self.verb {
            Verb::Acquire => Verb::AcquireAll,
            Verb::Renew => Verb::RenewAll,
            Verb::Release => Verb::ReleaseAll,
            Verb::Adopt => Verb::AdoptAll,
            other => panic!("{other:?} is for one name"),
        };
        Request { verb, ..self }
    }
}

pub(super) fn millis(ticks: Ticks) -> String {
    (i64::from(ticks) * TICK).to_string()
}

pub(super) fn answer_of(call: Call, answer: &Value) -> Answer {
    match (call, answer) {
        (Call::Acquire(_), answer) => Answer::Acquired(acquired(answer)),
        (Call::Renew(_), Value::Int(0)) => Answer::Renewed(Renewed::NotOwner),
        (Call::Renew(_), Value::Int(1)) => Answer::Renewed(Renewed::Done),
        (Call::Renew(_), Value::Int(2)) => Answer::Renewed(Renewed::Broken),
        (Call::Release(_), Value::Int(0)) => Answer::Released(Released::NotOwner),
        (Call::Release(_), Value::Int(1)) => Answer::Released(Released::Done),
        (Call::Release(_), Value::Int(2)) => Answer::Released(Released::Unclear),
        (Call::Release(_), Value::Int(3)) => Answer::Released(Released::Broken),
        (Call::Downgrade { .. }, Value::Int(token)) => Answer::Downgraded(*token),
        (Call::Permits, Value::Int(out)) => {
            Answer::Permits((*out).try_into().expect("a few permits"))
        }
        (Call::Adopt(_), Value::Int(token)) => Answer::Adopted(*token),
        (Call::Break, Value::Array(parts)) => Answer::Broke(broke(&parts[1])),
        (call, answer) => panic!("{call:?} isn't answered by {answer:?}"),
    }
}

/// How many had the lock, and the token of one that had it for itself.
fn broke(holders: &Value) -> Broke {
    let Value::Array(holders) = holders else {
        panic!("no holders: {holders:?}");
    };
    let token_of = |holder: &Value| match holder {
        Value::Array(parts) => match parts[3] {
            Value::Int(token) => token,
            ref other => panic!("no token: {other:?}"),
        },
        other => panic!("no holder: {other:?}"),
    };
    let is_exclusive = |token: &Token| token % 4 == 1 || token % 8 == 3;
    let token = holders.iter().map(token_of).find(is_exclusive);
    Broke {
        holders: holders.len().try_into().expect("a few holders"),
        token: token.unwrap_or(0),
    }
}

fn acquired(answer: &Value) -> Acquired {
    let token = |number: u64| Token::try_from(number).expect("a token");
    match scripts::Acquired::of(answer) {
        scripts::Acquired::Token(granted) => Acquired::Granted {
            token: token(granted),
            value: None,
        },
        scripts::Acquired::Valued(granted, value) => Acquired::Granted {
            token: token(granted),
            value: Some(value.map(|value| number(&value))),
        },
        scripts::Acquired::Taken {
            remaining,
            counter,
            stood,
            known,
            length,
            holder,
        } => Acquired::Taken(Taken {
            remaining: remaining_of(remaining),
            counter: token(counter),
            stood,
            known,
            length: length.try_into().expect("a short line"),
            holder: holder.map(|holder| holder_of(&holder)),
        }),
        scripts::Acquired::Broken => Acquired::Broken,
    }
}

fn remaining_of(left: i64) -> Remaining {
    match left {
        ENDLESS => Remaining::Endless,
        0.. => Remaining::Ticks(ticks(left)),
        _ => Remaining::Absent,
    }
}

pub(super) fn message_of(channel: &str, text: &str) -> Message {
    let (owner, token) = text.split_once(' ').expect("an owner and a token");
    Message {
        inbox: inbox_of(channel),
        owner: owner_of(owner),
        token: number(token),
    }
}
