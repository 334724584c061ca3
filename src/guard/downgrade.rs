//! How a guard that excludes all becomes one that reads.

use std::sync::Arc;

use super::LockGuard;
use super::release::UNSTORED;
use crate::base::claim::Claim;
use crate::base::clock::Deadline;
use crate::base::error::{Error, LostReason, Result};
use crate::base::limits::RELEASE;
use crate::base::token::Ending;
use crate::engine::{Change, Done, Outcome};
use crate::lease::Lease;
use crate::lease::deferred_release::DeferredRelease;

impl LockGuard {
    /// Turns an exclusive lock, such as that of [`Locker::write`](crate::Locker::write), into a read lock: one round
    /// trip.
    ///
    /// No other holder can come in between. Waiting readers go in together with this one. Returns the reading guard,
    /// which has a token of its own.
    ///
    /// # Errors
    ///
    /// After an error the lock is released, as by [`unlock`](Self::unlock).
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
        if !self.claim.is_exclusive() || self.claim.has_many() {
            let what = "to downgrade what isn't one exclusive lock".to_owned();
            return Err(Error::Unsupported { what });
        }
        let (reading, capabilities) = (self.claim.shared(), core.engine.capabilities());
        capabilities.check(reading.mode, reading.prefer, core.engine.place())?;
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
                core.restart(&mut lease, since.unwrap_or(asked));
                self.tell_released();
                let observer = &core.options.observer;
                observer.acquired_at_once(&lease.claim.key, token);
                // The others of this process ask for themselves.
                drop(turn);
                let reading = LockGuard::new(core, lease, self.renewer.take(), None);
                reading.map_err(|_| Error::lost(self.name(), LostReason::Closed))
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

    /// The lock isn't this guard's.
    fn end_lost(&mut self, lease: &Lease, deadline: &Deadline) -> Error {
        let reason = self.why_gone(lease, deadline);
        self.core.engine.forget(&lease.owner);
        self.tell_lost(reason);
        self.return_renewer();
        Error::lost(self.name(), reason)
    }

    /// It isn't known whether the lease excludes all still, or reads: it is released as both.
    fn defer_both(&self, lease: Lease, reading: Claim) {
        let ttl = self.core.options.ttl;
        let as_reader = DeferredRelease {
            claim: reading,
            owner: lease.owner.clone(),
            ttl,
            ending: Ending::Clean {
                last_used: lease.token.last_used(),
            },
            kept_until: lease.kept_until,
        };
        self.defer(DeferredRelease::of(lease, ttl));
        self.defer(as_reader);
    }
}
