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
    if first < 0 && last < 0 && first > last {
        return Ok(Reply::text(""));
    }
    // Before its start there is nothing: the last place is the first then.
    let all = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let last = if last < 0 { (last + all).max(0) } else { last };
    Ok(Reply::text(&text[places(first, last, text.len())]))
}

pub(super) fn increase(state: &mut State, words: &Words) -> Outcome {
    let text: Option<&mut Bytes> = state.keys.held(&words[1])?;
    let number = text.as_ref().map_or(Some(0), |text| strict(text));
    let error = "ERR value is not an integer or out of range";
    let number = number.ok_or_else(|| Reply::error(error))?;
    let overflow = "ERR increment or decrement would overflow";
    let number = number
        .checked_add(1)
        .ok_or_else(|| Reply::error(overflow))?;
    let written = number.to_string().into_bytes();
    match text {
        Some(text) => *text = written,
        None => state.keys.insert(&words[1], Value::Text(written), None),
    }
    Ok(Reply::Int(number))
}

#[derive(Default)]
struct SetOptions {
    only_new: bool,
    only_old: bool,
    keeps_end: bool,
    gets: bool,
    ends: Option<i64>,
}

impl SetOptions {
    fn of(words: &[Bytes], now: i64) -> Result<Self, Reply> {
        let syntax = || Reply::error("ERR syntax error");
        let (mut options, mut words) = (SetOptions::default(), words.iter());
        while let Some(word) = words.next() {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" if !options.only_old => options.only_new = true,
                b"XX" if !options.only_new => options.only_old = true,
                b"KEEPTTL" if options.ends.is_none() => options.keeps_end = true,
                b"GET" => options.gets = true,
                unit @ (b"EX" | b"PX" | b"EXAT" | b"PXAT")
                    if !options.keeps_end && options.ends.is_none() =>
                {
                    let time = integer(words.next().ok_or_else(syntax)?)?;
                    options.ends = Some(end_of(time, unit, now, "set")?);
                }
                _ => return Err(syntax()),
            }
        }
        Ok(options)
    }
}

/// When a key ends, by a number of that unit.
fn end_of(time: i64, unit: &[u8], now: i64, command: &str) -> Result<i64, Reply> {
    let invalid = || Reply::error(format!("ERR invalid expire time in '{command}' command"));
    let in_seconds = unit.starts_with(b"EX");
    let is_absolute = unit.ends_with(b"AT");
    if time <= 0 && command == "set" {
        return Err(invalid());
    }
    let millis = if in_seconds {
        time.checked_mul(1000)
    } else {
        Some(time)
    };
    let base = if is_absolute { 0 } else { now };
    let ends = millis.and_then(|millis| millis.checked_add(base));
    ends.ok_or_else(invalid)
}

pub(super) fn set(state: &mut State, words: &Words) -> Outcome {
    let (key, now) = (&words[1], state.keys.now());
    let options = SetOptions::of(&words[3..], now)?;
    let before = state.keys.get(key);
    let answer = match before.map(|before| &before.value) {
        _ if !options.gets => None,
        Some(Value::Text(text)) => Some(Reply::text(text.clone())),
        Some(_) => return Err(Reply::error(WRONG_TYPE)),
        None => Some(Reply::Nil),
    };
    let is_refused = before.is_some() && options.only_new || before.is_none() && options.only_old;
    if is_refused {
        return Ok(answer.unwrap_or(Reply::Nil));
    }
    let kept = before.and_then(|before| before.ends);
    let ends = options.ends.or(kept.filter(|_| options.keeps_end));
    state.keys.insert(key, Value::Text(words[2].clone()), ends);
    Ok(answer.unwrap_or(OK))
}

pub(super) fn delete(state: &mut State, words: &Words) -> Outcome {
    let removed = words[1..]
        .iter()
        .filter(|key| state.keys.remove(key).is_some());
    Ok(Reply::count(removed.count()))
}

pub(super) fn exist(state: &mut State, words: &Words) -> Outcome {
    let there = words[1..]
        .iter()
        .filter(|key| state.keys.get(key).is_some());
    Ok(Reply::count(there.count()))
}

pub(super) fn type_of(state: &mut State, words: &Words) -> Outcome {
    let entry = state.keys.get(&words[1]);
    let name = entry.map_or("none", |entry| entry.value.name());
    Ok(Reply::Status(name.into()))
}

/// PEXPIRE, PEXPIREAT, EXPIRE and EXPIREAT.
pub(super) fn expire(state: &mut State, words: &Words) -> Outcome {
    let time = integer(&words[2])?;
    let name = String::from_utf8_lossy(&words[0]).to_lowercase();
    let unit = match name.as_str() {
        "expire" => "EX",
        "expireat" => "EXAT",
        "pexpire" => "PX",
        _ => "PXAT",
    };
    let ends = end_of(time, unit.as_bytes(), state.keys.now(), &name)?;
    let is_there = state.keys.get(&words[1]).is_some();
    if is_there {
        state.keys.set_end(&words[1], Some(ends));
    }
    Ok(Reply::count(usize::from(is_there)))
}

pub(super) fn persist(state: &mut State, words: &Words) -> Outcome {
    let entry = state.keys.get(&words[1]);
    let has_end = entry.is_some_and(|entry| entry.ends.is_some());
    if has_end {
        state.keys.set_end(&words[1], None);
    }
    Ok(Reply::count(usize::from(has_end)))
}

fn left(state: &State, key: &[u8]) -> i64 {
    let ends = state.keys.get(key).map(|entry| entry.ends);
    match ends {
        None => -2,
        Some(None) => -1,
        Some(Some(ends)) => ends - state.keys.now(),
    }
}

pub(super) fn millis_left(state: &mut State, words: &Words) -> Outcome {
    Ok(Reply::Int(left(state, &words[1])))
}

pub(super) fn seconds_left(state: &mut State, words: &Words) -> Outcome {
    let left = left(state, &words[1]);
    Ok(Reply::Int(if left < 0 {
        left
    } else {
        (left + 500) / 1000
    }))
}

pub(super) fn copy(state: &mut State, words: &Words) -> Outcome {
    if words[1] == words[2] {
        return Err(Reply::error(
            "ERR source and destination objects are the same",
        ));
    }
    let is_taken = state.keys.get(&words[2]).is_some();
    let Some(entry) = state.keys.get(&words[1]).filter(|_| !is_taken).cloned() else {
        return Ok(Reply::Int(0));
    };
    state.keys.insert(&words[2], entry.value, entry.ends);
    Ok(Reply::Int(1))
}

pub(super) fn keys(state: &mut State, words: &Words) -> Outcome {
    let all = state.keys.iter().map(|(key, _)| key.clone());
    Ok(Reply::texts(all.filter(|key| matches(&words[1], key))))
}

pub(super) fn size(state: &mut State, _: &Words) -> Outcome {
    Ok(Reply::count(state.keys.iter().count()))
}

pub(super) fn flush(state: &mut State, _: &Words) -> Outcome {
    state.keys.clear();
    Ok(OK)
}

/// Keys come in the order of a hash, which tells where to go on: so each that stays is told, whatever goes meanwhile.
pub(super) fn scan(state: &mut State, words: &Words) -> Outcome {
    let cursor = strict(&words[1]).and_then(|cursor| u64::try_from(cursor).ok());
    let cursor = cursor.ok_or_else(|| Reply::error("ERR invalid cursor"))?;
    let (mut pattern, mut count, mut kind) = (&b"*"[..], 10, None);
    for pair in words[2..].chunks(2) {
        let [option, value] = pair else {
            return Err(Reply::error("ERR syntax error"));
        };
        match option.to_ascii_uppercase().as_slice() {
            b"MATCH" => pattern = value,
            b"COUNT" => count = usize::try_from(integer(value)?).unwrap_or(1).max(1),
            b"TYPE" => kind = Some(value),
            _ => return Err(Reply::error("ERR syntax error")),
        }
    }
    let all = state
        .keys
        .iter()
        .map(|(key, entry)| (hash(key), key, entry));
    let mut all: Vec<_> = all.filter(|(hash, ..)| *hash >= cursor).collect();
    all.sort_by_key(|(hash, ..)| *hash);
    let end = all.get(count).map_or(0, |(hash, ..)| *hash);
    let page = all.into_iter().filter(|(hash, ..)| end == 0 || *hash < end);
    let is_wanted = |key: &[u8], name: &str| {
        kind.is_none_or(|kind| kind.eq_ignore_ascii_case(name.as_bytes())) && matches(pattern, key)
    };
    let found = page.filter(|(_, key, entry)| is_wanted(key, entry.value.name()));
    let found = Reply::texts(found.map(|(_, key, _)| key.clone()));
    Ok(Reply::List(vec![Reply::text(end.to_string()), found]))
}

/// Above 0, and a number that a client reads in whatever type.
fn hash(key: &[u8]) -> u64 {
    let digest = sha1_smol::Sha1::from(key).digest().bytes();
    let number = digest[..6]
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte));
    number + 1
}

/// Whether a text has the form of a pattern with `*`, `?`, `[ab]`, `[^a-c]` and `\`.
pub(super) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], text) => text.is_empty(),
        ([b'*', rest @ ..], text) => {
            (0..=text.len()).any(|skipped| matches(rest, &text[skipped..]))
        }
        ([b'?', rest @ ..], [_, text @ ..]) => matches(rest, text),
        ([b'[', rest @ ..], [byte, text @ ..]) => {
            let end = rest
                .iter()
                .position(|byte| *byte == b']')
                .unwrap_or(rest.len());
            let behind = rest.get(end + 1..).unwrap_or_default();
            is_in(&rest[..end], *byte) && matches(behind, text)
        }
        ([b'\\', wanted, rest @ ..] | [wanted, rest @ ..], [byte, text @ ..]) => {
            wanted == byte && matches(rest, text)
        }
        (_, []) => false,
    }
}

fn is_in(set: &[u8], byte: u8) -> bool {
    if let Some(set) = set.strip_prefix(b"^") {
        return !is_in(set, byte);
    }
    match set {
        [first, b'-', last, rest @ ..] => (first..=last).contains(&&byte) || is_in(rest, byte),
        [one, rest @ ..] => *one == byte || is_in(rest, byte),
        [] => false,
    }
}
