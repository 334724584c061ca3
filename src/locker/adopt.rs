//! How a locker goes on with a lease of another process.

use std::borrow::Borrow;

use super::Locker;
use crate::base::claim::Claim;
use crate::base::error::{Error, Result};
use crate::base::ticket::OwnerTicket;
use crate::guard::LockGuard;

impl Locker {
    /// Goes on with a lease that another process has given away by [`LockGuard::into_owner`]: one round trip.
    ///
    /// The guard has a renewal of its own, a full ttl, and a fencing token above all that were used under the lease. The lock
    /// was taken all the time: nobody else had it in between. `name` is that of the guard, which for several locks shows all;
    /// [`OwnerTicket::name`] has it. The lock is held in the way in which it was: exclusively, to read, or by permits.
    ///
    /// A ticket can be used once. After [`Error::Unavailable`] or [`Error::Cancelled`] it isn't known whether this process has
    /// the lease: call it again with the same ticket (that value, not another one of the same text), or leave it; then the
    /// lease ends with its ttl.
    ///
    /// # Errors
    ///
    /// - [`Error::Lost`] when the lease isn't the ticket's any more: its ttl was over, somebody broke it or has adopted it.
    ///   Also for the ticket of a guard that was lost.
    /// - [`Error::InvalidName`] and [`Error::InvalidOption`] when the ticket is of another name, or of another namespace.
    /// - [`Error::Unsupported`] when the engine can't hold a lock in that way.
    /// - [`Error::Unavailable`], [`Error::Denied`], [`Error::Conflict`], [`Error::Engine`] and [`Error::Cancelled`] as for
    ///   [`lock`](Self::lock), but without trying again.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::io::Read;
    /// use crosslock::{Locker, OwnerTicket};
    ///
    /// # fn adopt(input: impl Read) -> Result<(), Box<dyn std::error::Error>> {
    /// # let locker = Locker::open("memory:")?;
    /// let ticket: OwnerTicket = std::io::read_to_string(input)?.parse()?;
    /// let guard = locker.adopt("adopt-example", ticket)?;
    /// guard.check()?;
    /// # Ok(())
    /// # }
    /// # let locker = Locker::open("memory:")?;
    /// # let secret = locker.lock("adopt-example")?.into_owner().as_secret();
    /// # adopt(secret.as_bytes())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn adopt(&self, name: &str, ticket: impl Borrow<OwnerTicket>) -> Result<LockGuard> {
        let ticket = ticket.borrow();
        let claim = self.claim_of(name, ticket)?;
        self.calls().adopt(&claim, ticket)
    }

    fn claim_of(&self, name: &str, ticket: &OwnerTicket) -> Result<Claim> {
        let of = &ticket.claim;
        if of.key.name() != name {
            return Err(Error::InvalidName {
                name: name.to_owned(),
                reason: format!("the ticket is of {:?}", of.key.name()),
            });
        }
        if of.key.namespace() != self.namespace.as_str() {
            let (own, other) = (self.namespace.as_str(), of.key.namespace());
            return Err(Error::InvalidOption {
                option: "ticket",
                reason: format!("it is of the namespace {other:?}, and the locker has {own:?}"),
            });
        }
        let core = self.core.original();
        let first = core.claim(&self.namespace, of.keys()[0].name(), of.mode)?;
        if of.has_many() {
            core.check_several_names(of.keys().len())?;
        }
        Ok(Claim {
            key: of.key.clone(),
            names: of.names.clone(),
            ..first
        })
    }
}
