//! Locks that many may hold to read, or one to write.

use std::time::{Duration, Instant};

use crate::base::claim::{Claim, Mode};
use crate::base::error::Result;
use crate::guard::LockGuard;
use crate::locker::Locker;

#[cfg(feature = "value")]
mod valued;

#[cfg(feature = "value")]
pub use valued::{RwLock, RwLockReadGuard, RwLockWriteGuard};

impl Locker {
    /// Takes a lock to read, together with others that do, blocking while it is held to write.
    ///
    /// Each reader has a lease of its own, with its own ttl and fencing token: one that crashed is in nobody's way when
    /// its lease is over, whatever the others do. Who goes first is set by [`prefer`](crate::LockerBuilder::prefer):
    /// by default readers wait behind a writer that waits, and are let in together when it has ended. Each thread
    /// that reads asks for itself; leases to read are not handed over.
    ///
    /// To read costs what [`lock`](Self::lock) does: one round trip when no writer is there.
    ///
    /// # Errors
    ///
    /// Those of [`lock`](Self::lock), and [`Error::Unsupported`](crate::Error::Unsupported) on `file:`.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let lock = crosslock::Locker::open("memory:")?;
    /// let _one = lock.read("read-example")?;
    /// let _other = lock.read("read-example")?;
    /// assert!(lock.try_write("read-example")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn read(&self, name: &str) -> Result<LockGuard> {
        self.core().lock(&self.claim(name, Mode::Shared)?)
    }

    /// Tries to take a lock to read once, without waiting; gives `None` when it is held to write, or a writer waits.
    ///
    /// # Errors
    ///
    /// Those of [`try_lock`](Self::try_lock), and `Unsupported`.
    pub fn try_read(&self, name: &str) -> Result<Option<LockGuard>> {
        self.core().try_lock(&self.claim(name, Mode::Shared)?)
    }

    /// Tries to take a lock to read for as long as `timeout`.
    ///
    /// # Errors
    ///
    /// Those of [`try_lock_for`](Self::try_lock_for), and `Unsupported`.
    pub fn try_read_for(&self, name: &str, timeout: Duration) -> Result<Option<LockGuard>> {
        let claim = self.claim(name, Mode::Shared)?;
        self.core().try_lock_for(&claim, timeout)
    }

    /// Does the same as [`try_read_for`](Self::try_read_for), until a point in time.
    ///
    /// # Errors
    ///
    /// Those of [`try_read_for`](Self::try_read_for).
    pub fn try_read_until(&self, name: &str, deadline: Instant) -> Result<Option<LockGuard>> {
        let claim = self.claim(name, Mode::Shared)?;
        self.core().try_lock_until(&claim, deadline)
    }

    /// Takes a lock to write: alone, blocking while others read or write.
    ///
    /// It is the same as [`lock`](Self::lock), where there are read-write locks: each excludes the other, and readers. A writer that
    /// waits keeps new readers out, unless [`prefer`](crate::LockerBuilder::prefer) says otherwise.
    ///
    /// # Errors
    ///
    /// Those of [`lock`](Self::lock), and [`Error::Unsupported`](crate::Error::Unsupported) on `file:`.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let lock = crosslock::Locker::open("memory:")?;
    /// let _guard = lock.write("write-example")?;
    /// assert!(lock.try_read("write-example")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn write(&self, name: &str) -> Result<LockGuard> {
        self.core().lock(&self.writing(name)?)
    }

    /// Tries to take a lock to write once, without waiting; gives `None` when it is taken.
    ///
    /// # Errors
    ///
    /// Those of [`try_lock`](Self::try_lock), and `Unsupported`.
    pub fn try_write(&self, name: &str) -> Result<Option<LockGuard>> {
        self.core().try_lock(&self.writing(name)?)
    }

    /// Tries to take a lock to write for as long as `timeout`.
    ///
    /// # Errors
    ///
    /// Those of [`try_lock_for`](Self::try_lock_for), and `Unsupported`.
    pub fn try_write_for(&self, name: &str, timeout: Duration) -> Result<Option<LockGuard>> {
        self.core().try_lock_for(&self.writing(name)?, timeout)
    }

    /// Does the same as [`try_write_for`](Self::try_write_for), until a point in time.
    ///
    /// # Errors
    ///
    /// Those of [`try_write_for`](Self::try_write_for).
    pub fn try_write_until(&self, name: &str, deadline: Instant) -> Result<Option<LockGuard>> {
        self.core().try_lock_until(&self.writing(name)?, deadline)
    }

    /// Where nobody can read there is nothing to write beside.
    fn writing(&self, name: &str) -> Result<Claim> {
        let claim = self.claim(name, Mode::Shared)?;
        Ok(Claim {
            mode: Mode::Exclusive,
            ..claim
        })
    }
}
