//! The commands for lists and hashes.

use std::collections::VecDeque;

use super::keyspace::{Bytes, Hash};
use super::numbers::{integer, places};
use super::reply::{Outcome, Reply, Words};
use super::state::State;

type List = VecDeque<Bytes>;

/// Does that with the list of a key, or with none.
fn with_list<T>(
    state: &mut State,
    words: &Words,
    act: impl FnOnce(&mut List) -> T,
) -> Result<T, Reply> {
    let list = state.keys.held(&words[1])?;
    Ok(act(list.unwrap_or(&mut List::new())))
}

pub(super) fn index(state: &mut State, words: &Words) -> Outcome {
    let list: Option<&mut List> = state.keys.held(&words[1])?;
    let Some(list) = list else {
        return Ok(Reply::Nil);
    };
    let at = integer(&words[2])?;
    let found = list.range(places(at, at, list.len())).next();
    Ok(Reply::maybe(found.cloned()))
}

pub(super) fn length(state: &mut State, words: &Words) -> Outcome {
    with_list(state, words, |list| Reply::count(list.len()))
}

pub(super) fn pop(state: &mut State, words: &Words) -> Outcome {
    with_list(state, words, |list| Reply::maybe(list.pop_front()))
}

pub(super) fn position(state: &mut State, words: &Words) -> Outcome {
    let at = with_list(state, words, |list| {
        list.iter().position(|one| *one == words[2])
    });
    Ok(at?.map_or(Reply::Nil, Reply::count))
}

pub(super) fn list_range(state: &mut State, words: &Words) -> Outcome {
    let (first, last) = (integer(&words[2])?, integer(&words[3])?);
    with_list(state, words, |list| {
        Reply::texts(list.range(places(first, last, list.len())).cloned())
    })
}

/// So many from the first on, or all.
pub(super) fn list_remove(state: &mut State, words: &Words) -> Outcome {
    let most = match integer(&words[2])? {
        0 => usize::MAX,
        count => usize::try_from(count).map_err(|_| Reply::error("ERR not simulated"))?,
    };
    let mut removed = 0;
    with_list(state, words, |list| {
        list.retain(|one| {
            let goes = *one == words[3] && removed < most;
            removed += usize::from(goes);
            !goes
        });
    })?;
    Ok(Reply::count(removed))
}

pub(super) fn push(state: &mut State, words: &Words) -> Outcome {
    let list: &mut List = state.keys.held_or_new(&words[1])?;
    list.extend(words[2..].iter().cloned());
    Ok(Reply::count(list.len()))
}

/// The same for hashes.
fn with_hash<T>(
    state: &mut State,
    words: &Words,
    act: impl FnOnce(&mut Hash) -> T,
) -> Result<T, Reply> {
    let hash = state.keys.held(&words[1])?;
    Ok(act(hash.unwrap_or(&mut Hash::default())))
}

pub(super) fn set_fields(state: &mut State, words: &Words) -> Outcome {
    if words.len() % 2 == 1 {
        return Err(Reply::error("ERR wrong number of arguments"));
    }
    let hash: &mut Hash = state.keys.held_or_new(&words[1])?;
    let before = hash.len();
    for pair in words[2..].chunks(2) {
        match hash.iter_mut().find(|(field, _)| *field == pair[0]) {
            Some((_, value)) => value.clone_from(&pair[1]),
            None => hash.push((pair[0].clone(), pair[1].clone())),
        }
    }
    Ok(Reply::count(hash.len() - before))
}

fn value_of(hash: &Hash, field: &Bytes) -> Option<Bytes> {
    let mut fields = hash.iter();
    let found = fields.find(|(its, _)| its == field);
    found.map(|(_, value)| value.clone())
}

pub(super) fn field(state: &mut State, words: &Words) -> Outcome {
    with_hash(state, words, |hash| Reply::maybe(value_of(hash, &words[2])))
}

pub(super) fn fields(state: &mut State, words: &Words) -> Outcome {
    with_hash(state, words, |hash| {
        let values = words[2..].iter();
        let values = values.map(|field| Reply::maybe(value_of(hash, field)));
        Reply::List(values.collect())
    })
}

pub(super) fn all_fields(state: &mut State, words: &Words) -> Outcome {
    with_hash(state, words, |hash| {
        let all = hash.iter().cloned();
        Reply::texts(all.flat_map(|(field, value)| [field, value]))
    })
}

pub(super) fn delete_fields(state: &mut State, words: &Words) -> Outcome {
    with_hash(state, words, |hash| {
        let before = hash.len();
        hash.retain(|(field, _)| !words[2..].contains(field));
        Reply::count(before - hash.len())
    })
}

pub(super) fn count_fields(state: &mut State, words: &Words) -> Outcome {
    with_hash(state, words, |hash| Reply::count(hash.len()))
}

pub(super) fn has_field(state: &mut State, words: &Words) -> Outcome {
    with_hash(state, words, |hash| {
        Reply::count(value_of(hash, &words[2]).is_some().into())
    })
}
