//! The guard of a lock: what its holder asks of it, and how it ends.
//!
//! It uses `core` and all below. What always holds here: a guard releases its lease once, or hands it over; in a child
//! of its process it does nothing.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, OnceLock, atomic::AtomicBool};
use std::{fmt, fs::File, io, thread, time::Duration};

use crate::base::sys::channel::{self, Receiver, Select};
use crate::base::{BootInstant, Claim, Deadline, Error, LostReason, Result, Token};
use crate::core::{Core, guards::Slot};
use crate::engine::{Change, Outcome, Request};
use crate::lease::monitor::{LeaseMonitor, Lost};
use crate::lease::renewer::{Renewer, Tend};
use crate::{lease::Lease, queue::Turn};

mod changes;
mod ending;
pub(crate) mod held_by_thread;
mod release;

/// Holds a lock, and releases it when dropped.
///
/// While the guard lives, a thread of its own renews the lease. On `file:` the thread checks whether the lock was
/// broken.
///
/// # What to do with a lease that may end
///
/// A lease ends early if the server can't be reached for a ttl, if this process is paused for as long, or if somebody
/// deletes the key. So call [`is_held`](Self::is_held) or [`check`](Self::check) before each step that matters, or
/// wait on [`lost`](Self::lost). Send [`fencing_token`](Self::fencing_token) with each write, so that the storage
/// can reject a late write of an exclusive holder.
///
/// # In async programs
///
/// You can hold a guard across an `.await`, but other tasks that want the lock then block the threads of the runtime.
/// If they block all threads, the task with the guard can't go on. `docs/async.md` shows what to do instead.
///
/// # How a guard ends
///
/// - **Dropped**, it releases the lock: one round trip, or none if another thread of this process waits and gets the
///   lease. If the server can't be reached, the drop takes at most 500 ms. An error is only logged;
///   [`unlock`](Self::unlock) returns it.
/// - **Dropped during a panic**, it releases at once, and the next exclusive holder sees
///   [`was_abandoned`](Self::was_abandoned).
/// - **Forgotten** (`std::mem::forget`), it is renewed until the process ends, unless
///   [`renew`](crate::LockerBuilder::renew) or [`max_hold`](crate::LockerBuilder::max_hold) ends that.
/// - **Inherited** by a child of `fork`, it isn't held in the child: it neither renews nor releases, and its `lost`
///   receives no message.
///
/// # Differences from `std::sync::MutexGuard`
///
/// - It holds a name, not a value, and dereferences to nothing.
/// - It can be lost, as above, and its drop does I/O.
/// - It is `Send` and `'static`: another thread may use and drop it.
/// - `was_abandoned` takes the place of poisoning.
///
/// # Examples
///
/// ```
/// # fn main() -> crosslock::Result<()> {
/// let locker = crosslock::Locker::open("memory:")?;
/// let guard = locker.lock("guard-example")?;
/// assert!(guard.is_held());
/// assert!(locker.try_lock("guard-example")?.is_none());
/// drop(guard);
/// assert!(locker.try_lock("guard-example")?.is_some());
/// # Ok(())
/// # }
/// ```
#[must_use = "a guard that is dropped at once protects nothing: bind it, `let _guard = ...`"]
pub struct LockGuard {
    core: Arc<Core>,
    monitor: Arc<LeaseMonitor<Turn>>,
    renewer: Option<Renewer>,
    claim: Claim,
    token: Token,
    /// Whether somebody was told the token.
    is_token_used: AtomicBool,
    /// When it may be told.
    token_from: BootInstant,
    /// In the registry of the core, until the lease is released.
    slot: Option<Slot>,
    /// Whether the thread was unwinding already when the lock was taken.
    panicking: bool,
    /// How long it was held, from its end until the observer is told.
    held: Option<Duration>,
    /// What `lost` gives in a child.
    silent: OnceLock<Receiver<Lost>>,
}

impl LockGuard {
    /// # Errors
    ///
    /// `Cancelled` when the locker was closed meanwhile: the lease is released again.
    pub(crate) fn new(
        core: Arc<Core>,
        lease: Lease,
        renewer: Option<Renewer>,
        turn: Option<Turn>,
    ) -> Result<Self> {
        let (claim, token, token_from) = (lease.claim.clone(), lease.token, lease.token_from());
        let is_token_used = AtomicBool::new(lease.is_token_used);
        // That is now.
        let held_since = lease.held_since;
        let (engine, clock) = (core.engine.clone(), core.clock.clone());
        let observer = core.options.observer.clone();
        let monitor = LeaseMonitor::new(engine, clock, core.plan, observer, lease, turn);
        let monitor = Arc::new(monitor);
        held_by_thread::remember(&monitor, claim.mode, core.process);
        if let Some(renewer) = &renewer {
            let tended: Arc<dyn Tend> = monitor.clone();
            renewer.tend(Arc::downgrade(&tended), monitor.first_look(held_since));
        }
        let guard = LockGuard {
            slot: Some(core.guards.add(&monitor)),
            core,
            monitor,
            renewer,
            claim,
            token,
            is_token_used,
            token_from,
            panicking: thread::panicking(),
            held: None,
            silent: OnceLock::new(),
        };
        // Looked at after it is in the registry: whoever closes the core later finds it there.
        if guard.core.closed().is_set() {
            guard.core.close_late(&guard.monitor);
            return Err(Error::cancelled(guard.name()));
        }
        Ok(guard)
    }

    /// Returns the name of the lock. A guard of several locks returns a text with all names.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let guard = locker.lock("name-example")?;
    /// assert_eq!(guard.name(), "name-example");
    /// # Ok(())
    /// # }
    /// ```
    pub fn name(&self) -> &str {
        self.claim.key.name()
    }

    /// Returns `true` if this process can prove that the lease is valid. Does no I/O.
    ///
    /// `true` means that no guard that this one excludes was valid at the moment of the call, if the server kept the
    /// lock. After `false` it never returns `true` again.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let guard = locker.lock("held-example")?;
    /// assert!(guard.is_held());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Returns how much longer the lease is valid without another renewal: zero if it is lost. Does no I/O.
    ///
    /// For a lease that lasts until it is released, as on `file:`, it returns `Duration::MAX`. Use `checked_add` to add
    /// it to an `Instant`.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let guard = locker.lock("remaining-example")?;
    /// assert!(guard.remaining() > std::time::Duration::from_secs(5)); // the ttl is 10 s
    /// # Ok(())
    /// # }
    /// ```
    pub fn remaining(&self) -> Duration {
        if self.is_inherited() {
            return Duration::ZERO;
        }
        self.used_here();
        self.monitor.remaining()
    }

    /// Returns an error if the lease isn't valid any more: [`is_held`](Self::is_held) for use with `?`.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when the lease isn't valid any more.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let guard = locker.lock("check-example")?;
    /// for batch in 0..3 {
    ///     guard.check()?;
    ///     println!("batch {batch}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn check(&self) -> Result<()> {
        if self.is_held() {
            Ok(())
        } else {
            Err(self.lost_error())
        }
    }

    /// Asks the engine whether this guard still has the lock: on Redis one round trip.
    ///
    /// It finds what [`check`](Self::check) can't: a deleted key, a server that has lost its data, a removed file.
    ///
    /// # Errors
    ///
    /// - [`Error::Lost`] when the guard doesn't have the lock any more. From then on the guard is lost.
    /// - [`Error::Unavailable`], [`Error::Denied`], [`Error::Conflict`] and [`Error::Engine`] when the engine can't
    ///   answer.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let guard = locker.lock("verify-example")?;
    /// guard.verify()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn verify(&self) -> Result<()> {
        self.change(Change::Verify, &Deadline::NEVER)
    }

    /// Makes a change after which the lock is still this guard's.
    fn change(&self, change: Change<'_>, by: &Deadline) -> Result<()> {
        self.check()?;
        let Some((owner, granted)) = self.monitor.proof() else {
            return Err(self.lost_error());
        };
        let request = Request {
            claim: &self.claim,
            owner: &owner,
            ttl: self.core.options.ttl,
            granted: Some(granted),
        };
        let engine = &self.core.engine;
        match engine.change(request, change, by)? {
            Outcome::Done(_) => {}
            Outcome::Gone(gone) => self.monitor.lose(gone.reason()),
        }
        self.check()
    }

    /// Returns a channel that gets one message as soon as this process knows that the lease is lost.
    ///
    /// The channel fits `select!` of [`crosslock::crossbeam_channel`](https://docs.rs/crossbeam-channel). After the
    /// message it is closed, so that every clone of the receiver wakes. When the guard is released, the channel is
    /// closed without a message.
    ///
    /// The process knows it when the ttl has run out, when a renewal or [`verify`](Self::verify) was refused, or when
    /// its locker was closed. Only ZooKeeper reports at once that somebody deleted the lock. Elsewhere the next renewal
    /// finds it, within [`renew_every`](crate::LockerBuilder::renew_every).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # fn main() -> crosslock::Result<()> {
    /// let ttl = Duration::from_millis(100);
    /// let locker = crosslock::Locker::builder("memory:").ttl(ttl).renew(false).build()?;
    /// let guard = locker.lock("lost-example")?;
    /// crosslock::crossbeam_channel::select! {
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
            return self.silent.get_or_init(channel::never);
        }
        self.used_here();
        // A process that was stopped past its ttl finds the message here, also before its renewer has run.
        let _ = self.monitor.remaining();
        self.monitor.lost()
    }

    /// Blocks until this process knows that the lease is lost, for at most `timeout`: [`lost`](Self::lost) without a
    /// channel.
    ///
    /// Returns `None` if the lease is still valid then. The message of the channel stays there for its receivers.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # fn main() -> crosslock::Result<()> {
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let guard = locker.lock("wait-lost-example")?;
    /// for batch in 0..3 {
    ///     println!("batch {batch}");
    ///     if let Some(lost) = guard.wait_lost(Duration::from_millis(10)) {
    ///         println!("stop: {}", lost.name);
    ///         break;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_lost(&self, timeout: Duration) -> Option<Lost> {
        let mut message = Select::new();
        message.recv(self.lost());
        if self.is_held() {
            let _ = message.ready_timeout(timeout);
        }
        match self.check() {
            Err(Error::Lost { name, reason, .. }) => Some(Lost { name, reason }),
            _ => None,
        }
    }

    /// Returns copies of the open files with which a lock of `file:` is held. On other engines the list is empty, and
    /// so is the list of a guard that is lost or was inherited by a child of `fork`.
    ///
    /// If this process dies, the lock stays taken while another process has a copy open. Pass a copy to a child that
    /// works under the lock: nobody else gets the lock before the child has ended, even if this process is killed. The
    /// next holder then finds the lock [abandoned](Self::was_abandoned). `crosslock run --inherit` passes it to its
    /// command.
    ///
    /// Like all files of `std`, a copy is closed when a program is executed. Clear its flag `FD_CLOEXEC` with `fcntl`
    /// before you start the child. Don't read or write the file. Unlocking or dropping this guard frees the lock, even
    /// if others have copies.
    ///
    /// # Errors
    ///
    /// The error of the operating system if a file can't be opened again, for instance because this process has too
    /// many open files.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let locker = crosslock::Locker::open("memory:")?; // with "file:" there is one
    /// let guard = locker.lock("lock-files-example")?;
    /// assert!(guard.lock_files()?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn lock_files(&self) -> io::Result<Vec<File>> {
        // In a child that inherited this guard nothing may be locked.
        if !self.is_held() {
            return Ok(Vec::new());
        }
        let owner = self.monitor.proof().map(|(owner, _)| owner);
        owner.map_or(Ok(Vec::new()), |owner| self.core.engine.lock_files(&owner))
    }

    /// What it is about.
    #[cfg(feature = "delay")]
    pub(crate) fn claim(&self) -> &Claim {
        &self.claim
    }

    /// Has it forgotten that another thread took it.
    pub(crate) fn used_here(&self) {
        held_by_thread::used(&self.monitor);
    }

    /// Whether it is the parent's, and this a child made by `fork`.
    pub(crate) fn is_inherited(&self) -> bool {
        !self.core.process.is_current()
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
    pub(crate) fn value(&self) -> crate::base::claim::Stored {
        self.monitor.value().flatten()
    }

    /// Stores another one, and goes on holding the lock.
    pub(crate) fn store_value(&self, value: &[u8], by: &Deadline) -> Result<()> {
        self.change(Change::Store(value), by)
    }

    /// Who holds it, as others see that; `None` once it is lost.
    pub(crate) fn party(&self) -> Option<String> {
        let (owner, _) = self.monitor.proof()?;
        Some(owner.holder().to_owned())
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
