//! A lock and what it protects.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::base::claim::Mode;
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::guard::LockGuard;
use crate::lease::monitor::Lost;
use crate::locker::Locker;
use crate::primitives::value_guard::{LeaseMonitor, guard_facts};
use crate::primitives::value_lock::Cell;

impl Locker {
    /// Returns a lock that protects a value, which is stored beside it and shared by all who lock that name.
    ///
    /// `init` is what the value is until one is stored. Nothing is asked of the engine. A mutex is cheap, and may be
    /// made wherever one is needed; those of the same name are the same, and [`lock`](Self::lock) of that name
    /// excludes them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidName`](crate::Error::InvalidName) as for [`lock`](Self::lock);
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) when `init` can't be written as JSON.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let lock = crosslock::Locker::open("memory:")?;
    /// let counter = lock.mutex("mutex-example", 0u64)?;
    /// counter.update(|count| *count += 1)?;
    /// assert_eq!(counter.get()?, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn mutex<T>(&self, name: &str, init: T) -> Result<Mutex<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        Cell::new(self, name, Mode::Exclusive, &init).map(Mutex)
    }
}

/// A lock across processes, and the value that it protects.
///
/// It is made by [`Locker::mutex`], and cheap to clone. The value comes with the lock, and is stored as JSON by the
/// command that releases it, if this owner still has the lock: a change of the value is two round trips, and a holder
/// that has lost its lock can't overwrite what its successor stored. When the lock was waited for, one round trip more
/// reads the value. A change is stored whole or not at all.
///
/// Values are meant to be small: one is read with every acquire, and to store it has 400 ms, as any release. One of
/// 100 MB takes longer: the call gives `Unavailable` by then, and the server may store it all the same. What JSON can't
/// tell is stored as what it makes of it: `Some(f64::NAN)` as `null`, which comes back as `None`.
///
/// Unlike that of `std::sync::Mutex`, the value outlives all processes: until [`remove`](Self::remove), for ever. On
/// Redis it is the string `{namespace:name}:value`, without a ttl; on `file:` a file beside the lock's, replaced by
/// renaming a new one (users share it only where they may replace one another's files: not in a directory with the sticky
/// bit). Where the server forgets ([crate documentation](crate#what-a-lease-promises)) it forgets the
/// value, too, or goes back to an older one. A panic discards the change, and the next
/// holder is told by [`abandoned`](MutexGuard::abandoned): the value is whole, what was done beside it may not be.
///
/// # Examples
///
/// ```
/// # fn main() -> crosslock::Result<()> {
/// let lock = crosslock::Locker::open("memory:")?;
/// let counter = lock.mutex("counter-example", 0u64)?;
/// let count = counter.update(|count| {
///     *count += 1;
///     *count
/// })?; // stored, or an error
/// assert_eq!(count, 1);
/// # Ok(())
/// # }
/// ```
///
/// With a guard, for more than a closure can hold:
///
/// ```
/// # use crosslock::MutexGuard;
/// # fn main() -> crosslock::Result<()> {
/// let lock = crosslock::Locker::open("memory:")?;
/// let stock = lock.mutex("stock-example", vec!["apple".to_owned()])?;
/// let mut guard = stock.lock()?;
/// guard.push("pear".to_owned());
/// MutexGuard::commit(guard)?; // stored; `drop(guard)` would only log an error
/// assert_eq!(stock.get()?.len(), 2);
/// # Ok(())
/// # }
/// ```
pub struct Mutex<T>(Cell<T>);

impl<T: Serialize + DeserializeOwned> Mutex<T> {
    /// Takes the lock, blocking until it is free, changes the value, stores it, and releases: two round trips.
    ///
    /// Gives what `change` returns, once the value is stored. If `change` panics the lock is released, the value stays
    /// as it was, and the next holder is told by [`abandoned`](MutexGuard::abandoned). `change` may not lock the same
    /// name: that waits for itself.
    ///
    /// # Errors
    ///
    /// Those of [`lock`](Self::lock): then `change` wasn't called. Those of [`MutexGuard::commit`]: `change` was called,
    /// and
    ///
    /// - with [`Error::Lost`](crate::Error::Lost) or [`Error::InvalidValue`](crate::Error::InvalidValue) nothing was
    ///   stored: it may be called again.
    /// - with [`Error::Unavailable`](crate::Error::Unavailable) nobody knows whether the value was stored. A change that
    ///   may be made twice may simply be tried again; for another keep in the value what tells that it was made, such as
    ///   the id of a request, and look there first.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let lock = crosslock::Locker::open("memory:")?;
    /// let seats = lock.mutex("update-example", 2u32)?;
    /// let mut sell = || {
    ///     seats.update(|left| {
    ///         let sold = *left > 0;
    ///         *left = left.saturating_sub(1);
    ///         sold
    ///     })
    /// };
    /// assert_eq!([sell()?, sell()?, sell()?], [true, true, false]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<R> {
        let mut guard = self.lock()?;
        let outcome = change(&mut guard);
        guard.commit()?;
        Ok(outcome)
    }

    /// Takes the lock, blocking until it is free, stores another value, and releases: two round trips.
    ///
    /// # Errors
    ///
    /// Those of [`update`](Self::update): with [`Error::Corrupt`](crate::Error::Corrupt), too, what is stored stays as
    /// it is.
    pub fn set(&self, value: T) -> Result<()> {
        self.update(|stored| *stored = value)
    }

    /// Takes the lock, blocking until it is free, and reads the value with it.
    ///
    /// # Errors
    ///
    /// Those of [`Locker::lock`]; [`Error::Corrupt`](crate::Error::Corrupt) when what is stored is no `T`: it stays
    /// as it is.
    pub fn lock(&self) -> Result<MutexGuard<T>> {
        let guard = self.0.core().lock(self.0.claim())?;
        self.0.open(guard, &Deadline::NEVER).map(MutexGuard)
    }

    /// Tries to take the lock once, without waiting; gives `None` when it is taken.
    ///
    /// # Errors
    ///
    /// Those of [`Locker::try_lock`], and `Corrupt`.
    pub fn try_lock(&self) -> Result<Option<MutexGuard<T>>> {
        let guard = self.0.core().try_lock(self.0.claim())?;
        self.open(guard, &Deadline::NEVER)
    }

    /// Tries to take the lock for as long as `timeout`; gives `None` when it is taken to the end.
    ///
    /// # Errors
    ///
    /// Those of [`Locker::try_lock_for`], and `Corrupt`.
    pub fn try_lock_for(&self, timeout: Duration) -> Result<Option<MutexGuard<T>>> {
        let by = Deadline::after(timeout);
        let guard = self.0.core().try_lock_for(self.0.claim(), timeout)?;
        self.open(guard, &by)
    }

    /// Does the same as [`try_lock_for`](Self::try_lock_for), until a point in time.
    ///
    /// # Errors
    ///
    /// Those of [`try_lock_for`](Self::try_lock_for).
    pub fn try_lock_until(&self, deadline: Instant) -> Result<Option<MutexGuard<T>>> {
        let guard = self.0.core().try_lock_until(self.0.claim(), deadline)?;
        self.open(guard, &Deadline::at(deadline))
    }

    /// Reads the value without locking: what was stored last. One round trip.
    ///
    /// # Errors
    ///
    /// `Corrupt` when what is stored is no `T`, and the errors of the engine.
    pub fn get(&self) -> Result<T> {
        self.0.get()
    }

    /// Deletes what is stored, without locking, so that the value is `init` again. One round trip.
    ///
    /// A holder that changes the value stores it again, and threads of one process that hand the lock to one another don't
    /// see that it was removed.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub fn remove(&self) -> Result<()> {
        self.0.remove()
    }

    fn open(&self, guard: Option<LockGuard>, by: &Deadline) -> Result<Option<MutexGuard<T>>> {
        let held = guard.map(|guard| self.0.open(guard, by)).transpose()?;
        Ok(held.map(MutexGuard))
    }
}

// What it protects isn't in it, and there is nothing half done that a panic could leave behind.
impl<T> UnwindSafe for Mutex<T> {}
impl<T> RefUnwindSafe for Mutex<T> {}

/// Another handle of the same lock and value.
impl<T> Clone for Mutex<T> {
    fn clone(&self) -> Self {
        Mutex(self.0.clone())
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mutex").field(&self.0).finish()
    }
}

/// A held [`Mutex`], and its value.
///
/// Dropping it stores the value, if it was borrowed mutably, and releases the lock; what goes wrong is logged.
/// [`commit`](Self::commit) does the same and returns it. A panic discards the change, and is told to the next holder.
///
/// Its own methods hide those of the value that have the same name: write `(*guard).name()` for these.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct MutexGuard<T: Serialize + DeserializeOwned>(LeaseMonitor<T>);

impl<T: Serialize + DeserializeOwned> MutexGuard<T> {
    /// Stores the value, if it was borrowed mutably, and releases the lock: one round trip.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`](crate::Error::Lost) when the lock wasn't this guard's any more: nothing was stored.
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) when the value can't be written as JSON: nothing was
    /// stored. [`Error::Unavailable`](crate::Error::Unavailable) and the other errors of the engine when it isn't known whether it was.
    pub fn commit(self) -> Result<()> {
        self.0.commit()
    }

    /// Does the same as [`commit`](Self::commit).
    ///
    /// # Errors
    ///
    /// Those of [`commit`](Self::commit).
    pub fn unlock(self) -> Result<()> {
        self.0.commit()
    }

    /// Releases the lock, and stores nothing: one round trip.
    ///
    /// # Errors
    ///
    /// Those of [`LockGuard::unlock`].
    pub fn discard(self) -> Result<()> {
        self.0.discard()
    }

    guard_facts!();

    fn guard(&self) -> &LockGuard {
        self.0.guard()
    }
}

impl<T: Serialize + DeserializeOwned> Deref for MutexGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Serialize + DeserializeOwned> DerefMut for MutexGuard<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Serialize + DeserializeOwned + fmt::Debug> fmt::Debug for MutexGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutexGuard")
            .field("value", &**self)
            .field("guard", self.guard())
            .finish()
    }
}
