//! Several locks at once.

use std::time::{Duration, Instant};

use crate::base::{Claim, Error, Key, Mode, Result};
use crate::{guard::LockGuard, locker::Locker};

const MOST_NAMES: usize = 100;

impl Locker {
    /// Takes several locks, all or none, blocking until all are free.
    ///
    /// `names` are 1 to 100 texts (1 to 40 on etcd), in any order; a name that is given twice is locked once. Returns
    /// one guard for all of them, with one lease. [`LockGuard::name`] shows the names.
    ///
    /// # Guarantees
    ///
    /// While the guard [is held](LockGuard::is_held), no other guard of any of the names is valid. Its fencing token
    /// is larger than all earlier ones of each name. Calls that want overlapping sets never deadlock. On Redis the
    /// call waits in the queues of all names at once, and holds each name from its turn on. So other calls can't
    /// overtake it without end.
    ///
    /// # What breaks them
    ///
    /// A lease can end early, see the [crate documentation](crate#what-a-lease-promises). When one of the locks is
    /// lost, all are.
    ///
    /// # Round trips
    ///
    /// On Redis one to lock when all are free, one to renew and one to unlock, for any number of names. Each thread
    /// asks for itself, and a lease of several locks isn't handed over. Over several slots of a cluster one for each
    /// slot and one more to lock: the call takes the slots one after the other, in an order that all processes share.
    /// On `file:` all files are changed at once.
    ///
    /// # Differences from `std`
    ///
    /// `std::sync` has nothing like it: with several `Mutex`es, the caller has to lock them in one order everywhere.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidOption`] when the argument `names` has no names, or more than 100.
    /// - [`Error::Unsupported`] when it has more than 40 on etcd, which takes 128 operations in a transaction.
    /// - The errors of [`lock`](Self::lock), [`Error::InvalidName`] for any of the names among them.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let _both = locker.lock_all(&["all-from", "all-to"])?;
    /// assert!(locker.try_lock("all-to")?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn lock_all(&self, names: &[impl AsRef<str>]) -> Result<LockGuard> {
        self.calls().lock(&self.several(names)?)
    }

    /// Tries to take several locks once, all or none, without waiting.
    ///
    /// Returns `None` when any of them is taken.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] as for [`lock_all`](Self::lock_all), and the errors of [`try_lock`](Self::try_lock).
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let _one = locker.lock("try-all-to")?;
    /// assert!(locker.try_lock_all(&["try-all-from", "try-all-to"])?.is_none());
    /// assert!(locker.try_lock("try-all-from")?.is_some());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_lock_all(&self, names: &[impl AsRef<str>]) -> Result<Option<LockGuard>> {
        self.calls().try_lock(&self.several(names)?)
    }

    /// Tries to take several locks, all or none, for as long as `timeout`.
    ///
    /// Returns `None`, and holds none, when it didn't get all of them until then.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] as for [`lock_all`](Self::lock_all), and the errors of
    /// [`try_lock_for`](Self::try_lock_for).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let _one = locker.lock("all-for-to")?;
    /// let both = locker.try_lock_all_for(&["all-for-from", "all-for-to"], Duration::from_millis(20))?;
    /// assert!(both.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_lock_all_for(
        &self,
        names: &[impl AsRef<str>],
        timeout: Duration,
    ) -> Result<Option<LockGuard>> {
        self.calls().try_lock_for(&self.several(names)?, timeout)
    }

    /// Tries to take several locks until a point in time, as [`try_lock_all_for`](Self::try_lock_all_for) does for a
    /// time.
    ///
    /// # Errors
    ///
    /// The errors of [`try_lock_all_for`](Self::try_lock_all_for).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// assert!(locker.try_lock_all_until(&["all-until-from", "all-until-to"], deadline)?.is_some());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_lock_all_until(
        &self,
        names: &[impl AsRef<str>],
        deadline: Instant,
    ) -> Result<Option<LockGuard>> {
        self.calls().try_lock_until(&self.several(names)?, deadline)
    }

    fn several(&self, names: &[impl AsRef<str>]) -> Result<Claim> {
        let number = names.len();
        if !(1..=MOST_NAMES).contains(&number) {
            return Err(Error::InvalidOption {
                option: "names",
                reason: format!("{number} names were given: use 1 to {MOST_NAMES}"),
            });
        }
        self.core().check_several_names(names.len())?;
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
