//! The engine of a store: each call to what does it; and what operators see of a name, and do with it.

use std::sync::{Arc, Weak};
use std::{collections::BTreeSet, fmt, time::Duration};

use super::leases::{self, LineLeases};
use super::store::{Entry, Line, LineStore};
use super::{order::used, wait::LineWait};
use crate::base::{
    Deadline, Finding, Holder, Inspection, Key, LockState, Mode, Namespace, Options, Owner, Party,
    Result, Stored, Waiter,
};
use crate::engine::{
    Capabilities, Change, Cursor, Engine, Outcome, Page, Request, Revocations, Wait, Watch,
};

/// Locks in a store of lines.
pub(crate) struct LineEngine<S>(pub(crate) Arc<S>);

impl<S: LineLeases + LineOperators> Engine for LineEngine<S> {
    fn endpoint(&self) -> &str {
        self.0.endpoint()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        Box::new(LineWait::new(self.0.clone()))
    }

    fn change(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let (store, deadline) = (&*self.0, &self.0.gives_up_by(deadline));
        match change {
            Change::Renew => store.prove(request, deadline),
            Change::Verify => leases::verify(store, request, deadline),
            Change::Release(release) => leases::release(store, request, release, deadline),
            Change::Store(value) => leases::store(store, request, value, deadline),
            Change::Downgrade { last_used, value } => {
                leases::downgrade(store, request, (last_used, value), deadline)
            }
            Change::Adopt { from, last_used } => {
                leases::adopt(store, request, (from, last_used), deadline)
            }
            Change::GiveAway => {
                store.give_away(request);
                Ok(Outcome::DONE)
            }
        }
    }

    fn inspect(&self, key: &Key, deadline: &Deadline) -> Result<Inspection> {
        inspect(&*self.0, key, &self.0.gives_up_by(deadline))
    }

    fn list(&self, of: (&Namespace, &str), cursor: Cursor, deadline: &Deadline) -> Result<Page> {
        self.0.list(of, &cursor, &self.0.gives_up_by(deadline))
    }

    fn break_lock(&self, key: &Key, deadline: &Deadline) -> Result<Vec<Holder>> {
        break_lock(&*self.0, key, &self.0.gives_up_by(deadline))
    }

    fn free_permits(&self, key: &Key, of: u32, deadline: &Deadline) -> Result<u32> {
        let deadline = self.0.gives_up_by(deadline);
        let seen = self.0.inspect(key, Purpose::Count, &deadline)?;
        Ok(seen.line.free_permits(of))
    }

    fn load(&self, key: &Key, deadline: &Deadline) -> Result<Stored> {
        self.0.load(key, &self.0.gives_up_by(deadline))
    }

    fn watch(&self, key: &Key) -> Result<Box<dyn Watch>> {
        Ok(self.0.watch_value(key))
    }

    fn remove(&self, key: &Key, deadline: &Deadline) -> Result<()> {
        self.0.remove(key, &self.0.gives_up_by(deadline))
    }

    fn value_key(&self, key: &Key) -> String {
        self.0.value_key(key)
    }

    fn diagnose(&self, of: (&Namespace, &Options), deadline: &Deadline) -> Result<Vec<Finding>> {
        self.0.diagnose(of, deadline)
    }

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.0.tell_revocations(to);
    }

    fn after_fork(&self) -> Option<Arc<dyn Engine>> {
        Some(Arc::new(LineEngine(self.0.after_fork())))
    }

    fn abandon(&self, owner: &Owner) {
        self.0.abandon(owner);
    }
}

impl<S: LineStore> fmt::Debug for LineEngine<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What operators ask of a store.
pub(crate) trait LineOperators: LineStore {
    /// A name with all that stand in its line, for that purpose.
    fn inspect(&self, key: &Key, purpose: Purpose, deadline: &Deadline) -> Result<Inspected>;

    /// Ends these entries at once, and tells their owners that they were broken. False if not all are as they were
    /// seen.
    fn end(&self, key: &Key, entries: &[Entry], deadline: &Deadline) -> Result<bool>;

    /// See [`Engine::list`](crate::engine::Engine::list).
    fn list(&self, of: (&Namespace, &str), cursor: &Cursor, deadline: &Deadline) -> Result<Page>;

    /// The value of a name.
    fn load(&self, key: &Key, deadline: &Deadline) -> Result<Stored>;

    /// See [`Engine::watch`](crate::engine::Engine::watch).
    fn watch_value(&self, key: &Key) -> Box<dyn Watch>;

    /// Deletes the value, or a newer one if that comes meanwhile.
    fn remove(&self, key: &Key, deadline: &Deadline) -> Result<()>;

    /// For errors: where the value is stored.
    fn value_key(&self, key: &Key) -> String;

    /// See [`Engine::diagnose`](crate::engine::Engine::diagnose).
    fn diagnose(&self, of: (&Namespace, &Options), deadline: &Deadline) -> Result<Vec<Finding>>;
}

/// What a name is looked at for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It is shown, also how long each entry lasts. That may take a request for each.
    Show,
    /// Its free permits are counted.
    Count,
    /// It is broken. A kept entry whose time is over is still in line: a waiter behind it wasn't let in.
    Break,
}

/// A name, for operators.
#[derive(Debug)]
pub(crate) struct Inspected {
    /// All of it, with the whole text of owners.
    pub(crate) line: Line,
    /// Of each entry.
    pub(crate) facts: Vec<Facts>,
    /// Not below a token that was given out, and below all that are given later.
    pub(crate) last_token: Option<u64>,
}

/// What operators are told of an entry besides.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    /// The token of its lease, if it holds.
    pub(crate) token: u64,
    pub(crate) held_for: Option<Duration>,
    pub(crate) waited_for: Option<Duration>,
    /// How long it lasts if it isn't renewed, or stays kept.
    pub(crate) remaining: Option<Duration>,
}

/// This many holders are broken at once.
const AT_ONCE: usize = 60;

/// How a name stands, for operators.
pub(super) fn inspect(
    store: &impl LineOperators,
    key: &Key,
    deadline: &Deadline,
) -> Result<Inspection> {
    let seen = store.inspect(key, Purpose::Show, deadline)?;
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
        Mode::Exclusive | Mode::Permits { .. } | Mode::Task => LockState::Exclusive,
    }
}

fn party(entry: &Entry) -> Option<Party> {
    entry.owner().and_then(|owner| Party::of(owner.holder()))
}

fn holder(entry: &Entry, facts: &Facts) -> Holder {
    Holder {
        party: party(entry),
        permits: entry.mode.permits(),
        held_for: facts.held_for,
        remaining: facts.remaining,
        token: Some(facts.token),
    }
}

fn waiter(entry: &Entry, facts: &Facts) -> Waiter {
    Waiter {
        party: party(entry),
        wants: entry.mode.wants(),
        waited_for: facts.waited_for,
    }
}

/// Takes a lock from all holders that the first look shows, and from none that is let in meanwhile.
pub(super) fn break_lock(
    store: &impl LineOperators,
    key: &Key,
    deadline: &Deadline,
) -> Result<Vec<Holder>> {
    let (mut broken, mut meant) = (Vec::new(), None);
    loop {
        let Inspected { line, facts, .. } = store.inspect(key, Purpose::Break, deadline)?;
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

/// How the members are that decide by majority.
pub(crate) fn members(found: String, are_well: bool, is_alone: bool, look: &str) -> Finding {
    const CHECK: &str = "members";
    if !are_well {
        let consequence = "locks work only while a majority of the members is up";
        return Finding::weak(CHECK, found, consequence, look);
    }
    if is_alone {
        let consequence =
            "while it is down nothing can be locked, and the loss of its disk frees all locks";
        let advice = "run three or five members, and list all of them in the URL";
        return Finding::weak(CHECK, found, consequence, advice);
    }
    Finding::fine(CHECK, found)
}
