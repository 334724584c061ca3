//! Releases that are still to be made when their callers have left.
//!
//! A timed call that ran out of time may have taken the lock without knowing, and a guard may have been dropped
//! while the server couldn't be reached. Either leaves a lease that nobody has, and that others would wait for.
//! One thread of the locker goes on trying until each is released, or over with its ttl where the engine ends it then.
//! It starts with the first of them and ends with the last, or a moment after the locker.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use std::{collections::VecDeque, fmt, sync::Arc};

use crate::base::limits::{CLOSING, DEFERRED_PAUSES, GRACE, HEARTBEAT_LATENESS, LONGEST_KEEP};
use crate::base::sys::sync::{Condvar, Mutex};
use crate::base::sys::{self, time};
use crate::base::{BootInstant, Cancel, Claim, Clock, Deadline, Ending, ErrorChain, Owner, Result};
use crate::engine::{Change, Engine, Outcome, Release, Request};
use crate::lease::Lease;

/// A lease to release.
#[derive(Debug)]
pub(crate) struct DeferredRelease {
    pub(crate) claim: Claim,
    pub(crate) owner: Owner,
    pub(crate) ttl: Duration,
    pub(crate) ending: Ending,
    /// Until when the lock stays taken although it is released.
    pub(crate) kept_until: BootInstant,
    /// A majority of servers has released it: others may have the lock, and go before.
    pub(crate) is_rest: bool,
}

impl DeferredRelease {
    /// The release of an owner that doesn't know what it has, and where.
    pub(crate) fn of_owner(claim: Claim, owner: Owner, ttl: Duration) -> Self {
        DeferredRelease {
            claim,
            owner,
            ttl,
            ending: Ending::Unknown,
            kept_until: BootInstant::START,
            is_rest: false,
        }
    }

    /// The release of a lease that is over, or can't be released now.
    pub(crate) fn of(lease: Lease, ttl: Duration) -> Self {
        DeferredRelease {
            ending: lease.ending(),
            kept_until: lease.kept_until(),
            claim: lease.claim,
            owner: lease.owner,
            ttl,
            is_rest: false,
        }
    }
}

/// The releases that one locker still has to make.
pub(crate) struct DeferredReleases(Arc<Shared>);

struct Shared {
    engine: Arc<dyn Engine>,
    clock: Arc<dyn Clock>,
    queue: Mutex<Queue>,
    /// Notified when the locker is gone.
    closing: Condvar,
    /// Notified when the thread ends.
    done: Condvar,
    /// Set then, for a release that is on the wire.
    closed: Cancel,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(DeferredRelease, Instant)>,
    /// Whether a thread works on them.
    has_worker: bool,
    /// Set when the locker is gone: what isn't released until then is left to its ttl.
    close_by: Option<Instant>,
}

/// More than these are left to their ttl, first a rest, and else the one whose turn is next.
const MOST: usize = 1024;

impl Queue {
    /// Behind those of its kind. Says whether it is the first.
    fn push(&mut self, release: DeferredRelease, over: Instant) -> bool {
        let rests = self.waiting.iter().position(|(one, _)| one.is_rest);
        let at = rests.filter(|_| !release.is_rest);
        let at = at.unwrap_or(self.waiting.len());
        self.waiting.insert(at, (release, over));
        at == 0
    }

    fn pop_least(&mut self) -> Option<(DeferredRelease, Instant)> {
        match self.waiting.back() {
            Some((last, _)) if last.is_rest => self.waiting.pop_back(),
            _ => self.waiting.pop_front(),
        }
    }
}

impl DeferredReleases {
    pub(crate) fn new(engine: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> Self {
        let (queue, closing, done, closed) = Default::default();
        DeferredReleases(Arc::new(Shared {
            engine,
            clock,
            queue,
            closing,
            done,
            closed,
        }))
    }

    /// Leaves a release to the thread, starting it if need be.
    pub(crate) fn leave(&self, release: DeferredRelease) {
        // The server's lease started before now, and the engine drops a waiter no later than this.
        let lasts = match self.0.engine.capabilities().silence_ends_all {
            true => release.ttl + HEARTBEAT_LATENESS,
            false => LONGEST_KEEP,
        };
        let over = self.0.clock.instant() + lasts;
        let mut queue = self.0.queue.lock();
        if queue.waiting.len() >= MOST
            && let Some((dropped, _)) = queue.pop_least()
        {
            self.0.engine.abandon(&dropped.owner);
        }
        if queue.push(release, over) {
            // It doesn't wait until the thread tries the rest of others again.
            self.0.closing.notify_all();
        }
        // What moves the clock has them tried again.
        if !queue.has_worker && !self.0.clock.is_moved() {
            queue.has_worker = self.start();
            if !queue.has_worker {
                drop(queue);
                self.do_without_thread();
            }
        }
    }

    /// Tries the last one once, in the thread that leaves it. Another thread is tried with the next one, which may
    /// never come.
    fn do_without_thread(&self) {
        let last = self.0.queue.lock().waiting.pop_back();
        let Some((mut release, over)) = last else {
            return;
        };
        let deadline = Deadline::at(over.min(time::now() + GRACE));
        if !self.0.send(&mut release, &deadline) {
            self.0.abandon_all([&release].into_iter());
            self.0.queue.lock().waiting.push_back((release, over));
        }
    }

    /// Tries each once.
    #[cfg(feature = "testing")]
    pub(crate) fn try_all(&self) {
        let mut waiting = std::mem::take(&mut self.0.queue.lock().waiting);
        waiting.retain_mut(|(release, over)| {
            self.0.clock.instant() < *over && !self.0.send(release, &Deadline::NEVER)
        });
        self.0.queue.lock().waiting.extend(waiting);
    }

    /// Makes a release by `deadline`, or else leaves it to the thread.
    pub(crate) fn make(&self, mut release: DeferredRelease, deadline: &Deadline) {
        if deadline.is_over() || !self.0.send(&mut release, deadline) {
            self.leave(release);
        }
    }

    /// Waits until all are made, until then at most.
    pub(crate) fn await_all(&self, by: Instant) {
        let mut queue = self.0.queue.lock();
        while queue.has_worker && time::now() < by {
            queue = self.0.done.wait_until(queue, by);
        }
    }

    fn start(&self) -> bool {
        let shared = self.0.clone();
        let started = sys::spawn("crosslock-release", move || shared.work());
        if let Err(e) = &started {
            log::warn!(
                "can't start the thread that releases locks in the background, so they stay taken until their leases \
                 end: {e}"
            );
        }
        started.is_ok()
    }
}

impl Drop for DeferredReleases {
    fn drop(&mut self) {
        self.0.closed.set();
        self.0.queue.lock().close_by = Some(time::now() + CLOSING);
        self.0.closing.notify_all();
    }
}

impl Shared {
    /// The thread.
    fn work(&self) {
        self.let_others_go_first();
        let mut pauses = DEFERRED_PAUSES.waits();
        while let Some((mut release, over, deadline)) = self.next() {
            // A logger that panics must not end the thread that the queue relies on.
            let is_done = catch_unwind(AssertUnwindSafe(|| self.send(&mut release, &deadline)));
            if is_done.unwrap_or(true) {
                pauses = DEFERRED_PAUSES.waits();
            } else {
                self.put_back(
                    (release, over),
                    pauses.next().unwrap_or(DEFERRED_PAUSES.cap),
                );
            }
        }
    }

    /// Those that wait for the lock get it from the servers that have released it. They need not wait for what a rest
    /// costs.
    fn let_others_go_first(&self) {
        let queue = self.queue.lock();
        let is_rest = |first: &(DeferredRelease, Instant)| first.0.is_rest;
        if queue.waiting.front().is_some_and(is_rest) && queue.close_by.is_none() {
            drop(self.closing.wait_for(queue, DEFERRED_PAUSES.base));
        }
    }

    /// `None` when there is nothing left to do: then the thread is not counted on any more.
    fn next(&self) -> Option<(DeferredRelease, Instant, Deadline)> {
        let mut queue = self.queue.lock();
        let now = time::now();
        queue.waiting.retain(|(release, over)| {
            let is_left = now < *over;
            if !is_left {
                self.engine.abandon(&release.owner);
            }
            is_left
        });
        if queue.close_by.is_some_and(|by| by <= now) {
            let left = std::mem::take(&mut queue.waiting);
            self.abandon_all(left.iter().map(|(release, _)| release));
        }
        let Some((release, over)) = queue.waiting.pop_front() else {
            queue.has_worker = false;
            self.done.notify_all();
            return None;
        };
        let deadline = match queue.close_by {
            Some(by) => Deadline::at(by.min(over)),
            None => Deadline::at(over).or(&self.closed),
        };
        Some((release, over, deadline))
    }

    /// But not those that stay taken: they do so until their leases end at least.
    fn abandon_all<'a>(&self, releases: impl Iterator<Item = &'a DeferredRelease>) {
        let now = self.clock.now();
        let left = releases.filter(|release| release.kept_until <= now);
        left.for_each(|release| self.engine.abandon(&release.owner));
    }

    /// Whether that is done with, one way or another.
    fn send(&self, deferred: &mut DeferredRelease, deadline: &Deadline) -> bool {
        let is_split = self.engine.capabilities().is_split;
        match self.change(deferred, deadline) {
            Ok(Outcome::Done(done)) => {
                deferred.is_rest = done.is_partial;
                !done.is_partial
            }
            // A majority has it no more. The others are asked by what each of them has.
            Ok(Outcome::Gone(_)) if is_split && deferred.ending != Ending::Unknown => {
                (deferred.ending, deferred.is_rest) = (Ending::Unknown, true);
                false
            }
            Ok(Outcome::Gone(_)) => true,
            Err(e) if e.may_pass() => false,
            // The lock isn't taken.
            Err(_) if deferred.is_rest => true,
            Err(e) => {
                self.engine.abandon(&deferred.owner);
                log::warn!(
                    "a lock can't be released and stays taken until its lease ends: {}",
                    ErrorChain(&e)
                );
                true
            }
        }
    }

    fn change(&self, deferred: &DeferredRelease, deadline: &Deadline) -> Result<Outcome> {
        let request = Request {
            claim: &deferred.claim,
            owner: &deferred.owner,
            ttl: deferred.ttl,
            granted: None,
        };
        let release = Release {
            ending: deferred.ending,
            keep: deferred.kept_until.since(self.clock.now()),
            ..Release::UNKNOWN
        };
        self.engine
            .change(request, Change::Release(release), deadline)
    }

    fn put_back(&self, undone: (DeferredRelease, Instant), pause: Duration) {
        let mut queue = self.queue.lock();
        // Behind the others: it may be about this one lock that the server gives an error.
        queue.push(undone.0, undone.1);
        let pause = if queue.close_by.is_some() {
            pause.min(CLOSING / 8)
        } else {
            pause
        };
        drop(self.closing.wait_for(queue, pause));
    }
}

impl fmt::Debug for DeferredReleases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.0.queue.lock().waiting.len();
        f.debug_struct("DeferredReleases")
            .field("waiting", &waiting)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
