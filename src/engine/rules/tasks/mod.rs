//! The rules of a delay queue: which task is due, which worker gets it, and what becomes of it. Memory follows them;
//! the scripts of `lua/task/` are the same, in the language of Redis.
//!
//! A task is delayed, ready, running or buried, or gone. Workers that find nothing to do wait in a line. The first of
//! them is the leader: it is told when the next task is due or the next lease ends, and sleeps until then. The others
//! are told nothing. A worker in the line is called, which means that it is to ask, when as many tasks are ready as
//! workers are up to its place; and the leader also when it was told nothing, or too late a time.
//!
//! What always holds here: nothing looks at a clock; a task is in one state; a task that runs has one worker, whose
//! lease is its own until another call finds it over; each later try of a queue has a larger token.

mod shown;
mod single;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::{sync::Arc, time::Duration};

use crate::base::{Due, NewTask, Policy, TaskAnswer, TaskCall, TaskEnd, TaskRecord, Token};

/// Microseconds of the engine's clock.
pub(crate) type Micros = u64;

/// The tasks of a queue, and its workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "delay", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Tasks {
    tasks: BTreeMap<Arc<str>, Task>,
    /// Those that are delayed or ready, by when they are due.
    due: Timed,
    /// The tasks that run, by their owners, and when the owners' leases end.
    running: BTreeMap<Arc<str>, Arc<str>>,
    ends: Timed,
    /// By when they were buried.
    buried: Timed,
    /// The ids of finished tasks, by when they are forgotten.
    finished: Timed,
    line: VecDeque<Waiter>,
    /// The last token.
    token: u64,
    /// Owners that were called and haven't been told yet.
    #[cfg_attr(feature = "delay", serde(skip))]
    called: Vec<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "delay", derive(serde::Serialize, serde::Deserialize))]
struct Task {
    #[cfg_attr(feature = "delay", serde(with = "crate::base::task::as_text"))]
    payload: Arc<[u8]>,
    policy: Policy,
    /// Of the call that inserted it.
    nonce: Arc<str>,
    due: Micros,
    /// How often it was taken.
    attempt: u32,
    /// Its worker, while it runs, and the token of that.
    owner: Option<Arc<str>>,
    token: u64,
    /// Whether its last worker vanished.
    is_abandoned: bool,
    error: Arc<str>,
}

/// Texts by a time, as a sorted set of Redis has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "delay",
    derive(serde::Serialize, serde::Deserialize),
    serde(
        from = "BTreeMap<Arc<str>, Micros>",
        into = "BTreeMap<Arc<str>, Micros>"
    )
)]
struct Timed {
    times: BTreeMap<Arc<str>, Micros>,
    order: BTreeSet<(Micros, Arc<str>)>,
}

impl From<BTreeMap<Arc<str>, Micros>> for Timed {
    fn from(times: BTreeMap<Arc<str>, Micros>) -> Self {
        let order = times.iter().map(|(text, at)| (*at, text.clone())).collect();
        Timed { times, order }
    }
}

impl From<Timed> for BTreeMap<Arc<str>, Micros> {
    fn from(timed: Timed) -> Self {
        timed.times
    }
}

impl Timed {
    fn set(&mut self, text: Arc<str>, at: Micros) {
        self.remove(&text);
        self.times.insert(text.clone(), at);
        self.order.insert((at, text));
    }

    fn remove(&mut self, text: &str) -> bool {
        let removed = self.times.remove_entry(text);
        removed.is_some_and(|(text, at)| self.order.remove(&(at, text)))
    }

    fn get(&self, text: &str) -> Option<Micros> {
        self.times.get(text).copied()
    }

    fn first(&self) -> Option<Micros> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Those whose time has come, first come first.
    fn until(&self, now: Micros) -> impl Iterator<Item = &Arc<str>> {
        let until = self.order.iter().take_while(move |(at, _)| *at <= now);
        until.map(|(_, text)| text)
    }
}

/// A worker that waits for a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "delay", derive(serde::Serialize, serde::Deserialize))]
struct Waiter {
    owner: Arc<str>,
    /// When its next question is overdue, if it has to ask from time to time.
    overdue: Option<Micros>,
    told: Told,
}

/// What a waiter was told last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "delay", derive(serde::Serialize, serde::Deserialize))]
enum Told {
    Nothing,
    /// To sleep until then.
    Sleep(Micros),
    /// To ask.
    Called,
}

/// The answer to a worker that asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Task {
        token: Token,
        record: TaskRecord,
    },
    /// There is nothing for it.
    Empty {
        /// Whether it was in the line before.
        was_queued: bool,
        /// Its place, 1 for the leader; 0 if it doesn't wait.
        place: usize,
        /// When the leader is to ask.
        next: Option<Micros>,
    },
}

/// How a worker that asks waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    Not,
    /// Until then it asks again, if it has to.
    Until(Option<Micros>),
}

/// How many workers one call wakes at most: each of them goes on.
const MOST_CALLED: usize = 16;

/// How many leases one call ends at most.
const MOST_ENDED: usize = 64;

impl Tasks {
    /// Whether there is nothing to remember.
    pub(crate) fn is_unused(&self) -> bool {
        self.tasks.is_empty() && self.line.is_empty() && self.finished.order.is_empty()
    }

    /// Asks for a task. An owner that has one gets it anew, with its token.
    pub(crate) fn ask(&mut self, owner: &str, ttl: Micros, waits: Waits, now: Micros) -> Asked {
        self.end_leases(now);
        if let Some((owner, id)) = self.running.get_key_value(owner) {
            self.ends.set(owner.clone(), now + ttl);
            if let Some(taken) = self.taken(&id.clone(), now) {
                return taken;
            }
        }
        self.drop_overdue(owner, now);
        let at = self.place_of(owner);
        if let Some(id) = self.next_for(at, now) {
            at.map(|at| self.line.remove(at));
            self.take(&id, owner, ttl, now);
            self.call_waiters(now);
            if let Some(taken) = self.taken(&id, now) {
                return taken;
            }
        }
        let was_queued = at.is_some();
        let Waits::Until(overdue) = waits else {
            at.map(|at| self.line.remove(at));
            self.call_waiters(now);
            return Asked::Empty {
                was_queued,
                place: 0,
                next: None,
            };
        };
        let at = at.unwrap_or_else(|| self.enter(owner));
        let next = self.next_event().filter(|_| at == 0);
        let waiter = &mut self.line[at];
        waiter.overdue = overdue;
        waiter.told = next.map_or(Told::Nothing, Told::Sleep);
        // The leader before may have been dropped.
        self.call_waiters(now);
        Asked::Empty {
            was_queued,
            place: at + 1,
            next,
        }
    }

    /// When a waiting owner is to ask, if nobody calls it before: `None` at once.
    pub(crate) fn asks_at(&self, owner: &str, now: Micros) -> Option<Micros> {
        let at = self.place_of(owner)?;
        if self.line[at].told == Told::Called || self.next_for(Some(at), now).is_some() {
            return None;
        }
        let next = self.next_event().filter(|_| at == 0);
        Some(next.unwrap_or(Micros::MAX)).filter(|next| *next > now)
    }

    /// Makes a lease last for another ttl, or only looks at it; says whether it is the owner's.
    pub(crate) fn renew(
        &mut self,
        owner: &str,
        ttl: Option<Micros>,
        granted: Option<u64>,
        now: Micros,
    ) -> bool {
        let Some((owner, id)) = self.running.get_key_value(owner) else {
            return false;
        };
        let token = self.tasks.get(id).map(|task| task.token);
        let is_over = self.ends.get(owner).is_none_or(|end| end <= now);
        if is_over || (granted.is_some() && granted != token) {
            return false;
        }
        if let Some(ttl) = ttl {
            self.ends.set(owner.clone(), now + ttl);
        }
        true
    }

    /// Ends an owner's task; says whether it had one. `None`: it was dropped. A late copy of its question may have put
    /// it into the line.
    pub(crate) fn end(
        &mut self,
        owner: &str,
        end: Option<TaskEnd<'_>>,
        granted: Option<u64>,
        now: Micros,
    ) -> bool {
        if !self.renew(owner, None, granted, now) {
            self.leave_line(owner, now);
            return false;
        }
        let Some(id) = self.free(owner) else {
            return false;
        };
        match end {
            Some(TaskEnd::Done) => {
                // Nobody has anything to do because of that.
                self.finish(&id, now);
                return true;
            }
            Some(TaskEnd::RetryIn(wait, error)) => {
                self.retry(&id, Some(after(now, wait)), error, now);
            }
            Some(TaskEnd::Retry(error)) => self.retry(&id, None, error, now),
            Some(TaskEnd::Bury(why)) => self.bury(&id, why, now),
            None => self.retry(&id, None, DROPPED, now),
        }
        self.call_waiters(now);
        true
    }

    /// Takes back what an owner asked for that doesn't know what it has: its place, or a task that it never saw.
    pub(crate) fn take_back(&mut self, owner: &str, now: Micros) -> bool {
        let Some(id) = self.free(owner) else {
            return self.leave_line(owner, now);
        };
        if let Some(task) = self.tasks.get_mut(&id) {
            (task.owner, task.attempt) = (None, task.attempt.saturating_sub(1));
            self.due.set(id, task.due);
        }
        self.call_waiters(now);
        true
    }

    /// Ends what an owner has that is known to be gone: its lease as if that had run out, or its place.
    pub(crate) fn vanish(&mut self, owner: &str, now: Micros) {
        match self.running.get_key_value(owner) {
            Some((owner, _)) => self.ends.set(owner.clone(), 0),
            None => drop(self.leave_line(owner, now)),
        }
        self.end_leases(now);
        self.call_waiters(now);
    }

    /// `wall` is how far the time since 1970 is ahead of the engine's clock.
    pub(crate) fn call(&mut self, call: TaskCall<'_>, now: Micros, wall: i64) -> TaskAnswer {
        let due = |due: Due| match due {
            Due::After(wait) => after(now, wait),
            Due::At(since_1970) => after(0, since_1970).saturating_add_signed(-wall),
        };
        let changed = match call {
            TaskCall::Insert { tasks, nonce } => {
                self.forget_finished(now);
                let nonce: Arc<str> = nonce.unwrap_or_default().into();
                let insert = |(task, at): (&NewTask<'_>, u64)| {
                    self.insert(
                        task,
                        after(due(task.due), Duration::from_micros(at)),
                        &nonce,
                        now,
                    )
                };
                tasks.iter().zip(0..).map(insert).collect()
            }
            TaskCall::Reset(id, when) => vec![self.reset(id, due(when))],
            TaskCall::Remove(id) => vec![self.remove(id)],
            TaskCall::Kick(id) => vec![self.buried.get(id).is_some() && self.reset(id, now)],
            TaskCall::Get(id) => {
                let record = self.record(id, now, wall);
                return TaskAnswer::Tasks(record.into_iter().collect());
            }
            TaskCall::Counts => return TaskAnswer::Counts(self.counts(now)),
            TaskCall::List(state, most) => {
                return TaskAnswer::Tasks(self.list(state, most, now, wall));
            }
        };
        if changed.contains(&true) {
            self.call_waiters(now);
        }
        TaskAnswer::Changed(changed)
    }

    /// Whom to tell that it is to ask.
    pub(crate) fn take_called(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.called)
    }
}

/// What is said of a task that its worker dropped.
const DROPPED: &str = "its worker dropped it";

/// How far the time `of` is ahead of `now`.
pub(crate) fn ahead_of(now: Micros, of: Micros) -> i64 {
    let [now, of] = [now, of].map(|at| i64::try_from(at).unwrap_or(i64::MAX));
    of - now
}

fn after(now: Micros, wait: Duration) -> Micros {
    // Larger numbers aren't exact in a script.
    const LATEST: Micros = (1 << 52) - 1;
    let wait = Micros::try_from(wait.as_micros()).unwrap_or(LATEST);
    now.saturating_add(wait).min(LATEST)
}

/// Who waits, and who is called.
impl Tasks {
    /// The owner at a place of the line, from 0 on.
    pub(crate) fn waiting_at(&self, place: usize) -> Option<&Arc<str>> {
        self.line.get(place).map(|one| &one.owner)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.line.len()
    }

    /// The owners that have tasks.
    pub(crate) fn working(&self) -> impl Iterator<Item = &Arc<str>> {
        self.running.keys()
    }

    pub(crate) fn place_of(&self, owner: &str) -> Option<usize> {
        self.line.iter().position(|one| &*one.owner == owner)
    }

    /// The task for the worker of that place, or for one that comes behind all.
    fn next_for(&self, at: Option<usize>, now: Micros) -> Option<Arc<str>> {
        let ahead = at.unwrap_or(self.line.len());
        self.due.until(now).nth(ahead)?;
        self.due.until(now).next().cloned()
    }

    /// Whether a worker that asks now gets a task.
    pub(crate) fn is_ready_for(&self, owner: &str, now: Micros) -> bool {
        self.next_for(self.place_of(owner), now).is_some()
    }

    fn leave_line(&mut self, owner: &str, now: Micros) -> bool {
        let at = self.place_of(owner);
        if let Some(at) = at {
            self.line.remove(at);
            self.call_waiters(now);
        }
        at.is_some()
    }

    fn enter(&mut self, owner: &str) -> usize {
        self.line.push_back(Waiter {
            owner: owner.into(),
            overdue: None,
            told: Told::Nothing,
        });
        self.line.len() - 1
    }

    /// When the leader has something to do.
    fn next_event(&self) -> Option<Micros> {
        let both = [self.due.first(), self.ends.first()];
        both.into_iter().flatten().min()
    }

    /// Drops those at the head of the line that don't ask any more.
    fn drop_overdue(&mut self, asking: &str, now: Micros) {
        while let Some(first) = self.line.front() {
            let is_overdue = first.overdue.is_some_and(|overdue| overdue <= now);
            if !is_overdue || &*first.owner == asking {
                return;
            }
            self.line.pop_front();
        }
    }

    /// Calls the workers that have something to do.
    fn call_waiters(&mut self, now: Micros) {
        let ready = self.due.until(now).take(MOST_CALLED).count();
        let next = self.next_event();
        for (at, waiter) in self.line.iter_mut().take(ready.max(1)).enumerate() {
            let is_needed = match (waiter.told, next) {
                (Told::Called, _) | (_, None) => false,
                _ if at < ready => true,
                (Told::Nothing, Some(_)) => true,
                (Told::Sleep(until), Some(next)) => next < until,
            };
            if is_needed {
                waiter.told = Told::Called;
                self.called.push(waiter.owner.clone());
            }
        }
    }
}
