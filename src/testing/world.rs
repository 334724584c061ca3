//! What the lockers of a fake share: its memory, its clock, and the state of its network.
//!
//! Time moves in steps, from one thing that is due to the next. After each step the thread that moves it renews what is
//! due, and awaits the calls that the step concerns: so they do what they would have done at that time.

use std::cell::Cell;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::clock::FakeClock;
use crate::base::sys::collections::HashMap;
use crate::base::sys::sync::{Condvar, Mutex, MutexGuard};
use crate::base::{Claim, Clock, Deadline, Key, LostReason, Owner, sys::time};
use crate::engine::{Request, memory::MemoryEngine};
use crate::lease::{monitor::LeaseMonitor, renewer::Tend};
use crate::{core::Core, queue::Turn};

/// Where a fake's locks live, as errors call it.
pub(super) const ENDPOINT: &str = "fake:";

/// What the lockers of a fake share.
#[derive(Debug)]
pub(super) struct World {
    pub(super) clock: FakeClock,
    pub(super) memory: MemoryEngine,
    pub(super) waits: Waits,
    network: Mutex<Network>,
    cores: Mutex<Vec<Weak<Core>>>,
    /// Locked by the thread that moves the time.
    mover: Mutex<()>,
}

#[derive(Debug, Default)]
struct Network {
    is_out: bool,
    delay: Duration,
    /// Counts what a call in an outage waits for: its end, and the time.
    epoch: u64,
    /// The number of the next call.
    next: u64,
}

thread_local! {
    /// Whether this thread is moving the time of a fake.
    static IS_MOVING: Cell<bool> = const { Cell::new(false) };
}

/// For how long a step awaits the calls that it concerns: one may be in an observer that waits for something else.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it looks whether they are done: not everything that they do notifies it.
const LOOK: Duration = Duration::from_micros(200);

impl World {
    pub(super) fn new() -> Arc<Self> {
        let clock = FakeClock::new();
        Arc::new(World {
            memory: MemoryEngine::private(ENDPOINT, Arc::new(clock.clone())),
            clock,
            waits: Waits::default(),
            network: Mutex::default(),
            cores: Mutex::default(),
            mover: Mutex::default(),
        })
    }

    pub(super) fn add(&self, core: &Arc<Core>) {
        let mut cores = self.cores.lock();
        cores.retain(|core| core.strong_count() > 0);
        cores.push(Arc::downgrade(core));
    }

    pub(super) fn next_number(&self) -> u64 {
        let mut network = self.network.lock();
        network.next += 1;
        network.next
    }

    pub(super) fn is_out(&self) -> bool {
        self.network.lock().is_out
    }

    pub(super) fn delay(&self) -> Duration {
        self.network.lock().delay
    }

    pub(super) fn epoch(&self) -> u64 {
        self.network.lock().epoch
    }

    /// Changes the network, and lets all do what that allows.
    pub(super) fn set_outage(&self, is_out: bool) {
        {
            let mut network = self.network.lock();
            network.is_out = is_out;
            network.epoch += 1;
        }
        self.advance(Duration::ZERO);
    }

    pub(super) fn set_delay(&self, delay: Duration) {
        self.network.lock().delay = delay;
        self.advance(Duration::ZERO);
    }

    /// Forgets who has a lock, and lets in the next.
    pub(super) fn forget(&self, key: &Key, is_abandoned: bool, reason: LostReason) {
        self.memory.forget(key, is_abandoned, reason);
        self.advance(Duration::ZERO);
    }

    /// Moves the time, from one thing that is due to the next.
    pub(super) fn advance(&self, by: Duration) {
        // It renews meanwhile: such requests go on side by side, and take no time of each other.
        if IS_MOVING.get() {
            return;
        }
        let _mover = self.mover.lock();
        let _moving = Moving::begin();
        let end = self.clock.elapsed() + by;
        loop {
            self.do_what_is_due();
            let left = end.saturating_sub(self.clock.elapsed());
            if left.is_zero() {
                return;
            }
            let step = self.next_due().map_or(left, |due| due.min(left));
            self.clock.move_by(step);
            let mut network = self.network.lock();
            if network.is_out {
                network.epoch += 1;
            }
        }
    }

    /// How many threads wait for a lock.
    pub(super) fn waiting(&self, key: &Key) -> usize {
        let in_engine = self.memory.waiting(key);
        let cores = self.cores();
        let local = cores
            .iter()
            .map(|core| core.queues.waiting(|one| one == key));
        in_engine + local.sum::<usize>()
    }

    fn cores(&self) -> Vec<Arc<Core>> {
        self.cores.lock().iter().filter_map(Weak::upgrade).collect()
    }

    fn monitors(&self) -> Vec<Arc<LeaseMonitor<Turn>>> {
        let cores = self.cores();
        cores
            .iter()
            .flat_map(|core| core.guards.monitors())
            .collect()
    }

    fn do_what_is_due(&self) {
        loop {
            let has_lost = self.tend();
            if !self.is_out() {
                self.cores().iter().for_each(|core| core.deferred.try_all());
            }
            self.settle();
            if !has_lost {
                return;
            }
        }
    }

    /// Renews what is due, and tells what is lost. Says whether there was any.
    fn tend(&self) -> bool {
        let mut any = false;
        for monitor in self.monitors() {
            let was_lost = monitor.lost_reason().is_some();
            while monitor.tend().is_some_and(|pause| pause.is_zero()) {
                any = true;
            }
            any |= monitor.lost_reason().is_some() != was_lost;
        }
        any
    }

    /// Awaits the calls that have something to do.
    fn settle(&self) {
        let give_up = time::now() + PATIENCE;
        let cores = self.cores();
        self.waits.look_again();
        // Those behind other threads of their locker: the time of one may be over.
        cores.iter().for_each(|core| core.closed().wake());
        let mut all = self.waits.lock();
        while time::now() < give_up {
            let busy: usize = cores.iter().map(|core| core.calls()).sum();
            let behind = cores.iter().map(|core| core.queues.waiting(|_| true));
            let idle = all.values().filter(|one| !self.is_due(one)).count();
            if busy <= behind.sum::<usize>() + idle {
                return;
            }
            all = self.waits.await_change(all, Some(time::now() + LOOK));
        }
    }

    /// Whether a call that waits has something to do.
    pub(super) fn is_due(&self, waiting: &Waiting) -> bool {
        let Waiting::Turn {
            claim,
            owner,
            until,
            epoch,
        } = waiting
        else {
            return false;
        };
        if until.is_over() || *epoch != self.epoch() {
            return true;
        }
        let request = looking(claim, owner);
        !self.is_out() && self.memory.changes(request).is_none()
    }

    /// How long it is until something is due.
    fn next_due(&self) -> Option<Duration> {
        let now = self.clock.now();
        let monitors = self.monitors();
        let looks = monitors.iter().filter_map(|monitor| monitor.tend());
        let all = self.waits.lock();
        let turns = all.values().filter_map(|waiting| match waiting {
            Waiting::Turn { claim, owner, .. } => {
                let at = self.memory.changes(looking(claim, owner))?;
                Some(at.since(now))
            }
            Waiting::Answer => None,
        });
        looks.chain(turns).chain(self.clock.next_alarm()).min()
    }

    /// Has a call wait for the answer that takes so long.
    pub(super) fn await_answer(&self, call: Option<u64>, delay: Duration) {
        match call {
            Some(number) => {
                // Without the lock: whoever moves the time looks at the others.
                self.waits.insert(number, Waiting::Answer);
                self.advance(delay);
                self.waits.remove(number);
            }
            None => self.advance(delay),
        }
    }
}

/// While a thread moves the time.
struct Moving;

impl Moving {
    fn begin() -> Self {
        IS_MOVING.set(true);
        Moving
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        IS_MOVING.set(false);
    }
}

/// The part of a delay that a call with a deadline waits for.
pub(super) fn cut(delay: Duration, io_timeout: Duration, deadline: &Deadline) -> Duration {
    let left = if deadline.is_moved() {
        deadline.remaining()
    } else {
        Duration::MAX
    };
    delay.min(io_timeout).min(left)
}

/// What the memory is asked about an owner that waits.
fn looking<'a>(claim: &'a Claim, owner: &'a Owner) -> Request<'a> {
    Request {
        claim,
        owner,
        ttl: Duration::ZERO,
        granted: None,
    }
}

/// The calls that wait at the moment, and what each waits for: so whoever changes something can await those that it
/// concerns.
#[derive(Debug, Default)]
pub(super) struct Waits {
    all: Mutex<HashMap<u64, Waiting>>,
    /// Notified when something has changed for which a call may wait, and when one begins or ends to wait.
    changed: Condvar,
}

/// What a call waits for.
#[derive(Debug)]
pub(super) enum Waiting {
    /// Its turn, the end of an outage, or its own end.
    Turn {
        claim: Claim,
        owner: Owner,
        until: Deadline,
        /// That of the world when it asked last.
        epoch: u64,
    },
    /// The answer to what it asked.
    Answer,
}

type All<'a> = MutexGuard<'a, HashMap<u64, Waiting>>;

impl Waits {
    pub(super) fn lock(&self) -> All<'_> {
        self.all.lock()
    }

    /// Has all that wait look again.
    pub(super) fn look_again(&self) {
        // Who has looked before waits by now.
        drop(self.all.lock());
        self.changed.notify_all();
    }

    /// Waits for a change, until then at most.
    pub(super) fn await_change<'a>(&self, all: All<'a>, by: Option<Instant>) -> All<'a> {
        self.changed.wait_until(all, by)
    }

    pub(super) fn insert(&self, number: u64, waiting: Waiting) {
        self.all.lock().insert(number, waiting);
        self.changed.notify_all();
    }

    pub(super) fn remove(&self, number: u64) {
        self.all.lock().remove(&number);
    }

    /// Lets a call wait until it is due, or until then. Says whether it is due.
    pub(super) fn await_due(
        &self,
        number: u64,
        waiting: Waiting,
        is_due: impl Fn(&Waiting) -> bool,
        by: Option<Instant>,
    ) -> bool {
        let mut all = self.all.lock();
        all.insert(number, waiting);
        self.changed.notify_all();
        loop {
            let is_over = by.is_some_and(|by| by <= time::now());
            let is_due = all.get(&number).is_some_and(&is_due);
            if is_due || is_over {
                all.remove(&number);
                return is_due;
            }
            all = self.await_change(all, by);
        }
    }
}
