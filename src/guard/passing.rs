//! How a guard ends whose lease goes on in another process.

use super::LockGuard;
use crate::base::clock::Deadline;
use crate::base::fork::Process;
use crate::base::limits::RELEASE;
use crate::base::owner::Owner;
use crate::base::ticket::OwnerTicket;
use crate::engine::Change;
use crate::lease::Lease;
use crate::lease::deferred_release::DeferredRelease;

impl LockGuard {
    /// Ends the guard and gives its lease away: another process goes on with it by [`Locker::adopt`](crate::Locker::adopt).
    ///
    /// The lock isn't released, and this process doesn't renew it any more: it stays taken until the ticket is adopted, or for
    /// what is left of the ttl, which is at least half of it if renewals went well. Does no I/O, but on `file:`, where it writes that
    /// the lease ends after a ttl, whether this process lives until then or not.
    ///
    /// The ticket of a guard that is lost, or was inherited by a child, adopts nothing: `adopt` says that the lock is lost.
    /// An [`at_least_for`](Self::at_least_for) isn't passed on.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let locker = crosslock::Locker::open("memory:")?;
    /// let guard = locker.lock("into-owner-example")?;
    /// let token = guard.fencing_token();
    /// let ticket = guard.into_owner();
    /// assert!(locker.try_lock("into-owner-example")?.is_none());
    /// let guard = locker.adopt("into-owner-example", &ticket)?; // in another process
    /// assert!(guard.fencing_token() > token);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "the lock stays taken, and only the ticket can go on with it"]
    pub fn into_owner(mut self) -> OwnerTicket {
        let owner = if self.is_held() {
            self.end_unreleased()
        } else {
            None
        };
        // An owner that no engine knows has nothing to give.
        let owner = owner.unwrap_or_else(|| Owner::of(Process::current(), None));
        OwnerTicket::new(self.claim.clone(), owner, self.token.last_used())
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
