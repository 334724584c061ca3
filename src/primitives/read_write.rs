//! Locks that many may hold to read, or one to write: by name alone here, with a value in `rwlock`.

use std::time::{Duration, Instant};

use crate::base::{Claim, Mode, Result};
use crate::{guard::LockGuard, locker::Locker};

impl Locker {
    /// Takes a lock to read, together with other readers, blocking while a writer holds it.
    ///
    /// Returns the guard of one reader. Each reader has a lease of its own, with its own ttl and fencing token, so a
    /// storage can't use [the tokens](LockGuard::fencing_token) of readers to refuse late ones. By default a reader
    /// waits behind a waiting writer, and when a writer releases, all waiting readers get the lock together.
    /// [`prefer`](crate::LockerBuilder::prefer) changes that. Each thread that reads asks the engine for itself.
    ///
    /// # Guarantees
    ///
    /// While the guard [is held](LockGuard::is_held), no guard of the name is valid except those of
    /// readers.
    ///
    /// # What breaks them
    ///
    /// A lease can end early, see the [crate documentation](crate#what-a-lease-promises). A reader that has crashed
    /// keeps writers out until its own lease ends, and other readers don't prolong that.
    ///
    /// # Round trips
    ///
    /// One to lock when no writer holds the lock or waits for it, and one to unlock.
    ///
    /// # Differences from `std::sync::RwLock`
    ///
    /// - The lock protects a name. `RwLock` has a value.
    /// - Readers and writers take turns, unless [`prefer`](crate::LockerBuilder::prefer) changes their order. On etcd
    ///   and ZooKeeper they are served first come, first served.
    /// - [`downgrade`](LockGuard::downgrade) turns a writer into a reader; nothing turns a reader into a writer.
    /// - A thread that reads a name twice may wait for itself, as in `std`: between the two calls a writer may have
    ///   come.
    ///
    /// # Errors
    ///
    /// - The errors of [`lock`](Self::lock).
    /// - [`Error::Unsupported`](crate::Error::Unsupported) with a [`prefer`](crate::LockerBuilder::prefer) that the
    ///   engine hasn't, and on a quorum of Redis servers.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let _one = locker.read("read")?;
    /// let _other = locker.read("read")?;
    /// assert!(locker.try_write("read")?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn read(&self, name: &str) -> Result<LockGuard> {
        self.calls().lock(&self.reading(name)?)
    }

    /// Tries to take a lock to read once, without waiting.
    ///
    /// Returns `None` when a writer holds the lock. Unless readers are preferred, also when a writer waits for it.
    ///
    /// # Errors
    ///
    /// The errors of [`try_lock`](Self::try_lock), and [`Error::Unsupported`](crate::Error::Unsupported) as for
    /// [`read`](Self::read).
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let _writing = locker.write("try-read")?;
    /// assert!(locker.try_read("try-read")?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_read(&self, name: &str) -> Result<Option<LockGuard>> {
        self.calls().try_lock(&self.reading(name)?)
    }

    /// Tries to take a lock to read for as long as `timeout`.
    ///
    /// Returns `None` when writers held the lock until then.
    ///
    /// # Errors
    ///
    /// The errors of [`try_lock_for`](Self::try_lock_for), and [`Error::Unsupported`](crate::Error::Unsupported) as for
    /// [`read`](Self::read).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let _writing = locker.write("try-read-for")?;
    /// assert!(locker.try_read_for("try-read-for", Duration::from_millis(20))?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_read_for(&self, name: &str, timeout: Duration) -> Result<Option<LockGuard>> {
        self.calls().try_lock_for(&self.reading(name)?, timeout)
    }

    /// Tries to take a lock to read until a point in time, as [`try_read_for`](Self::try_read_for) does for a time.
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
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// assert!(locker.try_read_until("try-read-until", deadline)?.is_some());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_read_until(&self, name: &str, deadline: Instant) -> Result<Option<LockGuard>> {
        self.calls().try_lock_until(&self.reading(name)?, deadline)
    }

    /// Takes a lock to write, alone, blocking while readers or another writer hold it.
    ///
    /// Returns the guard of the writer. Where there are read-write locks this is the same as [`lock`](Self::lock): each
    /// excludes the other, and readers. Guarantees, round trips and differences from `std` are those of
    /// [`read`](Self::read). A waiting writer keeps new readers out, unless you set
    /// [`prefer`](crate::LockerBuilder::prefer).
    ///
    /// # Errors
    ///
    /// - The errors of [`lock`](Self::lock).
    /// - [`Error::Unsupported`](crate::Error::Unsupported) with a [`prefer`](crate::LockerBuilder::prefer) that the
    ///   engine hasn't, and on a quorum of Redis servers.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let _guard = locker.write("write")?;
    /// assert!(locker.try_read("write")?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn write(&self, name: &str) -> Result<LockGuard> {
        self.calls().lock(&self.writing(name)?)
    }

    /// Tries to take a lock to write once, without waiting.
    ///
    /// Returns `None` when readers or another writer hold the lock, or others wait for it.
    ///
    /// # Errors
    ///
    /// The errors of [`try_lock`](Self::try_lock), and [`Error::Unsupported`](crate::Error::Unsupported) as for
    /// [`read`](Self::read).
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let _reading = locker.read("try-write")?;
    /// assert!(locker.try_write("try-write")?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_write(&self, name: &str) -> Result<Option<LockGuard>> {
        self.calls().try_lock(&self.writing(name)?)
    }

    /// Tries to take a lock to write for as long as `timeout`.
    ///
    /// Returns `None` when readers or other writers held the lock until then.
    ///
    /// # Errors
    ///
    /// The errors of [`try_lock_for`](Self::try_lock_for), and [`Error::Unsupported`](crate::Error::Unsupported) as for
    /// [`read`](Self::read).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let _reading = locker.read("try-write-for")?;
    /// assert!(locker.try_write_for("try-write-for", Duration::from_millis(20))?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_write_for(&self, name: &str, timeout: Duration) -> Result<Option<LockGuard>> {
        self.calls().try_lock_for(&self.writing(name)?, timeout)
    }

    /// Tries to take a lock to write until a point in time, as [`try_write_for`](Self::try_write_for) does for a time.
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
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// assert!(locker.try_write_until("try-write-until", deadline)?.is_some());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_write_until(&self, name: &str, deadline: Instant) -> Result<Option<LockGuard>> {
        self.calls().try_lock_until(&self.writing(name)?, deadline)
    }

    fn reading(&self, name: &str) -> Result<Claim> {
        self.claim(name, Mode::Shared)
    }

    /// Fails where nobody could read, although the engine could give the writer a lock.
    fn writing(&self, name: &str) -> Result<Claim> {
        let claim = self.reading(name)?;
        Ok(Claim {
            mode: Mode::Exclusive,
            ..claim
        })
    }
}
