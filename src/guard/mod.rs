//! The guard of a lock.

use std::fmt;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use crossbeam_channel::Receiver;

use crate::base::claim::Claim;
use crate::base::clock::Deadline;
use crate::base::error::{Error, LostReason, Result, Whole};
use crate::base::token::Token;
#[cfg(feature = "value")]
use crate::base::value::Stored;
use crate::core::Core;
use crate::engine::Request;
use crate::lease::Lease;
use crate::lease::monitor::{LeaseMonitor, Lost};
use crate::lease::renewer::{Renewer, Tend};
use crate::queue::handoff::Turn;

mod downgrade;
pub(crate) mod held_by_thread;
mod release;

/// A held lock, which is released when this is dropped.
///
/// While it lives a thread of its own renews the lease (`file:` has nothing to renew). The lease can end all
/// the same: the server can't be reached for a ttl, this process stands still for as long, or somebody
/// deletes the key. Ask [`is_held`](Self::is_held) or [`check`](Self::check) before each step that matters,
/// wait on [`lost`](Self::lost), and pass [`fencing_token`](Self::fencing_token) along with each write, so that
/// what you write to can refuse a late one.
///
/// Dropping it takes one round trip, or none when the lease goes to another thread of this process that waits, and
/// at most 500 ms when the server can't be reached; what goes wrong is logged. [`unlock`](Self::unlock) does the
/// same and returns it. A guard that is dropped by a panic releases at once, and the next holder is told by
/// [`abandoned`](Self::abandoned). A guard that is forgotten (`std::mem::forget`) is renewed until the process ends, unless
/// [`renew`](crate::LockerBuilder::renew) or [`max_hold`](crate::LockerBuilder::max_hold) say otherwise. In a child
/// made by `fork`, an inherited guard isn't held, its `lost` tells nothing, and it neither renews nor releases.
///
/// # Examples
///
/// ```
/// # fn main() -> crosslock::Result<()> {
/// let lock = crosslock::Locker::open("memory:")?;
/// let guard = lock.lock("guard-example")?;
/// assert!(guard.is_held());
/// assert!(lock.try_lock("guard-example")?.is_none());
/// drop(guard);
/// assert!(lock.try_lock("guard-example")?.is_some());
/// # Ok(())
/// # }
/// ```
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct LockGuard {
    core: Arc<Core>,
    monitor: Arc<LeaseMonitor<Turn>>,
    renewer: Option<Renewer>,
    claim: Claim,
    token: Token,
    /// Whether the thread was unwinding already when the lock was taken.
    panicking: bool,
    /// What `lost` gives in a child.
    silent: OnceLock<Receiver<Lost>>,
}

impl LockGuard {
    pub(crate) fn new(
        core: Arc<Core>,
        lease: Lease,
        renewer: Option<Renewer>,
        turn: Option<Turn>,
    ) -> Self {
        let (claim, token) = (lease.claim.clone(), lease.token);
        let (engine, clock) = (core.engine.clone(), core.clock.clone());
        let monitor = Arc::new(LeaseMonitor::new(engine, clock, core.plan, lease, turn));
        held_by_thread::remember(&monitor, claim.mode, core.process);
        if let Some(renewer) = &renewer {
            let tended: Arc<dyn Tend> = monitor.clone();
            renewer.tend(Arc::downgrade(&tended), monitor.first_look());
        }
        LockGuard {
            core,
            monitor,
            renewer,
            claim,
            token,
            panicking: thread::panicking(),
            silent: OnceLock::new(),
        }
    }

    /// Returns the name of the lock.
    pub fn name(&self) -> &str {
        self.claim.key.name()
    }

    /// Returns a number that is larger than that of every earlier holder of this name.
    ///
    /// Pass it along with each write to what the lock protects, and refuse there what is smaller than the
    /// largest one seen: that keeps out a holder that has lost its lock without knowing.
    ///
    /// It increases also when the server has lost its memory, as long as its clock doesn't step back. It is below 2^53,
    /// so that it fits an `i64`, a `BIGINT` of a database, and a number of JSON.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let lock = crosslock::Locker::open("memory:")?;
    /// let first = lock.lock("token-example")?.fencing_token();
    /// let second = lock.lock("token-example")?.fencing_token();
    /// assert!(first < second);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fencing_token(&self) -> u64 {
        self.token.number
    }

    /// Says whether the holder before this one didn't come to its end: it crashed, stood still past its ttl, or
    /// panicked.
    ///
    /// What the lock protects may be half done (compare `EOWNERDEAD` of robust mutexes). A panic is told as
    /// `std::sync::Mutex` poisons: when it began while the guard was held, and dropped the guard; one that is caught
    /// in time, or began before, isn't, nor one of a holder that shares. A process that is
    /// ended by a signal, or by `std::process::exit`, drops no guards and so abandons its locks too. So does a waiter
    /// that was given the lock while it stood still, although it began nothing. It is told once, to the next holder.
    /// A server that has lost its memory doesn't tell; one that stood still may have
    /// given the lock to a call that had given up, and tells of that, as it does of a call's own first attempt
    /// whose answer was lost for longer than the ttl.
    pub fn abandoned(&self) -> bool {
        self.token.abandoned
    }

    /// Says whether the lease is valid, as far as this process can prove it. Does no I/O.
    ///
    /// `true` means that no other guard was valid at the moment of the call, if the server kept the lock. Once
    /// `false`, it stays so.
    pub fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Returns how much longer the lease is valid if it isn't renewed; zero when it is lost.
    ///
    /// `Duration::MAX` for a lease that lasts until it is released, as those of `file:` do: add it to an
    /// `Instant` by `checked_add`. Does no I/O.
    pub fn remaining(&self) -> Duration {
        if self.is_inherited() {
            Duration::ZERO
        } else {
            self.monitor.remaining()
        }
    }

    /// Does the same as [`is_held`](Self::is_held), for use with `?`.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when the lease isn't valid any more.
    pub fn check(&self) -> Result<()> {
        if self.is_held() {
            Ok(())
        } else {
            Err(self.lost_error())
        }
    }

    /// Asks the engine whether the lock is this guard's: one round trip.
    ///
    /// It finds what [`check`](Self::check) can't: a key that was deleted, a server that has lost its memory, a
    /// file that was removed.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when it isn't, from then on for good; [`Error::Unavailable`] and the other errors of the
    /// engine when it can't be told.
    pub fn verify(&self) -> Result<()> {
        self.check()?;
        let Some(owner) = self.monitor.owner() else {
            return Err(self.lost_error());
        };
        let request = Request {
            claim: &self.claim,
            owner: &owner,
            ttl: self.core.options.ttl,
        };
        if !self.core.engine.is_owner(request, &Deadline::NEVER)? {
            self.monitor.lose(LostReason::NotOwner);
        }
        self.check()
    }

    /// Returns the channel that gets one message as soon as the lease is known to be gone.
    ///
    /// It fits `crossbeam_channel::select!`. After the message the channel is closed, so that every clone of
    /// the receiver wakes; it is closed without a message when the guard is released.
    ///
    /// "Known" means: a renewal was refused, [`verify`](Self::verify) found out, or the ttl ran out. A server
    /// that drops a key tells nobody; the next renewal, after [`renew_every`](crate::LockerBuilder::renew_every),
    /// finds it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # fn main() -> crosslock::Result<()> {
    /// let ttl = Duration::from_millis(100);
    /// let lock = crosslock::Locker::builder("memory:").ttl(ttl).renew(false).build()?;
    /// let guard = lock.lock("lost-example")?;
    /// crossbeam_channel::select! {
    ///     recv(guard.lost()) -> lost => println!("stop: {lost:?}"),
    ///     default(Duration::from_secs(10)) => unreachable!("the lease is over by now"),
    /// }
    /// assert!(!guard.is_held());
    /// # Ok(())
    /// # }
    /// ```
    pub fn lost(&self) -> &Receiver<Lost> {
        if self.is_inherited() {
            // Nothing of the parent's may be locked here.
            return self.silent.get_or_init(crossbeam_channel::never);
        }
        // A process that was stopped past its ttl finds the message here, also before its renewer has run.
        let _ = self.monitor.remaining();
        self.monitor.lost()
    }

    /// Whether it is the parent's, and this a child made by `fork`.
    pub(crate) fn is_inherited(&self) -> bool {
        !self.core.process.is_current()
    }

    /// Whether this thread is unwinding by a panic that began while it was held.
    pub(crate) fn is_panicked(&self) -> bool {
        thread::panicking() && !self.panicking
    }

    fn lost_error(&self) -> Error {
        // In a child that inherited this guard nothing may be locked: its other threads stayed in the parent.
        let known = if self.is_inherited() {
            None
        } else {
            self.monitor.lost_reason()
        };
        let reason = known.unwrap_or(LostReason::NotOwner);
        Error::lost(self.name(), reason)
    }
}

/// For the types that protect a value.
#[cfg(feature = "value")]
impl LockGuard {
    /// What the lock protects: it came with the lease.
    pub(crate) fn value(&self) -> Stored {
        self.monitor.value().flatten()
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        if self.monitor.has_ended() {
            return;
        }
        if self.is_inherited() {
            // The parent's: not even its channel may be closed here.
            std::mem::forget((self.renewer.take(), self.monitor.clone(), self.core.clone()));
            return;
        }
        let panicked = self.is_panicked();
        // A logger that panics must not end a process whose thread is unwinding.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            if let Err(e) = self.release(None, &Deadline::NEVER, panicked) {
                log::warn!("not released on drop: {}", Whole(&e));
            }
        }));
    }
}

// There is nothing half done that a panic could leave behind, and the next holder is told of the panic.
impl UnwindSafe for LockGuard {}
impl RefUnwindSafe for LockGuard {}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("name", &self.name())
            .field("fencing_token", &self.fencing_token())
            .field("held", &self.is_held())
            .finish_non_exhaustive()
    }
}
