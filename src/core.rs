//! What the clones of a locker, and its guards, share in one process: state, and no way to take a lock.
//!
//! It uses `base`, `lease`, `queue` and the traits of `engine`. What always holds here: a process uses its own core,
//! and a child neither uses nor drops its parent's; a lease that a closed core still has is being released.

mod close;
pub(crate) mod guards;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::base::cancel::Cancel;
use crate::base::claim::{Claim, Mode};
use crate::base::clock::{BootInstant, Clock};
use crate::base::error::{Error, Result};
use crate::base::fork::{AfterFork, Process};
use crate::base::name::{Key, Namespace};
use crate::base::options::Options;
use crate::base::sys::sync::{Condvar, Mutex, TimedGuard, TimedMutex};
use crate::base::sys::time;
use crate::core::guards::{Guards, Slot};
use crate::engine::{Engine, Revocations};
use crate::lease::Lease;
use crate::lease::Plan;
use crate::lease::deferred_release::DeferredReleases;
use crate::lease::renewer::{Renewer, Renewers};
use crate::queue::LocalQueues;

/// What the clones of a `Locker`, and its guards, share in one process.
#[derive(Debug)]
pub(crate) struct Core {
    /// The process that all of this belongs to.
    pub(crate) process: Process,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) options: Options,
    pub(crate) plan: Plan,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) renewers: Renewers,
    pub(crate) deferred: DeferredReleases,
    pub(crate) queues: LocalQueues,
    pub(crate) guards: Arc<Guards>,
    closing: Closing,
    /// What almost all claims have.
    no_names: Arc<[Key]>,
}

/// A child has threads, queues and connections of its own. What its parent still has to release is the parent's
/// business.
impl AfterFork for Core {
    fn after_fork(&self) -> Self {
        let engine = self.engine.after_fork();
        let engine = engine.unwrap_or_else(|| self.engine.clone());
        Core::new(engine, self.options.clone(), self.clock.clone())
    }
}

impl Core {
    pub(crate) fn new(engine: Arc<dyn Engine>, options: Options, clock: Arc<dyn Clock>) -> Self {
        let guards = Arc::new(Guards::default());
        let told: Arc<dyn Revocations> = guards.clone();
        engine.tell_revocations(Arc::downgrade(&told));
        Core {
            process: Process::current(),
            plan: Plan::of(&options, engine.capabilities().clock_skew),
            guards,
            closing: Closing::default(),
            renewers: Renewers::default(),
            deferred: DeferredReleases::new(engine.clone(), clock.clone()),
            queues: LocalQueues::default(),
            engine,
            options,
            clock,
            no_names: Arc::default(),
        }
    }

    /// A name, and how it is to be held.
    ///
    /// # Errors
    ///
    /// `InvalidName`, and `Unsupported` when the engine can't do it.
    pub(crate) fn claim(&self, namespace: &Namespace, name: &str, mode: Mode) -> Result<Claim> {
        let capabilities = self.engine.capabilities();
        capabilities.check(mode, self.options.prefer, self.engine.place())?;
        Ok(Claim {
            key: Key::new(namespace, name)?,
            names: self.no_names.clone(),
            mode,
            prefer: self.options.prefer,
            valued: false,
        })
    }

    /// # Errors
    ///
    /// `Unsupported` when the engine can't give so many names, all or none.
    pub(crate) fn check_several_names(&self, count: usize) -> Result<()> {
        let capabilities = self.engine.capabilities();
        capabilities.check_names(count, self.engine.place())
    }

    /// A thread for the lease that is about to be taken, if it will need one.
    pub(crate) fn renewer(&self, key: &Key) -> Result<Option<Renewer>> {
        // What moves the clock renews what is due.
        if self.clock.is_moved() {
            return Ok(None);
        }
        let (what, limits) = (
            "the thread that would renew it",
            "the limits of this process",
        );
        let renewer = self.renewers.take();
        let renewer = renewer.map_err(|e| Error::engine(Some(key.name()), what, limits, e))?;
        Ok(Some(renewer))
    }

    /// How many calls for locks are in progress.
    #[cfg(feature = "testing")]
    pub(crate) fn calls(&self) -> usize {
        self.closing.calls()
    }

    /// Set when this is closed.
    pub(crate) fn closed(&self) -> &Cancel {
        self.closing.closed()
    }

    /// A guard is gone, and its lease released.
    pub(crate) fn remove_guard(&self, slot: Slot) {
        self.guards.remove(slot);
        self.closing.one_is_gone();
    }

    /// Makes a lease one that was granted now, since which the engine's lease has begun.
    pub(crate) fn restart(&self, lease: &mut Lease, since: BootInstant) {
        lease.valid_until = self.lease_end(self.plan.valid_until(since));
        lease.granted = self.clock.now();
        lease.due = self.plan.first_due(since, lease.granted);
        lease.held_since = lease.granted;
        lease.fair_since = lease.granted;
        lease.tokens = 0;
        lease.is_token_used = true;
    }

    /// Waits for a time that is about to come: for no longer than a microsecond or two.
    pub(crate) fn wait_until(&self, at: BootInstant) {
        let left = at.since(self.clock.now());
        if left.is_zero() || self.clock.is_moved() {
            return;
        }
        let began = time::now();
        while time::since(began) < left {
            std::hint::spin_loop();
        }
    }

    /// When a lease ends that would end at `end` by its ttl.
    fn lease_end(&self, end: BootInstant) -> BootInstant {
        if self.leases_end() {
            end
        } else {
            BootInstant::MAX
        }
    }

    /// Whether a lease ends by itself although its process lives.
    fn leases_end(&self) -> bool {
        self.engine.capabilities().leases_expire || self.options.leases_end()
    }
}

/// Whether a locker is closed, and what it still does.
#[derive(Debug, Default)]
struct Closing {
    closed: Cancel,
    calls: AtomicUsize,
    /// Notified when a call or a guard is gone that may be waited for.
    gone: Condvar,
    waits: Mutex<()>,
    /// Locked by a `close`.
    closer: TimedMutex<()>,
}

/// A call in progress.
#[derive(Debug)]
pub(crate) struct Call<'a>(&'a Closing);

impl Closing {
    /// Set when the locker is closed.
    fn closed(&self) -> &Cancel {
        &self.closed
    }

    /// Begins a call.
    fn begin(&self) -> Call<'_> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Call(self)
    }

    /// How many calls are in progress.
    #[cfg(feature = "testing")]
    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn has_calls(&self) -> bool {
        self.calls.load(Ordering::SeqCst) > 0
    }

    /// Has the caller close alone, unless another takes until then.
    fn close_alone(&self, by: Instant) -> Option<TimedGuard<'_, ()>> {
        self.closer.try_lock_until(by)
    }

    /// A call or a guard is gone.
    fn one_is_gone(&self) {
        if self.closed.is_set() {
            // Whoever waits has looked before it was gone, and sleeps, or looks after it.
            drop(self.waits.lock());
            self.gone.notify_all();
        }
    }

    fn await_until(&self, by: Instant, is_done: impl Fn() -> bool) {
        let mut waits = self.waits.lock();
        while !is_done() && time::now() < by {
            waits = self.gone.wait_until(waits, by);
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if self.0.calls.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.one_is_gone();
        }
    }
}
