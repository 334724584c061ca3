//! What scripts are asked, and what they answer.

use crosslock_protocol::server::{
    Acquire, Acquired, Answer, Broke, Call, Names, Release, Released, Remaining, Renewed, Taken,
    Token,
};
use crosslock_protocol::steps::OWNERS;
use redis::Value;
use support::scripts::{self, Verb};

use super::words::{BROKEN, TICK, channel_of, millis, public_text_of, text_of};

/// One of the scripts, its arguments, and whether the key of the value is among its keys.
pub(super) fn request(names: Names, call: Call) -> (Verb, Vec<String>, bool) {
    let of = |one, several| if names.count > 1 { several } else { one };
    match call {
        Call::Acquire(ask) => (of(Verb::Acquire, Verb::AcquireAll), asked(ask), ask.valued),
        Call::Renew(ask) => {
            let mut arguments = vec![text_of(ask.owner), millis(ask.ttl), ask.mode.to_string()];
            arguments.push(value_of(ask.value));
            arguments.extend((ask.granted > 0).then(|| ask.granted.to_string()));
            let verb = of(Verb::Renew, Verb::RenewAll);
            (verb, arguments, ask.value.is_some())
        }
        Call::Release(ask) => {
            let verb = of(Verb::Release, Verb::ReleaseAll);
            (verb, released(ask), ask.value.is_some())
        }
        Call::Downgrade { ask, counter_after } => {
            let mut arguments = vec![text_of(ask.owner), counter_after.to_string()];
            arguments.extend([millis(ask.ttl), value_of(ask.value)]);
            (Verb::Downgrade, arguments, ask.value.is_some())
        }
        Call::Permits => (Verb::Permits, Vec::new(), false),
        Call::Adopt(ask) => {
            let (owner, mode) = (text_of(ask.owner), ask.mode.to_string());
            let (from, counter) = (text_of(ask.from), ask.counter_after.to_string());
            let arguments = vec![owner, millis(ask.ttl), mode, from, counter];
            (of(Verb::Adopt, Verb::AdoptAll), arguments, false)
        }
        Call::Break => (Verb::Break, vec![BROKEN.to_owned()], false),
    }
}

fn value_of(value: Option<u16>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn asked(ask: Acquire) -> Vec<String> {
    let mut arguments = vec![text_of(ask.owner), millis(ask.ttl), ask.mode.to_string()];
    if let Some(wait) = ask.wait {
        let inbox = wait.inbox.map(|inbox| channel_of(inbox.into()));
        arguments.extend([millis(wait.promise), inbox.unwrap_or_default()]);
    }
    arguments
}

fn released(ask: Release) -> Vec<String> {
    let (counter, mode) = (ask.counter_after.to_string(), ask.mode.to_string());
    let mut arguments = vec![text_of(ask.owner), counter, mode, value_of(ask.value)];
    arguments.extend(ask.keep.map(millis));
    arguments
}

pub(super) fn answer_of(call: Call, answer: &Value) -> Answer {
    let renewed = [Renewed::NotOwner, Renewed::Done, Renewed::Broken];
    let released = [
        Released::NotOwner,
        Released::Done,
        Released::Unclear,
        Released::Broken,
    ];
    let number = match answer {
        Value::Int(number) => *number,
        _ => 0,
    };
    let at = usize::try_from(number).unwrap_or(usize::MAX);
    match (call, answer) {
        (Call::Acquire(_), answer) => Answer::Acquired(acquired(answer)),
        (Call::Renew(_), Value::Int(_)) => Answer::Renewed(renewed[at]),
        (Call::Release(_), Value::Int(_)) => Answer::Released(released[at]),
        (Call::Downgrade { .. }, Value::Int(_)) => Answer::Downgraded(number),
        (Call::Permits, Value::Int(_)) => Answer::Permits(number.try_into().expect("a few")),
        (Call::Adopt(_), Value::Int(_)) => Answer::Adopted(number),
        (Call::Break, Value::Array(parts)) => Answer::Broke(broke(&parts[1])),
        (call, answer) => panic!("{call:?} isn't answered by {answer:?}"),
    }
}

/// How many had the lock, and the token of one that had it for itself.
fn broke(holders: &Value) -> Broke {
    let parts = |value: &Value| match value {
        Value::Array(parts) => parts.clone(),
        other => panic!("no list: {other:?}"),
    };
    let holders = parts(holders);
    let tokens = holders.iter().map(|holder| match parts(holder)[3] {
        Value::Int(token) => token,
        ref other => panic!("no token: {other:?}"),
    });
    let is_exclusive = |token: &Token| token % 4 == 1 || token % 8 == 3;
    Broke {
        holders: holders.len().try_into().expect("a few holders"),
        token: tokens.into_iter().find(is_exclusive).unwrap_or(0),
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
            value: Some(value.map(|value| value.parse().expect("a number"))),
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
            holder: holder.map(|holder| {
                let mut owners = 0..OWNERS;
                let owner = owners.find(|owner| public_text_of(*owner) == holder);
                owner.expect("a holder")
            }),
        }),
        scripts::Acquired::Broken => Acquired::Broken,
    }
}

/// Rounded up, because some time has passed since it was as long as that.
fn remaining_of(left: i64) -> Remaining {
    match left {
        -1 => Remaining::Endless,
        0.. => Remaining::Ticks(((left + TICK - 1) / TICK).try_into().expect("a few ticks")),
        _ => Remaining::Absent,
    }
}
