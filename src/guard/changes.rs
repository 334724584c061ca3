//! What becomes of the lease of a guard while it is held: its tokens, a downgrade, and a ticket for another process.

use std::sync::{Arc, atomic::Ordering};

use super::{LockGuard, release::UNSTORED};
use crate::base::{
    BootInstant, Claim, Deadline, Ending, Error, LeaseTicket, LostReason, Owner, Result,
    limits::RELEASE,
};
use crate::engine::{Change, Done, Outcome};
use crate::lease::{Lease, deferred_release::DeferredRelease};
use crate::queue::Turn;

impl LockGuard {
    /// Ends the guard and turns its lease into a ticket, which another process adopts with
    /// [`Locker::adopt`](crate::Locker::adopt).
    ///
    /// The lock isn't released, and this process doesn't renew it any more. The lock stays taken until the ticket is
    /// adopted, or for the rest of the ttl, which is at least half of it if renewals succeeded. Does no I/O, except on
    /// `file:`, where it writes that the lease ends after a ttl, whether or not this process lives until then.
    ///
    /// An [`at_least_for`](Self::at_least_for) isn't passed on.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when the lease isn't valid any more, or when a child of `fork` inherited the guard.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let locker = crosslock::Locker::open("memory:")?;
    /// let guard = locker.lock("into-ticket-example")?;
    /// let token = guard.fencing_token();
    /// let ticket = guard.into_ticket()?;
    /// assert!(locker.try_lock("into-ticket-example")?.is_none());
    /// let guard = locker.adopt(&ticket)?; // in another process
    /// assert!(guard.fencing_token() > token);
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_ticket(mut self) -> Result<LeaseTicket> {
        self.check()?;
        let Some(owner) = self.end_unreleased() else {
            // If nobody has noticed yet, it ran out just now.
            let reason = self.monitor.lost_reason();
            let reason = reason.unwrap_or(LostReason::Expired);
            return Err(Error::lost(self.name(), reason));
        };
        let claim = self.claim.clone();
        Ok(LeaseTicket::new(claim, owner, self.token.last_used()))
    }

    /// The owner that has the lease, which nobody renews from now on; `None` when it is over.
    fn end_unreleased(&mut self) -> Option<Owner> {
        let (lease, turn) = self.monitor.end()?;
        self.note_end(&lease);
        let is_lost = self.monitor.lost_reason().is_some();
        let is_valid = !is_lost && lease.is_valid(self.core.clock.now());
        let owner = lease.owner.clone();
        if is_valid {
            self.give_away(&lease);
        } else {
            self.defer(DeferredRelease::of(lease, self.core.options.ttl));
        }
        self.leave_registry();
        self.tell_released();
        self.return_renewer();
        // The next thread of this process asks for itself.
        drop(turn);
        is_valid.then_some(owner)
    }

    /// What fails leaves a lease that lasts until this process ends.
    fn give_away(&self, lease: &Lease) {
        let deadline = Deadline::after(RELEASE);
        let (engine, request) = (&self.core.engine, self.request(lease));
        let given = engine.change(request, Change::GiveAway, &deadline);
        if let Err(e) = given {
            log::warn!(
                "lock {:?} may stay taken for as long as this process lives: {e}",
                self.name()
            );
        }
    }
}

impl LockGuard {
    /// Turns an exclusive lock, such as that of [`Locker::write`](crate::Locker::write), into a read lock: one round
    /// trip.
    ///
    /// No other holder can come in between. Waiting readers get the lock together with this one. Returns the reader's
    /// guard, which has its own token.
    ///
    /// # Errors
    ///
    /// After an error the lock is released, as after [`unlock`](Self::unlock).
    ///
    /// - [`Error::Lost`] when the lock wasn't this guard's any more.
    /// - [`Error::Unsupported`] for a guard that isn't exclusive or has several names, and where
    ///   [`LockerBuilder::prefer`](crate::LockerBuilder::prefer) has what the engine can't do.
    /// - [`Error::Unavailable`], [`Error::Denied`], [`Error::Conflict`] and [`Error::Engine`] when the engine fails.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let locker = crosslock::Locker::open("memory:")?;
    /// let reading = locker.write("downgrade-example")?.downgrade()?;
    /// assert!(locker.try_write("downgrade-example")?.is_none());
    /// assert!(locker.try_read("downgrade-example")?.is_some());
    /// # drop(reading);
    /// # Ok(())
    /// # }
    /// ```
    pub fn downgrade(mut self) -> Result<LockGuard> {
        self.downgrade_storing(None)
    }

    /// Goes on reading, and stores the value if the lock is still this guard's.
    pub(crate) fn downgrade_storing(&mut self, value: Option<Arc<[u8]>>) -> Result<LockGuard> {
        let core = self.core.clone();
        if !self.claim.is_exclusive() || self.claim.is_multi() {
            let what = "downgrading anything but one exclusive lock".to_owned();
            return Err(Error::Unsupported { what });
        }
        let (reading, capabilities) = (self.claim.shared(), core.engine.capabilities());
        capabilities.check(reading.mode, reading.prefer, core.engine.endpoint())?;
        self.check()?;
        let Some((mut lease, turn)) = self.monitor.end() else {
            return Err(self.lost_error());
        };
        self.note_end(&lease);
        let (last_used, deadline) = (lease.token.last_used(), Deadline::after(RELEASE));
        // Read before sending: the server's lease starts no earlier than this.
        let asked = core.clock.now();
        let request = self.request(&lease);
        let change = Change::Downgrade {
            last_used,
            value: value.as_deref(),
        };
        match core.engine.change(request, change, &deadline) {
            Ok(Outcome::Done(Done {
                token: Some(token),
                since,
                ..
            })) => {
                (lease.claim, lease.token) = (reading, token);
                lease.value = value.map(Some).or(lease.value);
                self.read_on(lease, turn, since.unwrap_or(asked))
            }
            Ok(_) => Err(self.end_lost(&lease, &deadline)),
            Err(e) => {
                self.return_renewer();
                self.defer_both(lease, reading);
                Err(match value {
                    Some(_) => e.advising(UNSTORED),
                    None => e,
                })
            }
        }
    }

    /// The guard of a lease that reads from then on.
    fn read_on(
        &mut self,
        mut lease: Lease,
        turn: Option<Turn>,
        since: BootInstant,
    ) -> Result<LockGuard> {
        let core = self.core.clone();
        core.restart(&mut lease, since);
        self.tell_released();
        let observer = &core.options.observer;
        observer.acquired_at_once(&lease.claim.key, lease.token);
        // The others of this process ask for themselves.
        drop(turn);
        let reading = LockGuard::new(core, lease, self.renewer.take(), None);
        reading.map_err(|_| Error::lost(self.name(), LostReason::Closed))
    }

    /// The lock isn't this guard's.
    fn end_lost(&mut self, lease: &Lease, deadline: &Deadline) -> Error {
        let reason = self.why_gone(lease, deadline);
        self.core.engine.abandon(&lease.owner);
        self.tell_lost(reason);
        self.return_renewer();
        Error::lost(self.name(), reason)
    }

    /// It isn't known whether the lease excludes all still, or reads: it is released as both.
    fn defer_both(&self, lease: Lease, reading: Claim) {
        let ttl = self.core.options.ttl;
        let as_reader = DeferredRelease {
            ending: Ending::Clean {
                last_used: lease.token.last_used(),
            },
            kept_until: lease.kept_until,
            ..DeferredRelease::of_owner(reading, lease.owner.clone(), ttl)
        };
        self.defer(DeferredRelease::of(lease, ttl));
        self.defer(as_reader);
    }
}

impl LockGuard {
    /// Returns the fencing token: a number larger than the token of every earlier holder of this name.
    ///
    /// Send it with each write to what the lock protects. If the storage rejects tokens smaller than the largest it has
    /// seen, a holder that lost its lock without noticing can't write any more.
    ///
    /// Let the storage check tokens of exclusive holders only. Readers hold the lock at the same time, and so do
    /// holders of permits, each with a different token. The storage would reject all of them but the newest, although
    /// they are valid.
    ///
    /// Tokens don't run ahead of the server's clock. If threads of one process pass the lock on faster than once a
    /// microsecond, this call may wait for a microsecond.
    ///
    /// On Redis, tokens increase even after the server has lost its data, unless its clock, or the clock of the server
    /// that replaces it, is behind. On etcd and ZooKeeper they depend on no clock. They fit an `i64` and a database's
    /// `BIGINT`. They stay below 2^53, and so fit a JSON number, until etcd has had 2^41 revisions or ZooKeeper has
    /// elected its leader 512 times.
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

    /// Returns `true` if the previous exclusive holder never released the lock: it crashed, was paused past its ttl, or
    /// panicked.
    ///
    /// What the lock protects may then be half done (compare `EOWNERDEAD` of robust mutexes). The next exclusive holder
    /// sees it, and so do readers and holders of permits that come before that one. Later holders don't.
    ///
    /// - **A panic** counts if it would poison a `std::sync::Mutex`: it began while the guard was held, and dropped the
    ///   guard. A panic that was caught before that, or that began earlier, doesn't count. Panics of readers and of
    ///   holders of permits don't count either.
    /// - **A process that ends** with a signal or `std::process::exit` drops no guards, and so abandons its locks.
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
    /// assert!(locker.lock("abandoned-example")?.was_abandoned());
    /// assert!(!locker.lock("abandoned-example")?.was_abandoned());
    /// # Ok(())
    /// # }
    /// ```
    pub fn was_abandoned(&self) -> bool {
        self.token.abandoned
    }
}
