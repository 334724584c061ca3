//! Who holds what.

mod broken;
mod rules;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crosslock::{Leadership, LockGuard, MutexGuard, RwLockReadGuard, RwLockWriteGuard, Task};
use crosslock_world::{Process, as_process, current, record, true_now, uninterrupted, violation};

use self::broken::is_of_lease;
use self::rules::{
    judge_abandoned, judge_claim, judge_exclusion, judge_held, judge_idle, judge_token,
};
use super::{ACQUISITIONS, Call, locked, number, plan, waits};
use crate::plan::Topology;

/// By then a server has heard that a process is gone, and gives it nothing more.
const HEARD_OF: Duration = Duration::from_millis(10);

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
    since: Duration,
    /// When an operator had broken it.
    broken: Option<Duration>,
    /// When another was given the name, which nothing prevents where a server loses what it had said; and its number.
    overlapped: Option<(Duration, u64)>,
    /// Whether the guard has said that its lease is over.
    was_lost: Arc<AtomicBool>,
}

impl Hold {
    /// What the guard says. A lease that is over never comes back.
    fn is_held(&self) -> bool {
        let was_lost = self.was_lost.load(Ordering::Relaxed);
        let is_held = as_process(self.process, || self.guard.lease().is_held());
        if is_held && was_lost {
            let token = self.token;
            violation(format!(
                "the lease by token {token} was over, and is held again"
            ));
        }
        self.was_lost.fetch_or(!is_held, Ordering::Relaxed);
        is_held
    }

    /// What was broken before may have been a lease with tokens close to this one's.
    fn broken_since(&self) -> Option<Duration> {
        self.broken.filter(|at| *at >= self.since)
    }
}

#[derive(Default)]
struct Name {
    holds: Vec<Hold>,
    /// The largest token so far, and since when it is known.
    token: (u64, Duration),
    /// The last that held it alone, and whether the next one is to find it abandoned, if that is known.
    last: u64,
    is_abandoned: Option<bool>,
    /// Those that have begun to release it, and haven't ended.
    leaving: Vec<Process>,
    /// Nobody holds it since then.
    free_since: Duration,
    /// When a process that waited for it died last.
    waiter_died: Option<Duration>,
    /// When a guard found that its lease was lost: a server may have it for a while.
    lost: Option<Duration>,
    /// See `exclusive_ends`.
    exclusive_ends: (Duration, Duration),
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
                since: true_now(),
                broken: with(name, |name| name.broken_at(token, kind)),
                overlapped: None,
                was_lost: Arc::default(),
            };
            judge_exclusion(name, &hold);
            judge_token(name, &hold, call);
            judge_abandoned(name, &hold, of.len() == 1);
            if let Some(call) = call {
                judge_idle(name, call);
            }
            with(name, |name| name.holds.push(hold));
        }
    });
    id
}

impl Name {
    /// Another was given it, while that one has it.
    fn overlapped(&mut self, id: u64, by: u64) {
        let mut holds = self.holds.iter_mut();
        if let Some(hold) = holds.find(|hold| hold.id == id) {
            hold.overlapped.get_or_insert((true_now(), by));
        }
    }
}

/// Who has a guard looks at it.
pub fn looking(of: &[&str], id: u64) {
    for name in of {
        let own = |name: &mut Name| name.holds.iter().find(|hold| hold.id == id).cloned();
        if let Some(hold) = with(name, own) {
            hold.is_held();
            judge_claim(name, &hold);
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
        let is_held = hold.is_held();
        judge_held(name, &hold);
        drop(hold);
        let gone = with(name, |name| {
            let at = name.holds.iter().position(|hold| hold.id == id)?;
            let gone = name.holds.remove(at);
            if name.last == id {
                // One that was lost may have been found abandoned, or not. It may not know yet that it was broken.
                let is_known = is_held && gone.broken.is_none();
                name.is_abandoned = is_known.then_some(abandons);
            }
            if gone.kind == Kind::Exclusive {
                let was_long = gone.since + Duration::from_millis(5) < true_now();
                let last_long = was_long.then(true_now);
                name.exclusive_ends = (true_now(), last_long.unwrap_or_default());
            }
            if !is_held {
                name.lost = Some(true_now());
            }
            name.free_since = name.free_since.max(true_now());
            if name
                .waiter_died
                .is_some_and(|at| true_now() < at + HEARD_OF)
            {
                name.free_since = name.free_since.max(true_now() + plan().ttl.mul_f64(1.01));
            }
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
        Topology::Etcd => Duration::from_secs(1),
        // A locker that is dropped leaves it to its session, which may have its whole time then.
        Topology::ZooKeeper => plan().ttl + Duration::from_secs(1),
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

/// What the next one is to find that holds it alone. `None`: another has held it meanwhile, of which nobody knows.
pub fn abandoned(name: &str, is_abandoned: Option<bool>) {
    with(name, |name| {
        name.is_abandoned = is_abandoned;
        if is_abandoned.is_none() {
            name.last = 0;
        }
    });
}

/// When one that held it alone ended; and the same of the last one, if its process can't have handed it over.
pub(super) fn exclusive_ends(name: &str) -> (Duration, Duration) {
    with(name, |name| name.exclusive_ends)
}

/// Whether the last release of it ended then, and nobody has held it since.
pub(super) fn is_free_since(name: &str, then: Range<Duration>) -> bool {
    with(name, |name| {
        let is_over = |lost| lost + plan().ttl < then.end;
        let is_free = name.holds.is_empty() && name.leaving.is_empty();
        let is_free = is_free && name.lost.is_none_or(is_over);
        is_free && then.start < name.free_since && name.free_since < then.end
    })
}

pub(super) fn is_being_broken(name: &str) -> bool {
    with(name, |name| name.breaking > 0)
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
pub fn broke(of: &str, tokens: &[u64]) {
    let now = true_now();
    let is_known = |name: &Name, first: u64| {
        let mut holds = name.holds.iter();
        holds.any(|hold| is_of_lease(first, hold.token, hold.kind))
    };
    let all_are_known = with(of, |name| {
        name.broken.extend(tokens.iter().map(|token| (*token, now)));
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
        // A server of a quorum that was asked again tells of another token. When it was broken, nobody knows.
        if plan().topology == Topology::Quorum && !plan().is_calm() {
            for hold in &mut name.holds {
                hold.broken.get_or_insert(Duration::ZERO);
            }
        }
        tokens.iter().all(|token| is_known(name, *token))
    });
    if !all_are_known {
        waits::may_be_anew(of);
    }
}

/// What it had, or was perhaps given while nobody else had it, stays taken for a ttl.
pub(super) fn died(process: Process, waited_for: &[String]) {
    let until = true_now() + plan().ttl.mul_f64(1.01);
    let mut names = locked(&NAMES);
    for name in waited_for {
        // Nobody may have held it yet.
        names.entry(name.clone()).or_default();
    }
    for (text, name) in &mut *names {
        // A guard that is dropped here would be released by a thread that isn't its own.
        let (gone, left): (Vec<Hold>, Vec<Hold>) = name
            .holds
            .drain(..)
            .partition(|hold| hold.process == process);
        name.holds = left;
        // A guard whose lease is over may still be there.
        let may_be_free = name.holds.is_empty() || plan().loses();
        let has_waited = waited_for.contains(text);
        if has_waited {
            name.waiter_died = Some(true_now());
        }
        let may_have_it = may_be_free && has_waited;
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
