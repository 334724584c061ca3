//! How a lock stands, for those who look at it without taking it.

use std::time::Duration;

/// The state of a lock at the time of [`Locker::inspect`](crate::Locker::inspect).
///
/// It may have changed by the time you read it. It is meant for operators and logs; don't decide on it whether to work.
///
/// With the feature `value` it is `serde::Serialize`. Durations are then milliseconds, in fields that end in `_ms`.
///
/// # Examples
///
/// ```
/// use crosslock::LockState;
///
/// # fn main() -> crosslock::Result<()> {
/// let locker = crosslock::Locker::open("memory:")?;
/// let guard = locker.lock("inspection-example")?;
/// let seen = locker.inspect("inspection-example")?;
/// assert_eq!(seen.state, LockState::Exclusive);
/// assert_eq!(seen.holders[0].token, Some(guard.fencing_token()));
/// assert!(seen.waiters.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The lock's name.
    pub name: String,
    /// How it is held.
    pub state: LockState,
    /// Its holders. On Redis the first 1,000.
    pub holders: Vec<Holder>,
    /// Its waiters in the engine's queue, in the order in which they will get it. If several threads of a process wait
    /// for the lock exclusively through one locker, only the first is listed. On Redis the first 1,000 readers, and the
    /// first 1,000 others.
    pub waiters: Vec<Waiter>,
    /// A number that every later fencing token of the lock exceeds, if one is known.
    pub last_token: Option<u64>,
}

/// How a lock is held.
///
/// # Examples
///
/// ```
/// use crosslock::LockState;
///
/// # fn main() -> crosslock::Result<()> {
/// let locker = crosslock::Locker::open("memory:")?;
/// assert_eq!(locker.inspect("state-example")?.state, LockState::Free);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockState {
    /// Nobody holds it.
    Free,
    /// One holds it.
    Exclusive,
    /// Readers hold it.
    Shared,
    /// Permits are out.
    #[non_exhaustive]
    Permits {
        /// How many.
        taken: u32,
        /// The number of all permits; `None` if it isn't known.
        of: Option<u32>,
    },
    /// Nobody holds it, and nobody can take it yet: its last holder had called
    /// [`LockGuard::at_least_for`](crate::LockGuard::at_least_for).
    #[non_exhaustive]
    Kept {
        /// The remaining time; `None` if it isn't known.
        remaining: Option<Duration>,
    },
}

/// A holder of a lock: part of an [`Inspection`].
///
/// # Examples
///
/// ```
/// # fn main() -> crosslock::Result<()> {
/// let locker = crosslock::Locker::builder("memory:").label("deploy 4711").build()?;
/// let _guard = locker.lock("holder-example")?;
/// let holder = &locker.inspect("holder-example")?.holders[0];
/// let party = holder.party.as_ref().expect("it is a crosslock program");
/// assert_eq!(party.pid, std::process::id());
/// assert_eq!(party.label.as_deref(), Some("deploy 4711"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// Which thread; `None` for a program that isn't crosslock.
    pub party: Option<Party>,
    /// How many permits it has; 1 of a lock that is no semaphore.
    pub permits: u32,
    /// How long it has held the lock, by the engine's clock. If threads handed the lease over, this counts from the
    /// first of them.
    pub held_for: Option<Duration>,
    /// How long its lease lasts if it isn't renewed; `None` if it doesn't end by itself.
    pub remaining: Option<Duration>,
    /// Its fencing token. If threads handed the lease over, the token of the first of them. On Redis it may be 2 less
    /// if the holder has several names, and found another of them abandoned.
    pub token: Option<u64>,
}

/// A waiter for a lock: part of an [`Inspection`].
///
/// # Examples
///
/// ```
/// # fn main() -> crosslock::Result<()> {
/// let locker = crosslock::Locker::open("memory:")?;
/// for waiter in locker.inspect("waiter-example")?.waiters {
///     println!("{:?} wants it {:?}", waiter.party, waiter.wants);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiter {
    /// Which thread; `None` for a program that isn't crosslock.
    pub party: Option<Party>,
    /// How it wants the lock.
    pub wants: Wants,
    /// How long it has waited, where this is known.
    pub waited_for: Option<Duration>,
}

/// How a waiter wants to hold the lock: part of a [`Waiter`].
///
/// # Examples
///
/// ```
/// use crosslock::Wants;
///
/// let text = match Wants::Exclusive {
///     Wants::Exclusive => "to write",
///     Wants::Shared => "to read",
///     _ => "permits",
/// };
/// assert_eq!(text, "to write");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wants {
    /// Exclusively.
    Exclusive,
    /// Together with other readers.
    Shared,
    /// As permits of a semaphore.
    #[non_exhaustive]
    Permits {
        /// How many.
        count: u32,
    },
}

/// The thread and process of a holder or a waiter.
///
/// # Examples
///
/// ```
/// # fn main() -> crosslock::Result<()> {
/// let locker = crosslock::Locker::open("memory:")?;
/// let _guard = locker.lock("party-example")?;
/// let seen = locker.inspect("party-example")?;
/// let party = seen.holders[0].party.as_ref().expect("it is a crosslock program");
/// assert!(party.to_string().contains(&std::process::id().to_string()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Party {
    /// The host's name.
    pub host: String,
    /// The process id on that host, or in its container.
    pub pid: u32,
    /// The number by which the host's tools know the thread.
    pub thread: u64,
    /// The text that its program set with [`LockerBuilder::label`](crate::LockerBuilder::label).
    pub label: Option<String>,
}

impl Party {
    /// Of an owner's public part, `<host>/<pid>/<thread>` and perhaps `/<label>`; `None` for any other text.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, '/');
        let (host, pid, thread) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Party {
            host: host.to_owned(),
            pid: pid.parse().ok()?,
            thread: thread.parse().ok()?,
            label: parts.next().map(str::to_owned),
        })
    }
}

/// `<host>/<pid>`, and the label in quotes.
impl std::fmt::Display for Party {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.host, self.pid)?;
        match &self.label {
            Some(label) => write!(f, " {label:?}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn party_is_read_from_an_owners_public_part() {
        let party = Party::of("web-2/4711/4712/deploy a/b").expect("it is one");
        let parts = (
            &*party.host,
            party.pid,
            party.thread,
            party.label.as_deref(),
        );
        assert_eq!(parts, ("web-2", 4711, 4712, Some("deploy a/b")));
        assert_eq!(party.to_string(), "web-2/4711 \"deploy a/b\"");
        assert_eq!(Party::of("web-2/4711/4712").expect("one").label, None);
        for text in ["", "a", "a/b/c", "a/1", "a/1/x", "a/-1/2"] {
            assert_eq!(Party::of(text), None, "{text}");
        }
    }
}
