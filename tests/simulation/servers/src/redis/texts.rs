//! The commands for texts, and for keys whatever they hold.

use super::keyspace::{Bytes, Value, WRONG_TYPE};
use super::numbers::{integer, places, strict};
use super::reply::{OK, Outcome, Reply, Words};
use super::state::State;

pub(super) fn get(state: &mut State, words: &Words) -> Outcome {
    let text: Option<&mut Bytes> = state.keys.held(&words[1])?;
    Ok(Reply::maybe(text.cloned()))
}

pub(super) fn get_all(state: &mut State, words: &Words) -> Outcome {
    let texts = words[1..].iter().map(|key| match state.keys.get(key) {
        Some(entry) => match &entry.value {
            Value::Text(text) => Reply::text(text.clone()),
            _ => Reply::Nil,
        },
        None => Reply::Nil,
    });
    Ok(Reply::List(texts.collect()))
}

pub(super) fn get_range(state: &mut State, words: &Words) -> Outcome {
    let (first, last) = (integer(&words[2])?, integer(&words[3])?);
    let text: Option<&mut Bytes> = state.keys.held(&words[1])?;
    let text = text.map_or(&[][..], |text| text);
    Ok(Reply::text(&text[places(first, last, text.len())]))
}

pub(super) fn increase(state: &mut State, words: &Words) -> Outcome {
    let text: Option<&mut Bytes> = state.keys.held(&words[1])?;
    let number = text.as_ref().map_or(Some(0), |text| strict(text));
    let number = number.and_then(|number| number.checked_add(1));
    let error = "ERR value is not an integer or out of range";
    let number = number.ok_or_else(|| Reply::error(error))?;
    let written = number.to_string().into_bytes();
    match text {
        Some(text) => *text = written,
        None => state.keys.insert(&words[1], Value::Text(written), None),
    }
    Ok(Reply::Int(number))
}

/// With NX, GET, KEEPTTL, PX or PXAT.
pub(super) fn set(state: &mut State, words: &Words) -> Outcome {
    let (key, now) = (&words[1], state.keys.now());
    let before = state.keys.get(key);
    let (mut only_new, mut gets, mut ends) = (false, false, None);
    let mut options = words[3..].iter();
    while let Some(word) = options.next() {
        match word.as_slice() {
            b"NX" => only_new = true,
            b"GET" => gets = true,
            b"KEEPTTL" => ends = before.and_then(|before| before.ends),
            unit @ (b"PX" | b"PXAT") => {
                let time = options.next().ok_or_else(syntax)?;
                ends = Some(end_of(integer(time)?, unit == b"PX", now)?);
                if ends <= Some(0) || unit == b"PX" && ends <= Some(now) {
                    return Err(invalid_time());
                }
            }
            _ => return Err(syntax()),
        }
    }
    let answer = match before.map(|before| &before.value) {
        _ if !gets => None,
        Some(Value::Text(text)) => Some(Reply::text(text.clone())),
        Some(_) => return Err(Reply::error(WRONG_TYPE)),
        None => Some(Reply::Nil),
    };
    if only_new && before.is_some() {
        return Ok(answer.unwrap_or(Reply::Nil));
    }
    state.keys.insert(key, Value::Text(words[2].clone()), ends);
    Ok(answer.unwrap_or(OK))
}

fn syntax() -> Reply {
    Reply::error("ERR syntax error")
}

fn invalid_time() -> Reply {
    Reply::error("ERR invalid expire time")
}

/// When a key ends, by a number of milliseconds from now, or since 1970.
fn end_of(time: i64, from_now: bool, now: i64) -> Result<i64, Reply> {
    let base = if from_now { now } else { 0 };
    time.checked_add(base).ok_or_else(invalid_time)
}

pub(super) fn delete(state: &mut State, words: &Words) -> Outcome {
    let mut keys = words[1..].iter();
    let removed = keys.by_ref().filter(|key| state.keys.remove(key).is_some());
    Ok(Reply::count(removed.count()))
}

pub(super) fn exist(state: &mut State, words: &Words) -> Outcome {
    let keys = words[1..].iter();
    let there = keys.filter(|key| state.keys.get(key).is_some());
    Ok(Reply::count(there.count()))
}

/// PEXPIRE and PEXPIREAT.
pub(super) fn expire(state: &mut State, words: &Words) -> Outcome {
    let from_now = words[0].eq_ignore_ascii_case(b"PEXPIRE");
    let ends = end_of(integer(&words[2])?, from_now, state.keys.now())?;
    let is_there = state.keys.get(&words[1]).is_some();
    if is_there {
        state.keys.set_end(&words[1], Some(ends));
    }
    Ok(Reply::count(is_there.into()))
}

pub(super) fn persist(state: &mut State, words: &Words) -> Outcome {
    let entry = state.keys.get(&words[1]);
    let has_end = entry.is_some_and(|entry| entry.ends.is_some());
    if has_end {
        state.keys.set_end(&words[1], None);
    }
    Ok(Reply::count(has_end.into()))
}

pub(super) fn millis_left(state: &mut State, words: &Words) -> Outcome {
    let ends = state.keys.get(&words[1]).map(|entry| entry.ends);
    Ok(Reply::Int(match ends {
        None => -2,
        Some(None) => -1,
        Some(Some(ends)) => ends - state.keys.now(),
    }))
}

pub(super) fn flush(state: &mut State, _: &Words) -> Outcome {
    state.keys.clear();
    Ok(OK)
}

/// With MATCH, COUNT and TYPE. Keys come in the order of a hash, which tells where to go on: so each that stays is
/// told, whatever goes meanwhile.
pub(super) fn scan(state: &mut State, words: &Words) -> Outcome {
    let cursor = u64::try_from(integer(&words[1])?).unwrap_or(0);
    let (mut pattern, mut count, mut kind) = (&b"*"[..], 10, None);
    for pair in words[2..].chunks(2) {
        match pair {
            [option, value] if option == b"MATCH" => pattern = value,
            [option, value] if option == b"COUNT" => {
                count = usize::try_from(integer(value)?).unwrap_or(1).max(1);
            }
            [option, value] if option == b"TYPE" => kind = Some(value),
            _ => return Err(syntax()),
        }
    }
    let all = state.keys.iter();
    let all = all.map(|(key, entry)| (hash(key), key, entry));
    let mut all: Vec<_> = all.filter(|(hash, ..)| *hash >= cursor).collect();
    all.sort_by_key(|(hash, ..)| *hash);
    let end = all.get(count).map_or(0, |(hash, ..)| *hash);
    let page = all.into_iter().filter(|(hash, ..)| end == 0 || *hash < end);
    let found = page.filter(|(_, key, entry)| {
        kind.is_none_or(|kind| kind == entry.value.name().as_bytes()) && matches(pattern, key)
    });
    let found = Reply::texts(found.map(|(_, key, _)| key.clone()));
    Ok(Reply::List(vec![Reply::text(end.to_string()), found]))
}

/// Above 0, and a number that a client reads in whatever type.
fn hash(key: &[u8]) -> u64 {
    let digest = sha1_smol::Sha1::from(key).digest().bytes();
    let bytes = digest[..6].iter();
    1 + bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Whether a text has the form of a pattern with `*` and `\`.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], text) => text.is_empty(),
        ([b'*', rest @ ..], text) => (0..=text.len()).any(|at| matches(rest, &text[at..])),
        ([b'\\', wanted, rest @ ..] | [wanted, rest @ ..], [byte, text @ ..]) => {
            wanted == byte && matches(rest, text)
        }
        (_, []) => false,
    }
}
