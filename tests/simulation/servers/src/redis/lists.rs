//! The commands for lists and hashes.

use std::collections::VecDeque;

use super::keyspace::{Bytes, Hash};
use super::numbers::{integer, places};
use super::reply::{Outcome, Reply, Words};
use super::state::State;

type List = VecDeque<Bytes>;

fn list<'a>(state: &'a mut State, words: &Words) -> Result<Option<&'a mut List>, Reply> {
    state.keys.held(&words[1])
}

pub(super) fn index(state: &mut State, words: &Words) -> Outcome {
    let Some(list) = list(state, words)? else {
        return Ok(Reply::Nil);
    };
    let at = integer(&words[2])?;
    let place = places(at, at, list.len());
    let found = list.get(place.start).filter(|_| !place.is_empty());
    Ok(Reply::maybe(found.cloned()))
}

pub(super) fn length(state: &mut State, words: &Words) -> Outcome {
    let list = list(state, words)?;
    Ok(Reply::count(list.map_or(0, |list| list.len())))
}

pub(super) fn pop(state: &mut State, words: &Words) -> Outcome {
    let out_of_range = || Reply::error("ERR value is out of range, must be positive");
    let count = match words.get(2) {
        Some(count) => {
            let count = integer(count).map_err(|_| out_of_range())?;
            Some(usize::try_from(count).map_err(|_| out_of_range())?)
        }
        None => None,
    };
    let list = list(state, words)?;
    Ok(match (list, count) {
        (None, None) => Reply::Nil,
        (None, Some(_)) => Reply::NoList,
        (Some(list), None) => Reply::maybe(list.pop_front()),
        (Some(list), Some(count)) => Reply::texts(list.drain(..count.min(list.len()))),
    })
}

pub(super) fn position(state: &mut State, words: &Words) -> Outcome {
    let list = list(state, words)?;
    let at = list.and_then(|list| list.iter().position(|one| *one == words[2]));
    Ok(at.map_or(Reply::Nil, Reply::count))
}

pub(super) fn list_range(state: &mut State, words: &Words) -> Outcome {
    let (first, last) = (integer(&words[2])?, integer(&words[3])?);
    let Some(list) = list(state, words)? else {
        return Ok(Reply::List(Vec::new()));
    };
    let range = places(first, last, list.len());
    Ok(Reply::texts(list.range(range).cloned()))
}

pub(super) fn list_remove(state: &mut State, words: &Words) -> Outcome {
    let count = integer(&words[2])?;
    let Some(list) = list(state, words)? else {
        return Ok(Reply::Int(0));
    };
    let most = match count {
        0 => usize::MAX,
        count => usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX),
    };
    let mut removed = 0;
    let mut stays = |one: &Bytes| {
        let goes = *one == words[3] && removed < most;
        removed += usize::from(goes);
        !goes
    };
    if count < 0 {
        let kept = list.drain(..).rev().filter(|one| stays(one));
        let kept: Vec<_> = kept.collect();
        list.extend(kept.into_iter().rev());
    } else {
        list.retain(|one| stays(one));
    }
    Ok(Reply::count(removed))
}

pub(super) fn push(state: &mut State, words: &Words) -> Outcome {
    let list: &mut List = state.keys.held_or_new(&words[1])?;
    list.extend(words[2..].iter().cloned());
    Ok(Reply::count(list.len()))
}

fn hash<'a>(state: &'a mut State, words: &Words) -> Result<Option<&'a mut Hash>, Reply> {
    state.keys.held(&words[1])
}

pub(super) fn set_fields(state: &mut State, words: &Words) -> Outcome {
    if words.len() % 2 == 1 {
        let error = "ERR wrong number of arguments for 'hset' command";
        return Err(Reply::error(error));
    }
    let hash: &mut Hash = state.keys.held_or_new(&words[1])?;
    let added = words[2..]
        .chunks(2)
        .filter(|pair| hash.set(&pair[0], &pair[1]));
    Ok(Reply::count(added.count()))
}

pub(super) fn field(state: &mut State, words: &Words) -> Outcome {
    let value = hash(state, words)?.and_then(|hash| hash.get(&words[2]).cloned());
    Ok(Reply::maybe(value))
}

pub(super) fn fields(state: &mut State, words: &Words) -> Outcome {
    let hash = hash(state, words)?;
    let value = |field: &Bytes| hash.as_ref().and_then(|hash| hash.get(field).cloned());
    let values = words[2..].iter().map(|field| Reply::maybe(value(field)));
    Ok(Reply::List(values.collect()))
}

pub(super) fn all_fields(state: &mut State, words: &Words) -> Outcome {
    let Some(hash) = hash(state, words)? else {
        return Ok(Reply::List(Vec::new()));
    };
    let all = hash.all().into_iter();
    Ok(Reply::texts(
        all.flat_map(|(field, value)| [field.clone(), value.clone()]),
    ))
}

pub(super) fn delete_fields(state: &mut State, words: &Words) -> Outcome {
    let Some(hash) = hash(state, words)? else {
        return Ok(Reply::Int(0));
    };
    let removed = words[2..].iter().filter(|field| hash.remove(field));
    Ok(Reply::count(removed.count()))
}

pub(super) fn count_fields(state: &mut State, words: &Words) -> Outcome {
    let hash = hash(state, words)?;
    Ok(Reply::count(hash.map_or(0, |hash| hash.len())))
}

pub(super) fn has_field(state: &mut State, words: &Words) -> Outcome {
    let hash = hash(state, words)?;
    let has = hash.is_some_and(|hash| hash.get(&words[2]).is_some());
    Ok(Reply::count(usize::from(has)))
}
