//! A lock for as many holders as there are permits.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

use crate::base::{Claim, Deadline, Error, Mode, Result};
use crate::{engine::Engine, guard::LockGuard, locker::Locker};

const MOST_PERMITS: u32 = 10_000;

impl Locker {
    /// Makes a semaphore: a lock that several can hold at once, up to a number of permits. Does no I/O.
    ///
    /// `permits` is 1 to 10,000. Pass the same number in all programs that use the name. While the name is locked, or
    /// held to read, no permit is free. While permits are out, the name can't be locked.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] when `name` isn't 1 to 512 bytes long.
    /// - [`Error::InvalidOption`] when the argument `permits` is out of its range.
    /// - [`Error::Unsupported`] when the engine has no semaphores: a quorum of Redis servers.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let downloads = locker.semaphore("semaphore", 2)?;
    /// let _one = downloads.acquire()?;
    /// let _other = downloads.acquire()?;
    /// assert!(downloads.try_acquire()?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn semaphore(&self, name: &str, permits: u32) -> Result<Semaphore> {
        if !(1..=MOST_PERMITS).contains(&permits) {
            return Err(Error::InvalidOption {
                option: "permits",
                reason: format!("{permits} is out of range: use 1 to {MOST_PERMITS}"),
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

/// A lock that several can hold at once, up to a number of permits.
///
/// [`Locker::semaphore`] makes one. Making and cloning it costs no I/O. The guard of a permit, or of several, is a
/// [`LockGuard`]; its [`was_abandoned`](LockGuard::was_abandoned) reports only an exclusive holder of the name.
///
/// # Guarantees
///
/// All guards whose leases [are held](LockGuard::is_held) together have no more permits than the semaphore. Each guard
/// has a lease of its own, with its own ttl and fencing token, so a storage can't use
/// [the tokens](LockGuard::fencing_token) to refuse late writes. Waiters are served first come, first served: a waiter
/// that wants many permits isn't passed by others that want few.
///
/// # What breaks them
///
/// - A lease can end early, see the [crate documentation](crate#what-a-lease-promises).
/// - Programs use different numbers of permits for one name. A call that has waited for over 3 s checks this, and logs
///   a warning.
/// - A holder that crashes keeps its permits until its own lease ends.
/// - A name that is also held to read: no order is promised between waiting readers and waiters for permits.
///
/// # Round trips
///
/// One to acquire when the permits are free, and one to release, for any number of permits. Each guard that is out
/// costs the server about a microsecond whenever a permit is asked for or given back.
///
/// # Differences from `std` and tokio
///
/// `std::sync` has no semaphore. Compared to `tokio::sync::Semaphore`:
///
/// - Calls block their thread.
/// - The number of permits is fixed: there are no `add_permits`, `close` and `forget`. A guard gives all of its permits
///   back at once.
/// - Permits come back when their holder has crashed.
/// - [`at_least_for`](LockGuard::at_least_for) keeps a permit out after its release, which limits a rate.
///
/// # Examples
///
/// ```
/// # let locker = crosslock::Locker::open("memory:")?;
/// let workers = locker.semaphore("workers", 4)?;
/// let three = workers.acquire_many(3)?;
/// assert_eq!(workers.available_permits()?, 1);
/// drop(three);
/// assert_eq!(workers.available_permits()?, 4);
/// # Ok::<(), crosslock::Error>(())
/// ```
#[derive(Clone)]
pub struct Semaphore {
    locker: Locker,
    claim: Claim,
    permits: u32,
}

impl Semaphore {
    /// Takes a permit, blocking until one is free.
    ///
    /// Returns its guard, which gives the permit back when it is dropped.
    ///
    /// # Errors
    ///
    /// The errors of [`Locker::lock`].
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let downloads = locker.semaphore("acquire", 2)?;
    /// let permit = downloads.acquire()?;
    /// permit.unlock()?; // `drop(permit)` would only log an error
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn acquire(&self) -> Result<LockGuard> {
        self.locker.calls().lock(&self.claim)
    }

    /// Tries to take a permit once, without waiting.
    ///
    /// Returns `None` when no permit is free, or others wait for one.
    ///
    /// # Errors
    ///
    /// The errors of [`Locker::try_lock`].
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let downloads = locker.semaphore("try-acquire", 1)?;
    /// let _permit = downloads.acquire()?;
    /// assert!(downloads.try_acquire()?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_acquire(&self) -> Result<Option<LockGuard>> {
        self.locker.calls().try_lock(&self.claim)
    }

    /// Tries to take a permit for as long as `timeout`.
    ///
    /// Returns `None` when it got none until then.
    ///
    /// # Errors
    ///
    /// The errors of [`Locker::try_lock_for`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let downloads = locker.semaphore("try-acquire-for", 1)?;
    /// let _permit = downloads.acquire()?;
    /// assert!(downloads.try_acquire_for(Duration::from_millis(20))?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_acquire_for(&self, timeout: Duration) -> Result<Option<LockGuard>> {
        self.locker.calls().try_lock_for(&self.claim, timeout)
    }

    /// Tries to take a permit until a point in time, as [`try_acquire_for`](Self::try_acquire_for) does for a time.
    ///
    /// # Errors
    ///
    /// The errors of [`try_acquire_for`](Self::try_acquire_for).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let downloads = locker.semaphore("try-acquire-until", 1)?;
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// assert!(downloads.try_acquire_until(deadline)?.is_some());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_acquire_until(&self, deadline: Instant) -> Result<Option<LockGuard>> {
        self.locker.calls().try_lock_until(&self.claim, deadline)
    }

    /// Takes `count` permits at once, blocking until as many are free.
    ///
    /// Returns one guard for all of them, which gives them back together.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidOption`] when the argument `count` is zero, or more than the semaphore has permits.
    /// - The errors of [`Locker::lock`].
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let workers = locker.semaphore("acquire-many", 4)?;
    /// let _three = workers.acquire_many(3)?;
    /// assert!(workers.acquire_many(5).is_err());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn acquire_many(&self, count: u32) -> Result<LockGuard> {
        self.locker.calls().lock(&self.many(count)?)
    }

    /// Tries to take `count` permits at once, without waiting.
    ///
    /// Returns `None` when fewer are free, or others wait for permits.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] as for [`acquire_many`](Self::acquire_many), and the errors of [`Locker::try_lock`].
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let workers = locker.semaphore("try-acquire-many", 4)?;
    /// let _three = workers.acquire_many(3)?;
    /// assert!(workers.try_acquire_many(2)?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_acquire_many(&self, count: u32) -> Result<Option<LockGuard>> {
        self.locker.calls().try_lock(&self.many(count)?)
    }

    /// Tries to take `count` permits at once, for as long as `timeout`.
    ///
    /// Returns `None`, and holds none, when it didn't get all of them until then.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] as for [`acquire_many`](Self::acquire_many), and the errors of
    /// [`Locker::try_lock_for`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let workers = locker.semaphore("try-acquire-many-for", 4)?;
    /// let _three = workers.acquire_many(3)?;
    /// assert!(workers.try_acquire_many_for(2, Duration::from_millis(20))?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_acquire_many_for(&self, count: u32, timeout: Duration) -> Result<Option<LockGuard>> {
        self.locker
            .calls()
            .try_lock_for(&self.many(count)?, timeout)
    }

    /// Tries to take `count` permits at once until a point in time, as
    /// [`try_acquire_many_for`](Self::try_acquire_many_for) does for a time.
    ///
    /// # Errors
    ///
    /// The errors of [`try_acquire_many_for`](Self::try_acquire_many_for).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let workers = locker.semaphore("try-acquire-many-until", 4)?;
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// assert!(workers.try_acquire_many_until(4, deadline)?.is_some());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_acquire_many_until(
        &self,
        count: u32,
        deadline: Instant,
    ) -> Result<Option<LockGuard>> {
        self.locker
            .calls()
            .try_lock_until(&self.many(count)?, deadline)
    }

    /// Counts the permits that are free at the moment, without taking any: one round trip.
    ///
    /// Waiters may be about to get them, so the number may have changed by the time you use it. To take a permit if one
    /// is free, call [`try_acquire`](Self::try_acquire).
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`], [`Error::Denied`], [`Error::Conflict`] and [`Error::Engine`] as for [`Locker::lock`].
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let workers = locker.semaphore("available-permits", 4)?;
    /// let _one = workers.acquire()?;
    /// assert_eq!(workers.available_permits()?, 3);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn available_permits(&self) -> Result<u32> {
        let (key, of) = (&self.claim.key, self.permits);
        let ask = |engine: &dyn Engine, by: &Deadline| engine.free_permits(key, of, by);
        self.locker.calls().ask(key.name(), ask)
    }

    fn many(&self, count: u32) -> Result<Claim> {
        let of = self.permits;
        if !(1..=of).contains(&count) {
            let name = self.claim.key.name();
            return Err(Error::InvalidOption {
                option: "count",
                reason: format!(
                    "{count} is out of range: {name:?} has {of} permits, so use 1 to {of}"
                ),
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
