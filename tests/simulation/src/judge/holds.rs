//! Who holds what: exclusion, tokens, what was abandoned, and who learns that its lease is gone.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crosslock::{Leadership, LockGuard, MutexGuard, RwLockReadGuard, RwLockWriteGuard, Task};
use crosslock_world::{Process, as_process, current, record, true_now, uninterrupted, violation};

use super::{ACQUISITIONS, Call, locked, number, plan};
use crate::plan::{Step, Topology};

/// How a name is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Exclusive,
    Shared,
    Permits { count: u32, of: u32 },
}

/// What has a lease.
pub trait Held: Send + Sync {
    fn lease(&self) -> &LockGuard;
}

impl Held for LockGuard {
    fn lease(&self) -> &LockGuard {
        self
    }
}

impl Held for MutexGuard<i64> {
    fn lease(&self) -> &LockGuard {
        MutexGuard::lease(self)
    }
}

impl Held for RwLockWriteGuard<i64> {
    fn lease(&self) -> &LockGuard {
        RwLockWriteGuard::lease(self)
    }
}

impl Held for RwLockReadGuard<i64> {
    fn lease(&self) -> &LockGuard {
        RwLockReadGuard::lease(self)
    }
}

impl Held for Leadership {
    fn lease(&self) -> &LockGuard {
        self
    }
}

impl Held for Task<u64> {
    fn lease(&self) -> &LockGuard {
        Task::lease(self)
    }
}

/// A guard that a thread has.
#[derive(Clone)]
struct Hold {
    id: u64,
    kind: Kind,
    process: Process,
    guard: Arc<dyn Held>,
    token: u64,
    /// When an operator had broken it.
    broken: Option<Duration>,
    /// When another was given the name, which nothing prevents where a server loses what it had said.
    overlapped: Option<Duration>,
}

#[derive(Default)]
struct Name {
    holds: Vec<Hold>,
    /// The largest token so far.
    token: u64,
    /// The last that held it alone, and whether the next one is to find it abandoned, if that is known.
    last: u64,
    is_abandoned: Option<bool>,
    /// Those that have begun to release it, and haven't ended.
    leaving: Vec<Process>,
    /// Nobody holds it since then.
    free_since: Duration,
    /// Nobody gets it before, as its last holder has asked for.
    not_before: Duration,
    /// The first tokens of leases that an operator has broken.
    broken: Vec<(u64, Duration)>,
    /// How many may break it just now.
    breaking: usize,
}

static NAMES: Mutex<BTreeMap<String, Name>> = Mutex::new(BTreeMap::new());

fn with<T>(name: &str, work: impl FnOnce(&mut Name) -> T) -> T {
    work(locked(&NAMES).entry(name.to_owned()).or_default())
}

/// A thread has a guard of these names: they are judged, and registered. The number is for `ending`.
pub fn acquired(
    of: &[&str],
    kind: Kind,
    guard: &Arc<impl Held + 'static>,
    call: Option<Call>,
) -> u64 {
    ACQUISITIONS.fetch_add(1, Ordering::Relaxed);
    let id = number();
    let guard: Arc<dyn Held> = guard.clone();
    uninterrupted(|| {
        let token = guard.lease().fencing_token();
        let left = guard.lease().remaining();
        record(&format!(
            "has {of:?} {kind:?} by token {token}, {left:?} left"
        ));
        for name in of {
            let hold = Hold {
                id,
                kind,
                process: current(),
                guard: guard.clone(),
                token,
                broken: with(name, |name| name.broken_at(token, kind)),
                overlapped: None,
            };
            judge_exclusion(name, &hold);
            judge_token(name, &hold);
            judge_abandoned(name, &hold, of.len() == 1);
            if let Some(call) = call {
                judge_idle(name, call);
            }
            with(name, |name| name.holds.push(hold));
        }
    });
    id
}

/// Tokens that a lease has above its first.
fn tokens_of_a_lease() -> u64 {
    match plan().topology {
        Topology::Etcd | Topology::ZooKeeper => 256,
        _ => 1024,
    }
}

impl Name {
    /// Only exclusive leases are handed over, with larger tokens.
    fn broken_at(&self, token: u64, kind: Kind) -> Option<Duration> {
        let mut broken = self.broken.iter();
        let tokens = if kind == Kind::Exclusive {
            tokens_of_a_lease()
        } else {
            1
        };
        let is_its = |first: u64| (first..first + tokens).contains(&token);
        broken.find(|(first, _)| is_its(*first)).map(|(_, at)| *at)
    }
}

impl Name {
    /// Another was given it, while that one has it.
    fn overlapped(&mut self, id: u64) {
        let mut holds = self.holds.iter_mut();
        if let Some(hold) = holds.find(|hold| hold.id == id) {
            hold.overlapped.get_or_insert(true_now());
        }
    }
}

/// A guard is about to be released, or passed on.
pub fn ending(of: &[&str], id: u64, abandons: bool) {
    for name in of {
        let own = |name: &mut Name| name.holds.iter().find(|hold| hold.id == id).cloned();
        let Some(hold) = with(name, own) else {
            continue;
        };
        // A thread of the world may wait in here, as in all that asks a guard.
        let is_held = hold.guard.lease().is_held();
        judge_held(name, &hold);
        drop(hold);
        let gone = with(name, |name| {
            let at = name.holds.iter().position(|hold| hold.id == id)?;
            let gone = name.holds.remove(at);
            if name.last == id {
                // One that was lost may have been found abandoned, or not.
                name.is_abandoned = is_held.then_some(abandons);
            }
            name.free_since = name.free_since.max(true_now());
            name.leaving.push(gone.process);
            Some(gone)
        });
        drop(gone);
    }
}

/// Its release has ended.
pub fn unreleased(of: &[&str], until: Duration) {
    for name in of {
        with(name, |name| {
            name.free_since = name.free_since.max(until);
            let left = name.leaving.iter().position(|one| *one == current());
            left.map(|at| name.leaving.swap_remove(at));
        });
    }
}

/// It stays taken until then, as its holder has asked for.
pub fn not_before(name: &str, until: Duration) {
    with(name, |name| name.not_before = until);
}

/// A lease is passed on: it may be taken for a ttl, and nobody knows whether it was released.
pub fn passed_on(of: &[&str]) {
    let slack = match plan().topology {
        Topology::Etcd | Topology::ZooKeeper => Duration::from_secs(1),
        _ => Duration::ZERO,
    };
    unreleased(of, true_now() + plan().ttl + slack);
    abandoned(of[0], None);
}

/// Somebody has adopted a lease that had this token.
pub fn adopted(name: &str, old: u64, guard: &LockGuard) {
    let token = guard.fencing_token();
    if token <= old && guard.is_held() {
        violation(format!(
            "{name} was adopted with token {token}, behind {old}"
        ));
    }
}

/// What the next one is to find that holds it alone.
pub fn abandoned(name: &str, is_abandoned: Option<bool>) {
    with(name, |name| name.is_abandoned = is_abandoned);
}

/// An operator is about to break what is held. As long as that isn't over, nobody knows what is.
pub fn breaking(name: &str) {
    with(name, |name| name.breaking += 1);
}

/// Whether an operator has broken this lease, or may be about to.
pub fn is_broken(name: &str, kind: Kind, guard: &impl Held) -> bool {
    let token = guard.lease().fencing_token();
    with(name, |name| {
        name.breaking > 0 || name.broken_at(token, kind).is_some()
    })
}

/// An operator has broken what had these tokens.
pub fn broke(name: &str, tokens: impl Iterator<Item = u64>) {
    let now = true_now();
    with(name, |name| {
        name.broken.extend(tokens.map(|token| (token, now)));
        name.breaking -= 1;
        name.is_abandoned = None;
        name.last = 0;
        name.free_since = name.free_since.max(now);
        let broken = std::mem::take(&mut name.holds);
        name.holds = broken
            .into_iter()
            .map(|hold| Hold {
                broken: hold
                    .broken
                    .or_else(|| name.broken_at(hold.token, hold.kind)),
                ..hold
            })
            .collect();
    });
}

/// What it had, or was perhaps given while nobody else had it, stays taken for a ttl.
pub(super) fn died(process: Process, waited_for: &[String]) {
    let until = true_now() + plan().ttl.mul_f64(1.01);
    for (text, name) in &mut *locked(&NAMES) {
        // A guard that is dropped here would be released by a thread that isn't its own.
        let (gone, left): (Vec<Hold>, Vec<Hold>) = name
            .holds
            .drain(..)
            .partition(|hold| hold.process == process);
        name.holds = left;
        let may_have_it = name.holds.is_empty() && waited_for.contains(text);
        if may_have_it || !gone.is_empty() || name.leaving.contains(&process) {
            name.free_since = name.free_since.max(until);
        }
        if gone.iter().any(|hold| hold.id == name.last) {
            name.is_abandoned = Some(true);
        }
        std::mem::forget(gone);
    }
}

pub(super) fn forget() {
    std::mem::forget(std::mem::take(&mut *locked(&NAMES)));
}

fn judge_exclusion(name: &str, hold: &Hold) {
    let others: Vec<Hold> = with(name, |name| name.holds.clone());
    let mut out = 0;
    for other in others {
        let Hold {
            id,
            kind,
            process,
            broken,
            ..
        } = other;
        let is_held = as_process(process, || other.guard.lease().is_held());
        judge_overlap(name, &other, is_held);
        let is_there = with(name, |name| {
            name.breaking == 0 && name.holds.iter().any(|hold| hold.id == id)
        });
        // The last clone of a guard that is ending is dropped by its own thread, which waits for this one to go.
        drop(other);
        let is_broken = broken.is_some() || hold.broken.is_some();
        let both = is_held && is_there && hold.guard.lease().is_held();
        let excludes = hold.kind == Kind::Exclusive || kind == Kind::Exclusive;
        if both && excludes && !plan().is_safe() {
            with(name, |name| name.overlapped(id));
        }
        if !both || is_broken || !plan().is_safe() {
            continue;
        }
        if let Kind::Permits { count, .. } = kind {
            out += count;
        }
        if excludes {
            let own = hold.kind;
            violation(format!(
                "{name} has two holders: {own:?} while {kind:?} holds it"
            ));
        }
    }
    if let Kind::Permits { count, of } = hold.kind
        && out + count > of
    {
        violation(format!("{} permits of {of} are out of {name}", out + count));
    }
}

/// Whatever went wrong: whose lease is gone learns of it by its next renewal.
fn judge_overlap(name: &str, hold: &Hold, is_held: bool) {
    let most = match plan().topology {
        Topology::Redis => plan().ttl.mul_f64(1.05) + Duration::from_millis(100),
        // Who asks which server has the name may be told of one that had it.
        _ => plan().ttl * 2 + Duration::from_secs(2),
    };
    let gone = [hold.broken, hold.overlapped].into_iter().flatten().min();
    if is_held && gone.is_some_and(|gone| gone + most < true_now()) {
        violation(format!("{name} is gone since {gone:?}, and is held"));
    }
}

fn judge_token(name: &str, hold: &Hold) {
    let is_held = hold.guard.lease().is_held();
    let last = with(name, |name| {
        let last = name.token;
        name.token = last.max(hold.token);
        // One that is being broken may come to be told behind the next one.
        (name.breaking == 0 && hold.broken.is_none()).then_some(last)
    });
    let token = hold.token;
    if let Some(last) = last
        && hold.kind == Kind::Exclusive
        && is_held
        && token <= last
    {
        violation(format!("{name} has token {token} behind {last}"));
    }
}

/// Who holds it next finds it abandoned by who died or panicked, and by nobody else.
fn judge_abandoned(name: &str, hold: &Hold, is_alone: bool) {
    if hold.kind != Kind::Exclusive {
        return;
    }
    let known = with(name, |name| {
        name.last = hold.id;
        name.is_abandoned.take().filter(|_| name.breaking == 0)
    });
    let found = hold.guard.lease().was_abandoned();
    let is_sure = match known {
        // Of several names any may have been abandoned.
        _ if !is_alone => false,
        // ZooKeeper's servers are told who holds it a round trip later, and those that give up may be told as well.
        _ if plan().topology == Topology::ZooKeeper => false,
        Some(true) => plan().only_kills() && !plan().does(Step::Break),
        Some(false) => plan().is_calm(),
        None => false,
    };
    if is_sure && known != Some(found) {
        let (not, was) = if found { ("not ", "") } else { ("", "not ") };
        violation(format!(
            "{name} was {not}abandoned, and is {was}said to be so"
        ));
    }
}

/// In a calm world somebody has the lock at once when it is free.
fn judge_idle(name: &str, call: Call) {
    let not_before = with(name, |name| std::mem::take(&mut name.not_before));
    if true_now() < not_before && plan().is_calm() {
        violation(format!("{name} was to be free at {not_before:?}"));
    }
    /// A few round trips, of threads that others go before.
    const MOST: Duration = Duration::from_millis(250);
    let (is_free, free_since) = with(name, |name| (name.holds.is_empty(), name.free_since));
    let idle = true_now().saturating_sub(free_since.max(call.began));
    let waits_for_others = plan().does(Step::All) && name.starts_with("lock");
    // One that is closed while it waits isn't known to wait.
    let is_unsure = !plan().is_calm() && name.starts_with("closed");
    // Replicas that were given all data confirm nothing for a second.
    let most = match plan().min_replicas {
        0 => MOST,
        _ => Duration::from_millis(1_200),
    };
    if is_free && idle > most && plan().tells_deaths() && !waits_for_others && !is_unsure {
        violation(format!(
            "{name}: nobody had it for {idle:?} while somebody waited"
        ));
    }
}

/// A lease that was broken is soon known to be lost, and no other is lost in a calm world.
fn judge_held(name: &str, hold: &Hold) {
    let is_held = hold.guard.lease().is_held();
    judge_overlap(name, hold, is_held);
    if !plan().is_calm() {
        return;
    }
    let told = plan().ttl.mul_f64(0.4) + Duration::from_millis(200);
    match hold.broken {
        Some(at) if is_held && true_now() > at + told => {
            violation(format!("{name} was broken at {at:?}, and is held"));
        }
        None if !is_held && !plan().loses() => {
            violation(format!("{name} was lost without a cause"));
        }
        _ => {}
    }
}
