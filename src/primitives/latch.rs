//! A count that opens a way when it has come down to zero.

use std::{sync::Arc, time::Duration};

use super::value::{ValueGuard, ValueLock};
use super::watched::Watched;
use crate::base::{Deadline, Mode, Result};
use crate::locker::Locker;

impl Locker {
    /// Makes a latch that opens when it has been counted down `n` times. Does no I/O.
    ///
    /// With `n` = 0 it is open. All latches with the same name are one latch: pass the same `n` everywhere. `n` is the
    /// count until the first call of [`count_down`](Latch::count_down) stores another.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`](crate::Error::InvalidName) when `name` isn't 1 to 512 bytes long.
    /// - [`Error::Unsupported`](crate::Error::Unsupported) on a quorum of Redis servers, which has no values.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let ready = locker.latch("latch", 2)?;
    /// ready.count_down()?;
    /// assert_eq!(ready.remaining()?, 1);
    /// ready.count_down()?;
    /// ready.wait()?; // returns at once
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn latch(&self, name: &str, n: u32) -> Result<Latch> {
        Ok(Latch {
            count: Arc::new(ValueLock::new(self, name, Mode::Exclusive, &n)?),
            n,
        })
    }
}

/// Lets threads of several processes wait until a count has reached zero: "all workers are up", "all parts are done".
///
/// [`Locker::latch`] makes one. Making and cloning it costs no I/O.
///
/// # Guarantees
///
/// Each [`count_down`](Self::count_down) that returns `Ok` counts once. Once open, it stays open until
/// [`reset`](Self::reset), also for those that come later. The count is stored where a [`Mutex`](crate::Mutex) of the
/// name has its value.
///
/// # What breaks them
///
/// - A process that dies before it has counted down leaves the latch closed. Use a [`Barrier`](crate::Barrier), which
///   notices dead threads, or a [`DelayQueue`](https://docs.rs/crosslock), which passes their tasks to others.
/// - After a `count_down` that returned [`Unavailable`](crate::Error::Unavailable), it is unknown whether it counted.
/// - A server that loses its data starts at `n` again.
///
/// # Round trips
///
/// `count_down` and `reset` take two, `remaining` one. A call that waits takes three to start. It then receives one
/// message for each change, and reads the count.
///
/// # Differences from `java.util.concurrent.CountDownLatch`
///
/// `std` has no latch. Every call returns a [`Result`], `count_down` returns the remaining count, and there is a
/// `reset`.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # let locker = crosslock::Locker::open("memory:")?;
/// let parts = locker.latch("parts", 1)?;
/// let theirs = parts.clone(); // in another process
/// let other = std::thread::spawn(move || theirs.count_down());
/// assert!(parts.wait_for(Duration::from_secs(10))?);
/// # other.join().unwrap()?;
/// # Ok::<(), crosslock::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Latch {
    count: Arc<ValueLock<u32>>,
    n: u32,
}

impl Latch {
    /// Counts down by one and returns the remaining count. A count of zero stays zero.
    ///
    /// # Errors
    ///
    /// The errors of [`Mutex::update`](crate::Mutex::update).
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let latch = locker.latch("latch-count-down", 1)?;
    /// assert_eq!([latch.count_down()?, latch.count_down()?], [0, 0]);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn count_down(&self) -> Result<u32> {
        self.update(|count| count.saturating_sub(1))
    }

    /// Blocks until the latch is open.
    ///
    /// # Errors
    ///
    /// - [`Error::Corrupt`](crate::Error::Corrupt) when the stored value isn't a count.
    /// - [`Error::Unavailable`](crate::Error::Unavailable) when the engine can't be reached for
    ///   [`outage_timeout`](crate::LockerBuilder::outage_timeout); [`Error::Denied`](crate::Error::Denied) and
    ///   [`Error::Engine`](crate::Error::Engine) when it fails.
    /// - [`Error::Cancelled`](crate::Error::Cancelled).
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// locker.latch("latch-wait", 0)?.wait()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn wait(&self) -> Result<()> {
        self.wait_until(&Deadline::NEVER).map(drop)
    }

    /// Blocks until the latch is open, for at most `timeout`. Returns whether it is open.
    ///
    /// # Errors
    ///
    /// The errors of [`wait`](Self::wait).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let latch = locker.latch("latch-wait-for", 1)?;
    /// assert!(!latch.wait_for(Duration::from_millis(20))?);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn wait_for(&self, timeout: Duration) -> Result<bool> {
        let clock = &self.count.locker.core().clock;
        self.wait_until(&Deadline::after_by(&**clock, timeout))
    }

    /// Returns the remaining count: zero when the latch is open.
    ///
    /// # Errors
    ///
    /// The errors of [`Mutex::peek`](crate::Mutex::peek).
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// assert_eq!(locker.latch("latch-remaining", 3)?.remaining()?, 3);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn remaining(&self) -> Result<u32> {
        self.count.get()
    }

    /// Closes the latch again, with a count of `n`.
    ///
    /// Waiting threads go on waiting. So does a thread that was woken when the latch opened but hasn't read the count
    /// yet.
    ///
    /// # Errors
    ///
    /// The errors of [`Mutex::update`](crate::Mutex::update).
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let latch = locker.latch("latch-reset", 1)?;
    /// latch.count_down()?;
    /// latch.reset()?;
    /// assert_eq!(latch.remaining()?, 1);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn reset(&self) -> Result<()> {
        self.update(|_| self.n).map(drop)
    }

    fn update(&self, change: impl FnOnce(u32) -> u32) -> Result<u32> {
        let guard = ValueGuard::<_, Latch>::new(self.count.lock()?, &self.count);
        ValueGuard::update(guard, |count| {
            *count = change(*count);
            *count
        })
    }

    fn wait_until(&self, until: &Deadline) -> Result<bool> {
        let mut watched = Watched::new(self.count.locker.calls(), &self.count.claim.key)?;
        let is_open = watched.find(until, |stored| {
            let count = self.count.parse(stored.as_deref())?;
            Ok((count == 0).then_some(()))
        });
        Ok(is_open?.is_some())
    }
}
