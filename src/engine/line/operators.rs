//! What operators see of a name, and do with it.

use std::collections::BTreeSet;

use super::entries::{Entry, Line};
use super::order::used;
use super::store::{Facts, Inspected, LineStore};
use crate::base::claim::Mode;
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::base::inspection::{Holder, Inspection, LockState, Party, Waiter, Wants};
use crate::base::name::Key;

/// So many holders are broken at once.
const AT_ONCE: usize = 60;

/// How a name stands, for those who look.
pub(super) fn inspect(
    store: &impl LineStore,
    key: &Key,
    deadline: &Deadline,
) -> Result<Inspection> {
    let seen = store.inspect(key, true, deadline)?;
    let count = seen.line.holders().len();
    let (holding, waiting) = seen.line.0.split_at(count);
    let (of_holding, of_waiting) = seen.facts.split_at(count);
    let kept = holding.iter().zip(of_holding);
    let kept = kept.filter(|(entry, _)| entry.is_kept());
    let holders = holding.iter().zip(of_holding);
    let holders = holders.filter(|(entry, _)| !entry.is_kept());
    Ok(Inspection {
        name: key.name().to_owned(),
        state: match lock_state(holding) {
            LockState::Kept { .. } => LockState::Kept {
                remaining: kept.filter_map(|(_, facts)| facts.remaining).max(),
            },
            other => other,
        },
        holders: holders.map(|(entry, facts)| holder(entry, facts)).collect(),
        waiters: waiting
            .iter()
            .zip(of_waiting)
            .map(|(entry, facts)| waiter(entry, facts))
            .collect(),
        last_token: seen.last_token,
    })
}

fn lock_state(holding: &[Entry]) -> LockState {
    let Some(first) = holding.first() else {
        return LockState::Free;
    };
    if let Mode::Permits { of, .. } = first.mode {
        let modes: Vec<_> = holding.iter().map(|entry| entry.mode).collect();
        return LockState::Permits {
            taken: used(&modes).try_into().unwrap_or(u32::MAX),
            of: Some(of),
        };
    }
    if holding.iter().all(Entry::is_kept) {
        return LockState::Kept { remaining: None };
    }
    match first.mode {
        Mode::Shared => LockState::Shared,
        Mode::Exclusive | Mode::Permits { .. } => LockState::Exclusive,
    }
}

fn party(entry: &Entry) -> Option<Party> {
    entry.owner().and_then(|owner| Party::of(owner.holder()))
}

fn holder(entry: &Entry, facts: &Facts) -> Holder {
    Holder {
        party: party(entry),
        permits: match entry.mode {
            Mode::Permits { count, .. } => count,
            Mode::Exclusive | Mode::Shared => 1,
        },
        held_for: facts.held_for,
        remaining: facts.remaining,
        token: Some(facts.token),
    }
}

fn waiter(entry: &Entry, facts: &Facts) -> Waiter {
    Waiter {
        party: party(entry),
        wants: match entry.mode {
            Mode::Exclusive => Wants::Exclusive,
            Mode::Shared => Wants::Shared,
            Mode::Permits { count, .. } => Wants::Permits { count },
        },
        waited_for: facts.waited_for,
    }
}

/// Takes a lock from all that one look shows to have it, and from nobody who is let in meanwhile.
pub(super) fn break_lock(
    store: &impl LineStore,
    key: &Key,
    deadline: &Deadline,
) -> Result<Vec<Holder>> {
    let (mut broken, mut meant) = (Vec::new(), None);
    loop {
        let Inspected { line, facts, .. } = store.inspect(key, false, deadline)?;
        let meant = meant.get_or_insert_with(|| places(&line));
        let holding = line.holders().iter().zip(&facts);
        let part = holding.filter(|(entry, _)| meant.contains(&entry.place));
        let (part, facts): (Vec<_>, Vec<_>) = part
            .take(AT_ONCE)
            .map(|(entry, facts)| (entry.clone(), *facts))
            .unzip();
        if part.is_empty() {
            return Ok(broken);
        }
        if store.end(key, &part, deadline)? {
            let had = part.iter().zip(&facts);
            let had = had.filter(|(entry, _)| !entry.is_kept());
            broken.extend(had.map(|(entry, facts)| holder(entry, facts)));
        }
    }
}

/// Of those that hold.
fn places(line: &Line) -> BTreeSet<u64> {
    line.holders().iter().map(|entry| entry.place).collect()
}
