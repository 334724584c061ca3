//! Several locks at once.

use std::time::{Duration, Instant};

use crate::base::claim::{Claim, Mode};
use crate::base::error::{Error, Result};
use crate::base::name::Key;
use crate::guard::LockGuard;
use crate::locker::Locker;

/// The most names of one call.
const MOST: usize = 100;

impl Locker {
    /// Takes several locks, all or none, blocking until all are free.
    ///
    /// `names` are 1 to 100 texts; one that is given twice counts once. The order of the names doesn't matter: two that want overlapping sets never deadlock. One guard
    /// holds them all, with one fencing token, which is larger than all earlier ones of each name; one command
    /// renews them, and one releases them. When one of them is lost, all are. [`LockGuard::name`] shows the names.
    ///
    /// On Redis: one round trip when all are free. When one is taken the process enters all of their lines at once,
    /// and has each lock when its turn comes: those that come first wait for the others, and nobody starves. On
    /// `file:` they are locked one after the other, in the order of their names. Threads that want several names
    /// ask each for themselves; leases of several locks are not handed over.
    ///
    /// # Errors
    ///
    /// Those of [`lock`](Self::lock); [`Error::InvalidOption`] for no names, and for more than 100.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let lock = crosslock::Locker::open("memory:")?;
    /// let _both = lock.lock_all(&["all-example-from", "all-example-to"])?;
    /// assert!(lock.try_lock("all-example-to")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn lock_all(&self, names: &[impl AsRef<str>]) -> Result<LockGuard> {
        self.core().lock(&self.several(names)?)
    }

    /// Tries to take several locks once, without waiting; gives `None` when one is taken.
    ///
    /// # Errors
    ///
    /// Those of [`try_lock`](Self::try_lock) and [`lock_all`](Self::lock_all) but `Busy`.
    pub fn try_lock_all(&self, names: &[impl AsRef<str>]) -> Result<Option<LockGuard>> {
        self.core().try_lock(&self.several(names)?)
    }

    /// Tries to take several locks for as long as `timeout`; gives `None` when not all were free.
    ///
    /// # Errors
    ///
    /// Those of [`try_lock_for`](Self::try_lock_for) and [`lock_all`](Self::lock_all) but `Busy`.
    pub fn try_lock_all_for(
        &self,
        names: &[impl AsRef<str>],
        timeout: Duration,
    ) -> Result<Option<LockGuard>> {
        self.core().try_lock_for(&self.several(names)?, timeout)
    }

    /// Does the same as [`try_lock_all_for`](Self::try_lock_all_for), until a point in time.
    ///
    /// # Errors
    ///
    /// Those of [`try_lock_all_for`](Self::try_lock_all_for).
    pub fn try_lock_all_until(
        &self,
        names: &[impl AsRef<str>],
        deadline: Instant,
    ) -> Result<Option<LockGuard>> {
        self.core().try_lock_until(&self.several(names)?, deadline)
    }

    fn several(&self, names: &[impl AsRef<str>]) -> Result<Claim> {
        let number = names.len();
        if !(1..=MOST).contains(&number) {
            return Err(Error::InvalidOption {
                option: "names",
                reason: format!("{number} names were given, 1 to {MOST} can be locked at once"),
            });
        }
        self.core().check_several_names()?;
        let names = names.iter().map(AsRef::as_ref);
        let claims = names.map(|name| self.claim(name, Mode::Exclusive));
        let mut claims: Vec<_> = claims.collect::<Result<_>>()?;
        claims.sort_by(|one, other| one.key.cmp(&other.key));
        claims.dedup_by(|one, other| one.key == other.key);
        let keys: Vec<_> = claims.iter().map(|claim| claim.key.clone()).collect();
        let first = claims.swap_remove(0);
        if keys.len() == 1 {
            return Ok(first);
        }
        Ok(Claim {
            key: Key::of_all(&keys),
            names: keys.into(),
            ..first
        })
    }
}
