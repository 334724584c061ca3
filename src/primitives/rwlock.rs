//! A read-write lock and the value that it protects, and its guards.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};
use std::{fmt, ops::Deref, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};

use crate::base::{Error, Mode, Result};
use crate::primitives::value::{ValueGuard, ValueLock, WithValue};
use crate::{guard::LockGuard, locker::Locker};

impl Locker {
    /// Makes a read-write lock together with a value, which is stored beside it.
    ///
    /// Returns the lock without asking the engine. `init` is the value as long as none is stored. The value is the same
    /// as that of a [`mutex`](Self::mutex) of the name.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`](crate::Error::InvalidName) when `name` isn't 1 to 512 bytes long.
    /// - [`Error::InvalidValue`](crate::Error::InvalidValue) when `init` can't be written as JSON and read again.
    /// - [`Error::Unsupported`](crate::Error::Unsupported) with a [`prefer`](crate::LockerBuilder::prefer) that the
    ///   engine hasn't, and on a quorum of Redis servers.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let limit = locker.rwlock("rwlock", 3u32)?;
    /// limit.set(4)?;
    /// assert_eq!(*limit.read()?, 4);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn rwlock<T>(&self, name: &str, init: T) -> Result<RwLock<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        let reading = ValueLock::new(self, name, Mode::Shared, &init)?;
        let writing = Arc::new(reading.in_mode(Mode::Exclusive));
        Ok(RwLock { reading, writing })
    }
}

/// A lock across processes with many readers or one writer, and the value that it protects.
///
/// [`Locker::rwlock`] makes one. Making and cloning it costs no I/O. The value is stored as the value of a
/// [`Mutex`](crate::Mutex) is.
///
/// # Guarantees
///
/// While the lease of a reader [is held](crate::LockGuard::is_held), no writer of the name is valid. While the lease of
/// a writer is held, no other guard is valid. Both have the last stored value. A writer that has lost its lock can't
/// overwrite a later value.
///
/// # What breaks them
///
/// The same as for [`Mutex`](crate::Mutex). Each reader has a lease of its own: one that has crashed keeps writers out
/// until its own lease ends.
///
/// # Round trips
///
/// One to lock, the value included, and one to unlock, a change included. A lock that was waited for takes one more to
/// read the value.
///
/// # Differences from `std::sync::RwLock`
///
/// - All differences of [`Mutex`](crate::Mutex) from `std`'s: the value is stored and outlives its processes, every
///   call returns a `Result`, a drop only logs that storing failed, and nothing is poisoned.
/// - A reader's guard has a copy of the value, read when the lock was taken, and not a reference to a shared one.
/// - Readers and writers take turns, unless you set [`prefer`](crate::LockerBuilder::prefer): see [`Locker::read`].
///   `std` promises no order.
/// - Calls with a timeout exist.
///
/// # Examples
///
/// ```
/// use crosslock::RwLockWriteGuard;
///
/// # let locker = crosslock::Locker::open("memory:")?;
/// let hosts = locker.rwlock("hosts", vec!["a.example".to_owned()])?;
/// println!("{} hosts", hosts.read()?.len()); // together with other readers
///
/// let mut guard = hosts.write()?;
/// guard.push("b.example".to_owned());
/// RwLockWriteGuard::unlock(guard)?; // stored, or an error
/// # assert_eq!(hosts.peek()?.len(), 2);
/// # Ok::<(), crosslock::Error>(())
/// ```
pub struct RwLock<T> {
    reading: ValueLock<T>,
    writing: Arc<ValueLock<T>>,
}

impl<T: Serialize + DeserializeOwned> RwLock<T> {
    /// Takes the lock to read, blocking while a writer holds it, and reads the value with it.
    ///
    /// Returns the guard of the reader, which dereferences to the value.
    ///
    /// # Errors
    ///
    /// The errors of [`Locker::read`], and [`Error::Corrupt`](crate::Error::Corrupt) when what is stored is no `T`: it
    /// stays as it is, and the lock is released.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let limit = locker.rwlock("rwlock-read", 3u32)?;
    /// let (one, other) = (limit.read()?, limit.read()?);
    /// assert_eq!((*one, *other), (3, 3));
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn read(&self) -> Result<RwLockReadGuard<T>> {
        self.reading.lock().map(RwLockReadGuard::new)
    }

    /// Tries to take the lock to read once, without waiting, as [`Locker::try_read`] does.
    ///
    /// Returns `None` when a writer holds the lock. Unless readers are preferred, also when a writer waits for it.
    ///
    /// # Errors
    ///
    /// The errors of [`Locker::try_read`], and [`Error::Corrupt`](crate::Error::Corrupt) as for [`read`](Self::read).
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let limit = locker.rwlock("rwlock-try-read", 3u32)?;
    /// let _writing = limit.write()?;
    /// assert!(limit.try_read()?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_read(&self) -> Result<Option<RwLockReadGuard<T>>> {
        Ok(self.reading.try_lock()?.map(RwLockReadGuard::new))
    }

    /// Tries to take the lock to read for as long as `timeout`, as [`Locker::try_read_for`] does.
    ///
    /// Returns `None` when writers held the lock until then.
    ///
    /// # Errors
    ///
    /// The errors of [`Locker::try_read_for`], and [`Error::Corrupt`](crate::Error::Corrupt) as for
    /// [`read`](Self::read).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let limit = locker.rwlock("rwlock-try-read-for", 3u32)?;
    /// let _writing = limit.write()?;
    /// assert!(limit.try_read_for(Duration::from_millis(20))?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_read_for(&self, timeout: Duration) -> Result<Option<RwLockReadGuard<T>>> {
        Ok(self
            .reading
            .try_lock_for(timeout)?
            .map(RwLockReadGuard::new))
    }

    /// Tries to take the lock to read until a point in time, as [`try_read_for`](Self::try_read_for) does for a time.
    ///
    /// # Errors
    ///
    /// The errors of [`try_read_for`](Self::try_read_for).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let limit = locker.rwlock("rwlock-try-read-until", 3u32)?;
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// assert!(limit.try_read_until(deadline)?.is_some());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_read_until(&self, deadline: Instant) -> Result<Option<RwLockReadGuard<T>>> {
        let held = self.reading.try_lock_until(deadline)?;
        Ok(held.map(RwLockReadGuard::new))
    }

    /// Takes the lock to write, blocking while readers or another writer hold it, and reads the value with it.
    ///
    /// Returns the guard of the writer, which dereferences to the value.
    ///
    /// # Errors
    ///
    /// The errors of [`Locker::write`], and [`Error::Corrupt`](crate::Error::Corrupt) as for [`read`](Self::read).
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let limit = locker.rwlock("rwlock-write", 3u32)?;
    /// let mut guard = limit.write()?;
    /// *guard += 1; // stored when the guard is dropped
    /// # drop(guard);
    /// # assert_eq!(limit.peek()?, 4);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn write(&self) -> Result<RwLockWriteGuard<T>> {
        Ok(ValueGuard::new(self.writing.lock()?, &self.writing))
    }

    /// Tries to take the lock to write once, without waiting, as [`Locker::try_write`] does.
    ///
    /// Returns `None` when readers or another writer hold the lock, or others wait for it.
    ///
    /// # Errors
    ///
    /// The errors of [`Locker::try_write`], and [`Error::Corrupt`](crate::Error::Corrupt) as for [`read`](Self::read).
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let limit = locker.rwlock("rwlock-try-write", 3u32)?;
    /// let _reading = limit.read()?;
    /// assert!(limit.try_write()?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_write(&self) -> Result<Option<RwLockWriteGuard<T>>> {
        let held = self.writing.try_lock()?;
        Ok(held.map(|held| ValueGuard::new(held, &self.writing)))
    }

    /// Tries to take the lock to write for as long as `timeout`, as [`Locker::try_write_for`] does.
    ///
    /// Returns `None` when readers or other writers held the lock until then.
    ///
    /// # Errors
    ///
    /// The errors of [`Locker::try_write_for`], and [`Error::Corrupt`](crate::Error::Corrupt) as for
    /// [`read`](Self::read).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let limit = locker.rwlock("rwlock-try-write-for", 3u32)?;
    /// let _reading = limit.read()?;
    /// assert!(limit.try_write_for(Duration::from_millis(20))?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_write_for(&self, timeout: Duration) -> Result<Option<RwLockWriteGuard<T>>> {
        let held = self.writing.try_lock_for(timeout)?;
        Ok(held.map(|held| ValueGuard::new(held, &self.writing)))
    }

    /// Tries to take the lock to write until a point in time, as [`try_write_for`](Self::try_write_for) does for a
    /// time.
    ///
    /// # Errors
    ///
    /// The errors of [`try_write_for`](Self::try_write_for).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let limit = locker.rwlock("rwlock-try-write-until", 3u32)?;
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// assert!(limit.try_write_until(deadline)?.is_some());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_write_until(&self, deadline: Instant) -> Result<Option<RwLockWriteGuard<T>>> {
        let held = self.writing.try_lock_until(deadline)?;
        Ok(held.map(|held| ValueGuard::new(held, &self.writing)))
    }

    /// Changes the value by a closure, with the lock held to write, and stores it: two round trips.
    ///
    /// Blocks until the lock is free. Returns what `change` returned, once the value is stored, as
    /// [`Mutex::update`](crate::Mutex::update) does.
    ///
    /// # Errors
    ///
    /// The errors of [`write`](Self::write): `change` wasn't called. After that, those of
    /// [`RwLockWriteGuard::unlock`](ValueGuard::unlock), which [`Mutex::update`](crate::Mutex::update) explains.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let numbers = locker.rwlock("rwlock-update", vec![1])?;
    /// numbers.update(|numbers| numbers.push(2))?;
    /// assert_eq!(*numbers.read()?, [1, 2]);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<R> {
        ValueGuard::update(self.write()?, change)
    }

    /// Changes the value by a closure that can fail, with the lock held to write, as
    /// [`Mutex::try_update`](crate::Mutex::try_update) does.
    ///
    /// # Errors
    ///
    /// The error of `change`: nothing is stored then. And the errors of [`update`](Self::update).
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let limit = locker.rwlock("rwlock-try-update", String::from("3"))?;
    /// let next = limit.try_update(|limit| {
    ///     let next = limit.parse::<u32>()? + 1;
    ///     *limit = next.to_string();
    ///     Ok::<_, Box<dyn std::error::Error>>(next)
    /// })?;
    /// assert_eq!(next, 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_update<R, E>(&self, change: impl FnOnce(&mut T) -> Result<R, E>) -> Result<R, E>
    where
        E: From<Error>,
    {
        ValueGuard::try_update(self.write()?, change)
    }

    /// Stores another value, with the lock held to write: two round trips.
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
    /// let limit = locker.rwlock("rwlock-set", 3u32)?;
    /// limit.set(4)?;
    /// assert_eq!(limit.peek()?, 4);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn set(&self, value: T) -> Result<()> {
        self.update(|stored| *stored = value)
    }

    /// Reads the value without locking, as [`Mutex::peek`](crate::Mutex::peek) does: one round trip.
    ///
    /// Returns what was stored last, or `init`. A writer may be about to store another value.
    ///
    /// # Errors
    ///
    /// The errors of [`Mutex::peek`](crate::Mutex::peek).
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let limit = locker.rwlock("rwlock-peek", 3u32)?;
    /// let _writing = limit.write()?;
    /// assert_eq!(limit.peek()?, 3);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn peek(&self) -> Result<T> {
        self.reading.get()
    }

    /// Deletes the stored value without locking, as [`Mutex::remove`](crate::Mutex::remove) does.
    ///
    /// The value is `init` again, until a writer stores another.
    ///
    /// # Errors
    ///
    /// The errors of [`Mutex::remove`](crate::Mutex::remove).
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let limit = locker.rwlock("rwlock-remove", 3u32)?;
    /// limit.set(4)?;
    /// limit.remove()?;
    /// assert_eq!(limit.peek()?, 3);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn remove(&self) -> Result<()> {
        self.reading.remove()
    }
}

// The value isn't in it, and there is nothing half done that a panic could leave behind.
impl<T> UnwindSafe for RwLock<T> {}
impl<T> RefUnwindSafe for RwLock<T> {}

/// Another handle of the same lock and value.
impl<T> Clone for RwLock<T> {
    fn clone(&self) -> Self {
        RwLock {
            reading: self.reading.clone(),
            writing: self.writing.clone(),
        }
    }
}

impl<T> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RwLock").field(&self.reading).finish()
    }
}

/// An [`RwLock`] that is held to read, and its value.
///
/// The guard dereferences to the value as it was when the lock was taken; while the guard [is held](LockGuard::is_held)
/// no writer changes it. Dropping the guard releases the lock, and logs an error.
///
/// The guard has no methods, so that it hides none of the value's. Its functions take the guard as an argument:
/// `RwLockReadGuard::unlock(guard)`.
///
/// # Examples
///
/// ```
/// use crosslock::RwLockReadGuard;
///
/// # let locker = crosslock::Locker::open("memory:")?;
/// let limits = locker.rwlock("read-guard", vec![1, 2])?;
/// let guard = limits.read()?;
/// assert_eq!(guard.len(), 2); // a method of `Vec`
/// RwLockReadGuard::unlock(guard)?;
/// # Ok::<(), crosslock::Error>(())
/// ```
#[must_use = "a guard that is dropped at once protects nothing: bind it, `let _guard = ...`"]
pub struct RwLockReadGuard<T> {
    lease: LockGuard,
    value: T,
}

impl<T> RwLockReadGuard<T> {
    /// Returns the guard of the lock alone, with this reader's lease.
    ///
    /// All methods of [`LockGuard`] that take `&self` are there, as by [`ValueGuard::lease`].
    ///
    /// # Examples
    ///
    /// ```
    /// use crosslock::RwLockReadGuard;
    ///
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let limit = locker.rwlock("read-guard-lease", 3u32)?;
    /// let guard = limit.read()?;
    /// assert!(RwLockReadGuard::lease(&guard).is_held());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn lease(this: &Self) -> &LockGuard {
        &this.lease
    }

    /// Releases the lock: one round trip.
    ///
    /// Returns what a drop would only log.
    ///
    /// # Errors
    ///
    /// The errors of [`LockGuard::unlock`].
    ///
    /// # Examples
    ///
    /// ```
    /// use crosslock::RwLockReadGuard;
    ///
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let limit = locker.rwlock("read-guard-unlock", 3u32)?;
    /// let guard = limit.read()?;
    /// RwLockReadGuard::unlock(guard)?;
    /// assert!(limit.try_write()?.is_some());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn unlock(this: Self) -> Result<()> {
        this.lease.unlock()
    }

    fn new((lease, value): WithValue<T>) -> Self {
        RwLockReadGuard { lease, value }
    }
}

impl<T> Deref for RwLockReadGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.lease.used_here();
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for RwLockReadGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLockReadGuard")
            .field("value", &self.value)
            .field("lease", &self.lease)
            .finish()
    }
}

/// An [`RwLock`] that is held to write, and its value.
///
/// [`ValueGuard`] describes the guard and its drop. Its functions are [`lease`](ValueGuard::lease),
/// [`unlock`](ValueGuard::unlock), [`discard`](ValueGuard::discard) and [`downgrade`](ValueGuard::downgrade).
///
/// # Examples
///
/// ```
/// use crosslock::RwLockWriteGuard;
///
/// # let locker = crosslock::Locker::open("memory:")?;
/// let limit = locker.rwlock("write-guard", 3u32)?;
/// let mut guard = limit.write()?;
/// *guard = 4;
/// RwLockWriteGuard::unlock(guard)?;
/// assert_eq!(*limit.read()?, 4);
/// # Ok::<(), crosslock::Error>(())
/// ```
pub type RwLockWriteGuard<T> = ValueGuard<T, RwLock<T>>;

impl<T: Serialize + DeserializeOwned> ValueGuard<T, RwLock<T>> {
    /// Stores the value if it was borrowed mutably, and turns the writer into a reader: one round trip.
    ///
    /// Returns the guard of the reader, which has a fencing token of its own. No other writer can come in between.
    /// Readers that wait are let in.
    ///
    /// # Errors
    ///
    /// The errors of [`unlock`](Self::unlock): the lock is then released. With `Error::Lost` the value may be stored,
    /// too: the reader may have lost the lock before the answer came. Lock again and read it.
    ///
    /// # Examples
    ///
    /// ```
    /// use crosslock::RwLockWriteGuard;
    ///
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let limit = locker.rwlock("write-guard-downgrade", 3u32)?;
    /// let mut writing = limit.write()?;
    /// *writing = 4;
    /// let reading = RwLockWriteGuard::downgrade(writing)?;
    /// assert_eq!((*reading, limit.peek()?), (4, 4));
    /// assert!(limit.try_read()?.is_some() && limit.try_write()?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn downgrade(this: Self) -> Result<RwLockReadGuard<T>> {
        ValueGuard::downgrade_storing(this).map(RwLockReadGuard::new)
    }
}
