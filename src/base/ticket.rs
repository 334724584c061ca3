//! A lease on its way from one process to another.

use std::fmt;
use std::str::FromStr;

use crate::base::claim::Claim;
use crate::base::error::{Error, Result};
use crate::base::fork::Process;
use crate::base::owner::Owner;
use crate::base::sys::sync::{Mutex, MutexGuard};

mod text;

/// Carries a lease from one process to another: made by [`LockGuard::into_ticket`](crate::LockGuard::into_ticket), used by
/// [`Locker::adopt`](crate::Locker::adopt).
///
/// **It is a secret**: whoever knows it can adopt or release the lock. Its `Debug` shows the lock's name only. Send it by
/// a pipe, the standard input or a connection, not by arguments or the environment, which others can see. It is a string by
/// [`to_secret`](Self::to_secret) and `parse`, and with the feature `value` by `serde`.
///
/// It can be used once. Until then the lease lasts for what is left of its ttl, and nobody renews it.
///
/// # Examples
///
/// ```
/// use crosslock::{Locker, LeaseTicket};
///
/// # fn main() -> crosslock::Result<()> {
/// # let locker = Locker::open("memory:")?;
/// let secret = locker.lock("ticket-example")?.into_ticket()?.to_secret();
/// let ticket: LeaseTicket = secret.parse()?; // in the other process
/// assert_eq!(ticket.name(), "ticket-example");
/// let guard = locker.adopt(ticket)?;
/// assert!(guard.is_held());
/// # Ok(())
/// # }
/// ```
pub struct LeaseTicket {
    pub(crate) claim: Claim,
    pub(crate) owner: Owner,
    /// The last fencing token that was used under this lease.
    pub(crate) last_used: u64,
    heir: Mutex<Heir>,
}

/// Whom it was used for.
#[derive(Default)]
pub(crate) enum Heir {
    #[default]
    Nobody,
    /// One whose adoption wasn't answered: it may have the lease, and can ask again.
    Unclear(Process, Owner),
    /// It can't be used any more.
    Final,
}

impl LeaseTicket {
    pub(crate) fn new(claim: Claim, owner: Owner, last_used: u64) -> Self {
        LeaseTicket {
            claim,
            owner,
            last_used,
            heir: Mutex::default(),
        }
    }

    /// Returns the name of the lock. For several locks, the text has all names.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let ticket = locker.lock("ticket-name-example")?.into_ticket()?;
    /// assert_eq!(ticket.name(), "ticket-name-example");
    /// # Ok(())
    /// # }
    /// ```
    pub fn name(&self) -> &str {
        self.claim.key.name()
    }

    /// Returns the ticket as a line of ASCII text, from which `parse` makes it again.
    ///
    /// # Examples
    ///
    /// ```
    /// use crosslock::{Error, LeaseTicket};
    ///
    /// # fn main() -> crosslock::Result<()> {
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let secret = locker.lock("secret-example")?.into_ticket()?.to_secret();
    /// assert!(secret.parse::<LeaseTicket>().is_ok());
    /// let other = "garbage".parse::<LeaseTicket>();
    /// assert!(matches!(other, Err(Error::InvalidOption { option: "ticket", .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_secret(&self) -> String {
        text::of(self)
    }

    /// For the one call that uses it; `None` while another does.
    pub(crate) fn heir(&self) -> Option<MutexGuard<'_, Heir>> {
        // Nobody waits here: a child made by `fork` might do so for ever.
        self.heir.try_lock()
    }
}

impl Heir {
    /// The owner for which it is used, the same for each attempt of a process; `None` when it was used before.
    pub(crate) fn owner(&mut self, process: Process, label: Option<&str>) -> Option<Owner> {
        match self {
            Heir::Final => return None,
            Heir::Unclear(of, owner) if *of == process => return Some(owner.clone()),
            Heir::Unclear(..) | Heir::Nobody => {}
        }
        let owner = Owner::of(process, label);
        *self = Heir::Unclear(process, owner.clone());
        Some(owner)
    }
}

impl FromStr for LeaseTicket {
    type Err = Error;

    /// Makes the ticket again of which `text` is [`to_secret`](Self::to_secret).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] when it isn't the text of a ticket. The error doesn't show it.
    fn from_str(text: &str) -> Result<Self> {
        text::parse(text)
    }
}

/// As the string of [`to_secret`](LeaseTicket::to_secret).
#[cfg(feature = "value")]
impl serde::Serialize for LeaseTicket {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_secret())
    }
}

#[cfg(feature = "value")]
impl<'de> serde::Deserialize<'de> for LeaseTicket {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Debug for LeaseTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseTicket")
            .field("name", &self.claim.key.name())
            .finish_non_exhaustive()
    }
}
