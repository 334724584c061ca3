//! The guards of a read-write lock with a value.

use std::fmt;
use std::ops::Deref;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::RwLock;
use crate::base::error::Result;
use crate::guard::LockGuard;
use crate::primitives::value::{ValueGuard, WithValue};

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
    /// Those of [`LockGuard::unlock`].
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

    pub(super) fn new((lease, value): WithValue<T>) -> Self {
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
/// [`ValueGuard`] says what the guard is and what its drop does. Its functions are [`lease`](ValueGuard::lease),
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
    /// Those of [`unlock`](Self::unlock): the lock is then released.
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
