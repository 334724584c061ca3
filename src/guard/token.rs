//! What a guard tells of its acquisition: its fencing token, and whether the holder before had released.
//!
//! A lease that threads take from each other uses no more tokens than are asked for: a guard that doesn't ask leaves its own
//! to the next. So guards that ask see them increase strictly.

use std::sync::atomic::Ordering;

use super::LockGuard;

impl LockGuard {
    /// Returns a number that is larger than that of every earlier holder of this name.
    ///
    /// Send it along with each write to what the lock protects. If the storage refuses numbers smaller than the
    /// largest that it has seen, a holder that lost its lock without noticing can't write any more.
    ///
    /// Have the storage check tokens of exclusive holders only. Readers hold at the same time, and so do holders of permits,
    /// each with a token of its own: such a storage would refuse all of them but the newest, although they are valid.
    ///
    /// Where threads of a process take the lock from each other, faster than once a microsecond, a token may be told a
    /// microsecond late: it doesn't run ahead of the server's clock.
    ///
    /// Tokens increase even after the server has lost its data, as long as its clock doesn't step back. They fit
    /// an `i64` and a `BIGINT` of a database. They are below 2^53, and fit a JSON number, until etcd has had 2^41 revisions, or
    /// ZooKeeper has elected its leader 512 times.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let locker = crosslock::Locker::open("memory:")?;
    /// let first = locker.lock("token-example")?.fencing_token();
    /// let second = locker.lock("token-example")?.fencing_token();
    /// assert!(first < second);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fencing_token(&self) -> u64 {
        let number = self.token.number;
        self.used_here();
        if self.is_token_used.load(Ordering::Relaxed) {
            return number;
        }
        if self.is_inherited() {
            // The parent doesn't learn that it was told here, and may give it to the next holder. This one is smaller.
            return number - 1;
        }
        self.core.wait_until(self.token_from);
        self.is_token_used.store(true, Ordering::Relaxed);
        number
    }

    /// Says whether the previous holder never released the lock: it crashed, was paused past its ttl, or panicked.
    ///
    /// What the lock protects may be half done then (compare `EOWNERDEAD` of robust mutexes). Only the next holder
    /// sees it.
    ///
    /// - **A panic** counts as it poisons a `std::sync::Mutex`: if it began while the guard was held, and dropped the
    ///   guard. A panic that is caught before, or that began before, doesn't count. Neither does one of a holder that
    ///   shares.
    /// - **A process that ends** by a signal or by `std::process::exit` drops no guards, and so abandons its locks.
    /// - **Not reported** after a server has lost its data.
    /// - **False positives**: a paused waiter was granted the lock and began nothing; a stalled server granted the
    ///   lock to a call that had timed out; the answer to this call's own first attempt was lost for longer than the
    ///   ttl; a process was killed within the call that took the lock, which on `file:` may be a
    ///   [`lock_all`](crate::Locker::lock_all) that had taken only some of its names.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let other = locker.clone();
    /// let panicked = std::thread::spawn(move || {
    ///     let _guard = other.lock("abandoned-example");
    ///     panic!("on purpose");
    /// });
    /// assert!(panicked.join().is_err());
    /// assert!(locker.lock("abandoned-example")?.abandoned());
    /// assert!(!locker.lock("abandoned-example")?.abandoned());
    /// # Ok(())
    /// # }
    /// ```
    pub fn abandoned(&self) -> bool {
        self.token.abandoned
    }
}
