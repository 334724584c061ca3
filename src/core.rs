//! What the clones of a locker, and its guards, share in one process: state, and no way to take a lock.
//!
//! It uses `base`, `lease`, `queue` and the traits of `engine`. What always holds here: a process uses its own core,
//! and a child neither uses nor drops its parent's; a lease that a closed core still has is being released.

pub(crate) mod guards;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{sync::Arc, time::Instant};

use crate::base::limits::{CANCELLED, CLOSE};
use crate::base::sys::sync::{Condvar, Mutex};
use crate::base::sys::{self, time};
use crate::base::timed_mutex::{TimedGuard, TimedMutex};
use crate::base::{
    AfterFork, BootInstant, Cancel, Claim, Clock, Deadline, Error, Key, LostReason, Mode,
    Namespace, Options, Process, Result,
};
use crate::core::guards::{Guards, Slot};
use crate::engine::{Engine, Revocations};
use crate::lease::deferred_release::{DeferredRelease, DeferredReleases};
use crate::lease::renewer::{Renewer, Renewers};
use crate::lease::{Lease, Plan, monitor::LeaseMonitor};
use crate::queue::{LocalQueues, Turn};

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

/// What observes it ends with it.
impl Drop for Core {
    fn drop(&mut self) {
        if self.process.is_current() {
            self.closing.closed().set();
        }
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
        capabilities.check(mode, self.options.prefer, self.engine.endpoint())?;
        Ok(Claim {
            key: Key::new(namespace, name)?,
            names: self.no_names.clone(),
            mode,
            prefer: self.options.prefer,
            has_value: false,
        })
    }

    /// # Errors
    ///
    /// `Unsupported` when the engine can't give so many names, all or none.
    pub(crate) fn check_several_names(&self, count: usize) -> Result<()> {
        let capabilities = self.engine.capabilities();
        capabilities.check_names(count, self.engine.endpoint())
    }

    /// # Errors
    ///
    /// `Unsupported` when the engine has no values.
    #[cfg(feature = "value")]
    pub(crate) fn check_values(&self) -> Result<()> {
        let capabilities = self.engine.capabilities();
        capabilities.check_values(self.engine.endpoint())
    }

    /// A thread for the lease that is about to be taken, if it will need one.
    pub(crate) fn renewer(&self, key: &Key) -> Result<Option<Renewer>> {
        // What moves the clock renews what is due.
        if self.clock.is_moved() {
            return Ok(None);
        }
        let (what, limits) = ("starting its renewal thread", "the limits of this process");
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
        time::spin(left);
    }

    /// When a lease ends that would end at `end` by its ttl.
    fn lease_end(&self, end: BootInstant) -> BootInstant {
        if self.leases_end() {
            end
        } else {
            BootInstant::MAX
        }
    }

    /// Whether some of a lease may still be there when some is lost.
    pub(crate) fn is_split(&self, lease: &Lease) -> bool {
        lease.claim.is_multi() || self.engine.capabilities().is_split
    }

    /// Whether a lease ends by itself although its process lives.
    fn leases_end(&self) -> bool {
        self.engine.capabilities().leases_expire || self.options.leases_end()
    }
}

impl Core {
    /// Begins a call that may take a lease, unless what ends it is set already.
    ///
    /// # Errors
    ///
    /// `Cancelled`.
    pub(crate) fn begin(&self, key: &Key, ended_by: &Cancel) -> Result<Call<'_>> {
        let call = self.closing.begin();
        if ended_by.is_set() || self.closing.closed().is_set() {
            return Err(Error::cancelled(key.name()));
        }
        Ok(call)
    }

    /// Ends all waits, releases what the guards hold, and awaits the calls, by then at the latest. Later calls are
    /// cancelled.
    ///
    /// | what `close` meets | what becomes of it |
    /// |---|---|
    /// | a call that waits or asks | is cancelled, and leaves the engine's queue as a cancelled call does |
    /// | a call that has been granted its lease | makes its guard, finds that the locker is closed, and releases it |
    /// | a guard | `close` takes its lease, tells it so, and releases the lease |
    /// | a guard that is being released or passed on | has taken its lease first: `close` waits for it |
    /// | another `close` | waits for the first one |
    ///
    /// No guard slips through: a guard is in the registry before it looks whether the locker is closed, and `close`
    /// says that it is closed before it looks into the registry. In the same way no call slips through that begins
    /// meanwhile.
    pub(crate) fn close(&self) {
        let by = time::now() + CLOSE;
        self.closing.closed().set();
        let Some(_alone) = self.closing.close_alone(by) else {
            return;
        };
        self.release_all(&Deadline::at(by));
        self.closing
            .await_until(by, || !self.closing.has_calls() && !self.is_releasing());
        self.deferred.await_all(by);
    }

    /// Takes the lease of a guard that was made when the locker was closed already, and releases it.
    pub(crate) fn close_late(&self, monitor: &LeaseMonitor<Turn>) {
        if let Some((lease, turn)) = monitor.close() {
            self.release_closed(lease, monitor, &Deadline::after(CANCELLED));
            drop(turn);
        }
    }

    /// Whether a guard has a lease that it is about to release.
    fn is_releasing(&self) -> bool {
        let monitors = self.guards.monitors();
        monitors.iter().any(|monitor| monitor.is_being_released())
    }

    /// Several at once: each may take a round trip.
    fn release_all(&self, deadline: &Deadline) {
        const MOST_THREADS: usize = 16;
        let monitors = self.guards.monitors();
        // All guards know before the first is released.
        let ended: Vec<_> = monitors
            .iter()
            .filter_map(|monitor| {
                let (lease, turn) = monitor.close()?;
                Some((monitor, lease, turn))
            })
            .collect();
        let others = ended.len().min(MOST_THREADS).saturating_sub(1);
        let left = Mutex::new(ended.into_iter());
        let release = || {
            let next = || left.lock().next();
            while let Some((monitor, lease, turn)) = next() {
                self.release_closed(lease, monitor, deadline);
                drop(turn);
            }
        };
        sys::scope(|scope| {
            for _ in 0..others {
                if sys::spawn_scoped("crosslock-close", scope, release).is_err() {
                    // This one does what others can't.
                    break;
                }
            }
            release();
        });
    }

    fn release_closed(&self, lease: Lease, monitor: &LeaseMonitor<Turn>, deadline: &Deadline) {
        let is_gone = matches!(
            monitor.lost_reason(),
            Some(LostReason::NotOwner | LostReason::Broken)
        );
        // Of several names the others may still be there.
        if !is_gone || self.is_split(&lease) {
            let release = DeferredRelease::of(lease, self.options.ttl);
            self.deferred.make(release, deadline);
        }
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
