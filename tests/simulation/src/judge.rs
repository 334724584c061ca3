//! The rules, while it happens: time and order in a world are exact, so nothing has to be guessed from a log.
//!
//! What is here is shared by all simulated processes, and never locked while a thread of the world may wait.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crosslock::LockGuard;
use crosslock_world::{Process, as_process, current, record, uninterrupted, violation};

use crate::plan::Plan;

/// How a name is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Exclusive,
    Shared,
    Permits { count: u32, of: u32 },
}

/// A guard that a thread has.
struct Hold {
    id: u64,
    kind: Kind,
    process: Process,
    guard: Arc<LockGuard>,
}

#[derive(Default)]
struct Names(BTreeMap<String, Name>);

#[derive(Default)]
struct Name {
    holds: Vec<Hold>,
    /// The largest token so far.
    token: u64,
    /// What was stored in its counter for certain, and how many stores may have been or not.
    stored: i64,
    unclear: i64,
}

static NAMES: Mutex<Names> = Mutex::new(Names(BTreeMap::new()));
static PLAN: OnceLock<Plan> = OnceLock::new();
static NEXT: AtomicU64 = AtomicU64::new(1);
pub static ACQUISITIONS: AtomicUsize = AtomicUsize::new(0);
pub static TROUBLES: AtomicUsize = AtomicUsize::new(0);

fn names() -> MutexGuard<'static, Names> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn begin(plan: &Plan) {
    let _ = PLAN.set(plan.clone());
}

pub fn plan() -> &'static Plan {
    PLAN.get().expect("a plan")
}

/// A thread has a guard of these names: they are judged, and registered. The number is for `ending`.
pub fn acquired(of: &[&str], kind: Kind, guard: &Arc<LockGuard>) -> u64 {
    ACQUISITIONS.fetch_add(1, Ordering::Relaxed);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    uninterrupted(|| {
        let token = guard.fencing_token();
        record(&format!(
            "has {of:?} {kind:?} by token {token}, {:?} left",
            guard.remaining()
        ));
        for name in of {
            judge_exclusion(name, kind, guard);
            judge_token(name, kind, guard, token);
            let hold = Hold {
                id,
                kind,
                process: current(),
                guard: guard.clone(),
            };
            names()
                .0
                .entry((*name).to_owned())
                .or_default()
                .holds
                .push(hold);
        }
    });
    id
}

/// A guard is about to be released, or passed on.
pub fn ending(of: &[&str], id: u64) {
    for name in of {
        if let Some(name) = names().0.get_mut(*name) {
            name.holds.retain(|hold| hold.id != id);
        }
    }
}

/// A process was killed: what it holds counts no more, although its threads never say so.
pub fn died(process: Process) {
    for name in names().0.values_mut() {
        // A guard that is dropped here would be released by a thread that isn't its own.
        let (gone, left) = name
            .holds
            .drain(..)
            .partition(|hold| hold.process == process);
        name.holds = left;
        std::mem::forget::<Vec<Hold>>(gone);
    }
}

fn conflict(one: Kind, other: Kind) -> bool {
    one == Kind::Exclusive || other == Kind::Exclusive
}

fn judge_exclusion(name: &str, kind: Kind, guard: &Arc<LockGuard>) {
    let others: Vec<_> = {
        let names = names();
        let holds = names.0.get(name).map(|name| name.holds.iter());
        let holds = holds.into_iter().flatten();
        holds
            .map(|hold| (hold.id, hold.kind, hold.process, hold.guard.clone()))
            .collect()
    };
    let mut out = 0;
    for (id, of, process, other) in others {
        let is_held = as_process(process, || other.is_held());
        let is_there = names()
            .0
            .get(name)
            .is_some_and(|name| name.holds.iter().any(|hold| hold.id == id));
        // The last clone of a guard that is ending is dropped by its own thread, which waits for this one to go.
        drop(other);
        if !is_held || !is_there || !guard.is_held() || !plan().is_safe() {
            continue;
        }
        if let Kind::Permits { count, .. } = of {
            out += count;
        }
        if conflict(kind, of) {
            violation(format!(
                "{name} has two holders: {kind:?} while {of:?} holds it"
            ));
        }
    }
    if let Kind::Permits { count, of } = kind
        && out + count > of
    {
        violation(format!("{} permits of {of} are out of {name}", out + count));
    }
}

fn judge_token(name: &str, kind: Kind, guard: &Arc<LockGuard>, token: u64) {
    let is_held = guard.is_held();
    let mut names = names();
    let known = names.0.entry(name.to_owned()).or_default();
    let last = known.token;
    known.token = last.max(token);
    drop(names);
    if kind == Kind::Exclusive && is_held && token <= last {
        violation(format!("{name} has token {token} behind {last}"));
    }
}

/// A holder has read the counter of a name.
pub fn read(name: &str, value: i64) {
    let (stored, unclear) = {
        let names = names();
        names
            .0
            .get(name)
            .map_or((0, 0), |name| (name.stored, name.unclear))
    };
    if plan().is_safe() && !(stored..=stored + unclear).contains(&value) {
        violation(format!(
            "{name} is {value}, but {stored} stores are certain and {unclear} unclear"
        ));
    }
}

/// A store of a counter begins: until it has ended it may have been carried out or not.
pub fn storing(name: &str) {
    names().0.entry(name.to_owned()).or_default().unclear += 1;
}

/// It was carried out, or it wasn't.
pub fn stored(name: &str, was_stored: bool) {
    let mut names = names();
    let name = names.0.entry(name.to_owned()).or_default();
    name.unclear -= 1;
    name.stored += i64::from(was_stored);
}
