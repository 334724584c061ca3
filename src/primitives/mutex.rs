//! A lock and the value that it protects.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};
use std::{fmt, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};

use crate::base::{Error, Mode, Result};
use crate::locker::Locker;
use crate::primitives::value::{ValueGuard, ValueLock};

impl Locker {
    /// Makes a mutex: a lock together with a value, which is stored beside it.
    ///
    /// Returns the mutex without asking the engine. `init` is the value as long as none is stored. All mutexes of one
    /// name are one lock and one value, whoever made them, and [`lock`](Self::lock) of that name excludes them.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`](crate::Error::InvalidName) when `name` isn't 1 to 512 bytes long.
    /// - [`Error::InvalidValue`](crate::Error::InvalidValue) when `init` can't be written as JSON and read again.
    /// - [`Error::Unsupported`](crate::Error::Unsupported) on a quorum of Redis servers, which has no values.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let counter = locker.mutex("mutex", 0u64)?;
    /// counter.update(|count| *count += 1)?;
    /// assert_eq!(counter.peek()?, 1);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn mutex<T>(&self, name: &str, init: T) -> Result<Mutex<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        let lock = ValueLock::new(self, name, Mode::Exclusive, &init)?;
        Ok(Mutex(Arc::new(lock)))
    }
}

/// A lock across processes, and the value that it protects.
///
/// [`Locker::mutex`] makes one. Making and cloning it costs no I/O; keep one, or make one wherever it is needed.
///
/// # Guarantees
///
/// While the lease of a guard [is held](crate::LockGuard::is_held), no other guard of the name is valid, and the guard
/// has the value that was stored last. The command that releases the lock stores the value, if the lock still is the
/// guard's: a holder that has lost its lock can't overwrite the value of its successor. The engine stores a change
/// whole or not at all.
///
/// # What breaks them
///
/// - A lease can end early, see the [crate documentation](crate#what-a-lease-promises). A server that forgets the
///   lock forgets the value, too, or goes back to an older one.
/// - A large value. Every lock reads the value, and the command that stores it has 400 ms, as any release: a value of
///   100 MB takes longer, the call returns `Unavailable` by then, and the server may store the value all the same.
///   Redis takes at most 128 MiB.
/// - A value that JSON doesn't have: `Some(f64::NAN)` is stored as `null`, and comes back as `None`.
/// - On `file:`, users that share a directory with the sticky bit: one can't replace the other's value.
///
/// On Redis the value is the string `{namespace:name}:value`, without a ttl; on `file:` it is a file beside the lock's,
/// which a change replaces by renaming a new one.
///
/// # Round trips
///
/// One to lock, the value included, and one to unlock, a change included. A lock that was waited for takes one more to
/// read the value. If another thread of this process is handed the lock, storing a change takes one, and an unchanged
/// value none.
///
/// # Differences from `std::sync::Mutex`
///
/// - The value outlives its processes: it stays until [`remove`](Self::remove). Its type is any that serde writes and
///   reads. There is neither `get_mut` nor `into_inner`.
/// - Every call returns a [`Result`](crate::Result), because the engine may fail, and a lease may end before its guard
///   does.
/// - The value can be reached without the lock: [`peek`](Self::peek) and [`remove`](Self::remove) don't lock, and the
///   engine's own tools can change it.
/// - Dropping a guard stores the value, and only logs an error. [`MutexGuard::unlock`](ValueGuard::unlock) and
///   [`update`](Self::update) return it.
/// - There is no poisoning. A panic discards the change, and the next holder finds
///   [`was_abandoned`](crate::LockGuard::was_abandoned) true: the value is whole, other work may be half done.
/// - On Redis waiting processes are served first come, first served, and their threads fairly, see [`Locker::lock`].
///   `std` promises no order.
/// - Calls with a timeout exist.
/// - A guard may be sent to another thread.
///
/// # Examples
///
/// ```
/// use crosslock::MutexGuard;
///
/// # let locker = crosslock::Locker::open("memory:")?;
/// let stock = locker.mutex("stock", vec!["apple".to_owned()])?;
/// stock.update(|names| names.push("pear".to_owned()))?; // stored, or an error
///
/// let mut guard = stock.lock()?; // for more than a closure can hold
/// guard.push("plum".to_owned());
/// MutexGuard::unlock(guard)?;
/// assert_eq!(stock.peek()?.len(), 3);
/// # Ok::<(), crosslock::Error>(())
/// ```
pub struct Mutex<T>(Arc<ValueLock<T>>);

/// A held [`Mutex`], and its value.
///
/// [`ValueGuard`] describes the guard and its drop. Its functions are [`lease`](ValueGuard::lease),
/// [`unlock`](ValueGuard::unlock) and [`discard`](ValueGuard::discard).
///
/// # Examples
///
/// ```
/// use crosslock::MutexGuard;
///
/// # let locker = crosslock::Locker::open("memory:")?;
/// let counter = locker.mutex("mutex-guard", 0u64)?;
/// let mut guard = counter.lock()?;
/// *guard += 1;
/// MutexGuard::unlock(guard)?;
/// # Ok::<(), crosslock::Error>(())
/// ```
pub type MutexGuard<T> = ValueGuard<T, Mutex<T>>;

impl<T: Serialize + DeserializeOwned> Mutex<T> {
    /// Changes the value by a closure, with the lock held, and stores it: two round trips.
    ///
    /// Blocks until the lock is free. Returns what `change` returned, once the value is stored. If `change` panics, the
    /// lock is released and the value stays as it was. `change` must not lock the same name: it would wait for itself.
    ///
    /// # Errors
    ///
    /// The errors of [`lock`](Self::lock): `change` wasn't called. After `change` was called, the errors of
    /// [`MutexGuard::unlock`](ValueGuard::unlock):
    ///
    /// - [`Error::Lost`](crate::Error::Lost) and [`Error::InvalidValue`](crate::Error::InvalidValue): nothing was
    ///   stored, and the call may be repeated.
    /// - [`Error::Unavailable`](crate::Error::Unavailable) and the others: nobody knows whether the value was stored.
    ///   Repeat the call if the change may be made twice. Otherwise store a mark of the change in the value, such as
    ///   the id of a request, and look for the mark first.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let seats = locker.mutex("mutex-update", 1u32)?;
    /// let sell = || {
    ///     seats.update(|left| {
    ///         let sold = *left > 0;
    ///         *left = left.saturating_sub(1);
    ///         sold
    ///     })
    /// };
    /// assert_eq!([sell()?, sell()?], [true, false]);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<R> {
        ValueGuard::update(self.lock()?, change)
    }

    /// Changes the value by a closure that can fail, as [`update`](Self::update) does; after an error nothing is
    /// stored.
    ///
    /// # Errors
    ///
    /// The error of `change`: the lock is released, and the value stays as it was. And the errors of
    /// [`update`](Self::update).
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let seats = locker.mutex("mutex-try-update", 1u32)?;
    /// let sell = || {
    ///     seats.try_update(|left| {
    ///         *left = left.checked_sub(1).ok_or("sold out")?;
    ///         Ok::<_, Box<dyn std::error::Error>>(())
    ///     })
    /// };
    /// assert!(sell().is_ok());
    /// assert_eq!(sell().unwrap_err().to_string(), "sold out");
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_update<R, E>(&self, change: impl FnOnce(&mut T) -> Result<R, E>) -> Result<R, E>
    where
        E: From<Error>,
    {
        ValueGuard::try_update(self.lock()?, change)
    }

    /// Stores another value, with the lock held: two round trips.
    ///
    /// Blocks until the lock is free.
    ///
    /// # Errors
    ///
    /// The errors of [`update`](Self::update), [`Error::Corrupt`](crate::Error::Corrupt) among them: a stored value of
    /// another type stays, until [`remove`](Self::remove).
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let counter = locker.mutex("mutex-set", 0u64)?;
    /// counter.set(100)?;
    /// assert_eq!(counter.peek()?, 100);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn set(&self, value: T) -> Result<()> {
        self.update(|stored| *stored = value)
    }

    /// Takes the lock, blocking until it is free, and reads the value with it.
    ///
    /// Returns the guard, which dereferences to the value.
    ///
    /// # Errors
    ///
    /// The errors of [`Locker::lock`], and [`Error::Corrupt`](crate::Error::Corrupt) when what is stored is no `T`: it
    /// stays as it is, and the lock is released.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let counter = locker.mutex("mutex-lock", 7u64)?;
    /// let mut guard = counter.lock()?;
    /// *guard += 1; // stored when the guard is dropped
    /// # drop(guard);
    /// # assert_eq!(counter.peek()?, 8);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn lock(&self) -> Result<MutexGuard<T>> {
        Ok(ValueGuard::new(self.0.lock()?, &self.0))
    }

    /// Tries to take the lock once, without waiting, as [`Locker::try_lock`] does.
    ///
    /// Returns `None` when the lock is taken, or others wait for it.
    ///
    /// # Errors
    ///
    /// The errors of [`Locker::try_lock`], and [`Error::Corrupt`](crate::Error::Corrupt) as for [`lock`](Self::lock).
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let counter = locker.mutex("mutex-try-lock", 0u64)?;
    /// let _guard = counter.lock()?;
    /// assert!(counter.try_lock()?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_lock(&self) -> Result<Option<MutexGuard<T>>> {
        let held = self.0.try_lock()?;
        Ok(held.map(|held| ValueGuard::new(held, &self.0)))
    }

    /// Tries to take the lock for as long as `timeout`, as [`Locker::try_lock_for`] does.
    ///
    /// Returns `None` when the lock was taken until then.
    ///
    /// # Errors
    ///
    /// The errors of [`Locker::try_lock_for`], and [`Error::Corrupt`](crate::Error::Corrupt) as for
    /// [`lock`](Self::lock).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let counter = locker.mutex("mutex-try-lock-for", 0u64)?;
    /// let _guard = counter.lock()?;
    /// assert!(counter.try_lock_for(Duration::from_millis(20))?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_lock_for(&self, timeout: Duration) -> Result<Option<MutexGuard<T>>> {
        let held = self.0.try_lock_for(timeout)?;
        Ok(held.map(|held| ValueGuard::new(held, &self.0)))
    }

    /// Tries to take the lock until a point in time, as [`try_lock_for`](Self::try_lock_for) does for a time.
    ///
    /// # Errors
    ///
    /// The errors of [`try_lock_for`](Self::try_lock_for).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let counter = locker.mutex("mutex-try-lock-until", 0u64)?;
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// assert!(counter.try_lock_until(deadline)?.is_some());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_lock_until(&self, deadline: Instant) -> Result<Option<MutexGuard<T>>> {
        let held = self.0.try_lock_until(deadline)?;
        Ok(held.map(|held| ValueGuard::new(held, &self.0)))
    }

    /// Reads the value without locking: one round trip.
    ///
    /// Returns what was stored last, or `init`. A holder may be about to store another value.
    ///
    /// # Errors
    ///
    /// - [`Error::Corrupt`](crate::Error::Corrupt) when what is stored is no `T`.
    /// - [`Error::Unavailable`](crate::Error::Unavailable), [`Error::Denied`](crate::Error::Denied),
    ///   [`Error::Conflict`](crate::Error::Conflict) and [`Error::Engine`](crate::Error::Engine) as for
    ///   [`Locker::lock`].
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let counter = locker.mutex("mutex-peek", 7u64)?;
    /// let _guard = counter.lock()?;
    /// assert_eq!(counter.peek()?, 7);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn peek(&self) -> Result<T> {
        self.0.get()
    }

    /// Deletes the stored value without locking, so that it is `init` again: on a server one round trip if there is
    /// none, else two.
    ///
    /// A holder that has changed the value stores it again. While threads of one process hand the lock to one another,
    /// they keep the value as they know it, and don't see that it was removed.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`](crate::Error::Unavailable), [`Error::Denied`](crate::Error::Denied) and
    /// [`Error::Engine`](crate::Error::Engine) as for [`Locker::lock`].
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let counter = locker.mutex("mutex-remove", 7u64)?;
    /// counter.set(8)?;
    /// counter.remove()?;
    /// assert_eq!(counter.peek()?, 7);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn remove(&self) -> Result<()> {
        self.0.remove()
    }
}

// The value isn't in it, and there is nothing half done that a panic could leave behind.
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
