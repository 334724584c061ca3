//! A lock for as many as there are permits.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

use crate::base::claim::{Claim, Mode};
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::guard::LockGuard;
use crate::locker::Locker;

/// The most permits that a semaphore may have.
const MOST: u32 = 10_000;

impl Locker {
    /// Returns a semaphore: a name that so many may hold at once.
    ///
    /// `permits` is 1 to 10,000; give the same in all programs. Each permit that is out costs its server a little when
    /// another is asked for or given back: about a microsecond each. A name that is locked, or held to read, has no permits
    /// meanwhile, and the other way round.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidName`] as for [`lock`](Self::lock), [`Error::InvalidOption`] for a number out of its range,
    /// [`Error::Unsupported`] on `file:`.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let lock = crosslock::Locker::open("memory:")?;
    /// let downloads = lock.semaphore("semaphore-example", 2)?;
    /// let _one = downloads.acquire()?;
    /// let _two = downloads.acquire()?;
    /// assert!(downloads.try_acquire()?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn semaphore(&self, name: &str, permits: u32) -> Result<Semaphore> {
        if !(1..=MOST).contains(&permits) {
            return Err(Error::InvalidOption {
                option: "permits",
                reason: format!("{permits} is not in its range, 1 to {MOST}"),
            });
        }
        let mode = Mode::Permits {
            count: 1,
            of: permits,
        };
        Ok(Semaphore {
            claim: self.claim(name, mode)?,
            locker: self.clone(),
            permits,
        })
    }
}

/// A lock that as many may hold at once as there are permits.
///
/// It is made by [`Locker::semaphore`]. Each holder has a lease of its own, with its own ttl and fencing token: the
/// permits of one that crashed come back when its lease is over, whatever the others do. Those that wait are served first come,
/// first served: one that wants many permits is not passed by those that want few.
///
/// Use a name for nothing else: between those that wait to read it and those that want permits of it no order is promised.
///
/// A guard is the same as that of a lock. [`abandoned`](LockGuard::abandoned) tells only of an exclusive holder
/// of the same name.
///
/// # Examples
///
/// ```
/// # fn main() -> crosslock::Result<()> {
/// let lock = crosslock::Locker::open("memory:")?;
/// let workers = lock.semaphore("workers-example", 4)?;
/// let _three = workers.acquire_many(3)?;
/// assert_eq!(workers.available_permits()?, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Semaphore {
    locker: Locker,
    claim: Claim,
    permits: u32,
}

impl Semaphore {
    /// Takes a permit, blocking until there is one: one round trip when there is.
    ///
    /// # Errors
    ///
    /// Those of [`Locker::lock`].
    pub fn acquire(&self) -> Result<LockGuard> {
        self.locker.core().lock(&self.claim)
    }

    /// Tries to take a permit once, without waiting; gives `None` when there is none, or others wait.
    ///
    /// # Errors
    ///
    /// Those of [`Locker::try_lock`].
    pub fn try_acquire(&self) -> Result<Option<LockGuard>> {
        self.locker.core().try_lock(&self.claim)
    }

    /// Tries to take a permit for as long as `timeout`; gives `None` when there is none to the end.
    ///
    /// # Errors
    ///
    /// Those of [`Locker::try_lock_for`].
    pub fn try_acquire_for(&self, timeout: Duration) -> Result<Option<LockGuard>> {
        self.locker.core().try_lock_for(&self.claim, timeout)
    }

    /// Does the same as [`try_acquire_for`](Self::try_acquire_for), until a point in time.
    ///
    /// # Errors
    ///
    /// Those of [`try_acquire_for`](Self::try_acquire_for).
    pub fn try_acquire_until(&self, deadline: Instant) -> Result<Option<LockGuard>> {
        self.locker.core().try_lock_until(&self.claim, deadline)
    }

    /// Takes `count` permits at once, blocking until there are as many. They are given back together.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] when `count` is zero or more than there are, and those of [`Locker::lock`].
    pub fn acquire_many(&self, count: u32) -> Result<LockGuard> {
        self.locker.core().lock(&self.many(count)?)
    }

    /// Tries to take `count` permits at once, without waiting.
    ///
    /// # Errors
    ///
    /// Those of [`acquire_many`](Self::acquire_many) but `Busy`.
    pub fn try_acquire_many(&self, count: u32) -> Result<Option<LockGuard>> {
        self.locker.core().try_lock(&self.many(count)?)
    }

    /// Tries to take `count` permits at once, for as long as `timeout`.
    ///
    /// # Errors
    ///
    /// Those of [`acquire_many`](Self::acquire_many) but `Busy`.
    pub fn try_acquire_many_for(&self, count: u32, timeout: Duration) -> Result<Option<LockGuard>> {
        self.locker.core().try_lock_for(&self.many(count)?, timeout)
    }

    /// Does the same as [`try_acquire_many_for`](Self::try_acquire_many_for), until a point in time.
    ///
    /// # Errors
    ///
    /// Those of [`acquire_many`](Self::acquire_many) but `Busy`.
    pub fn try_acquire_many_until(
        &self,
        count: u32,
        deadline: Instant,
    ) -> Result<Option<LockGuard>> {
        self.locker
            .core()
            .try_lock_until(&self.many(count)?, deadline)
    }

    /// Returns how many permits are free at the moment, also when others wait for them: one round trip.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub fn available_permits(&self) -> Result<u32> {
        let sharing = self.locker.core().engine.sharing()?;
        sharing.free_permits(&self.claim.key, self.permits, &Deadline::NEVER)
    }

    fn many(&self, count: u32) -> Result<Claim> {
        let of = self.permits;
        if !(1..=of).contains(&count) {
            let name = self.claim.key.name();
            return Err(Error::InvalidOption {
                option: "count",
                reason: format!("{count} is not in its range, 1 to the {of} permits of {name:?}"),
            });
        }
        Ok(Claim {
            mode: Mode::Permits { count, of },
            ..self.claim.clone()
        })
    }
}

// There is nothing half done that a panic could leave behind.
impl UnwindSafe for Semaphore {}
impl RefUnwindSafe for Semaphore {}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("name", &self.claim.key.name())
            .field("permits", &self.permits)
            .finish_non_exhaustive()
    }
}
