//! Where locks are taken.

pub(crate) mod builder;
mod open;

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::base::claim::{Claim, Mode};
use crate::base::error::Result;
use crate::base::fork::ForkLocal;
use crate::base::name::Namespace;
use crate::core::Core;
use crate::guard::LockGuard;

/// The place where locks live, and the way to take them.
///
/// It is cheap to clone, and clones share connections and wait together. Open one and clone it: two that are opened
/// separately are strangers to one another, as two processes are. Locks exclude each other when their engine, namespace
/// and name are the same, whichever process, thread or `Locker` they were taken by.
///
/// | URL | locks live in | exclude each other |
/// |---|---|---|
/// | `memory:` | this process | its threads |
/// | `file:` | `/tmp/crosslock-<uid>`, mode 0700 | all processes of this user on this host |
/// | `file:///dir` | that directory, made if need be; not one on a network | all processes of this host that may write there |
/// | `redis://[[user]:password@]host[:6379][/db]` | a Redis (6.2 and up) or Valkey server | all its clients |
/// | `rediss://...[?ca=FILE]` | the same by TLS (feature `tls`); `ca`: PEM file of whom to trust | all its clients |
/// | `valkey://...`, `valkeys://...` | the same as `redis://` and `rediss://` | all its clients |
/// | `unix:///path.sock[?db=N&user=U&pass=P]` | the same by a unix socket | all its clients |
///
/// User, password and path may have `%xx`. A part that isn't understood is an error.
///
/// A thread that locks a name twice waits for itself: for ever, or until its own lease ends. The log warns of it.
///
/// # Examples
///
/// ```
/// # fn main() -> crosslock::Result<()> {
/// let lock = crosslock::Locker::open("memory:")?;
/// let _guard = lock.lock("locker-example")?;
/// // ... nobody else is here ...
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Locker {
    namespace: Namespace,
    core: Arc<ForkLocal<Core>>,
}

impl Locker {
    pub(crate) fn new(namespace: Namespace, core: Arc<ForkLocal<Core>>) -> Self {
        Locker { namespace, core }
    }

    /// Returns a clone whose names are kept apart from those of other namespaces.
    ///
    /// On Redis, a namespace is listened to while a lock of it is waited for by this locker or a clone, and for
    /// 10 to 20 s more. Whoever waits in one namespace costs those that wait in others no command.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](crate::Error::InvalidOption), as in [`LockerBuilder::namespace`](crate::LockerBuilder::namespace).
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let lock = crosslock::Locker::open("memory:")?;
    /// let deploy = lock.namespace("deploy")?;
    /// let _one = lock.lock("namespace-example")?;
    /// let _other = deploy.lock("namespace-example")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn namespace(&self, namespace: &str) -> Result<Self> {
        Ok(Locker {
            namespace: Namespace::new(namespace)?,
            core: self.core.clone(),
        })
    }

    /// Takes a lock, blocking until it is free.
    ///
    /// On Redis: one round trip when it is free. When it is taken the process enters the lock's line, and is given
    /// the lock by the release of the one before it, first come, first served; the threads that wait on one locker
    /// and its clones stand behind one another in one place of that line, and hand the lock over among themselves
    /// for at most [`LockerBuilder::hand_over`](crate::LockerBuilder::hand_over). While it waits it sends a command about every ttl / 3. While the
    /// server can't be reached it is tried for [`LockerBuilder::unavailable_for`](crate::LockerBuilder::unavailable_for). Another program's key of that
    /// name that never expires blocks it for as long as the key is there.
    ///
    /// On `file:` it blocks in the kernel, which promises no order between processes; where leases end there too
    /// ([`LockerBuilder::renew`](crate::LockerBuilder::renew), [`LockerBuilder::max_hold`](crate::LockerBuilder::max_hold)) it tries with the pauses of
    /// [`LockerBuilder::backoff`](crate::LockerBuilder::backoff).
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`](crate::Error::InvalidName) when `name` isn't 1 to 512 bytes long.
    /// - [`Error::Busy`](crate::Error::Busy) when it was taken at all of [`LockerBuilder::attempts`](crate::LockerBuilder::attempts); without them, never.
    /// - [`Error::Unavailable`](crate::Error::Unavailable) when the server can't be reached for too long.
    /// - [`Error::Denied`](crate::Error::Denied) when it refuses the user, or the directory its use.
    /// - [`Error::Conflict`](crate::Error::Conflict) when the key or the file holds something that is no lock.
    /// - [`Error::Engine`](crate::Error::Engine) for other failures, a thread that can't be started among them.
    ///
    /// After an error nothing is held; what may have been taken is released, by a thread of the locker when the
    /// server can't be reached at once, or ends with its ttl.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let lock = crosslock::Locker::open("memory:")?;
    /// let _guard = lock.lock("lock-example")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn lock(&self, name: &str) -> Result<LockGuard> {
        self.core().lock(&self.exclusive(name)?)
    }

    /// Tries to take a lock once, without waiting; gives `None` when it is taken.
    ///
    /// It takes no lock that others wait for (on `file:`, that threads of this locker wait for). One that is known
    /// to be taken, because this locker or a clone of it holds it or waits for it, is not asked for: no I/O.
    ///
    /// A job of which one run is enough, although several machines start it, needs
    /// [`at_least_for`](LockGuard::at_least_for), too: who starts when the first is done would find the lock free.
    ///
    /// # Errors
    ///
    /// Those of [`lock`](Self::lock) but `Busy`; `Unavailable` at once, or after the connect and I/O timeouts.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # fn main() -> crosslock::Result<()> {
    /// let lock = crosslock::Locker::open("memory:")?;
    /// match lock.try_lock("try-example")? {
    ///     Some(guard) => {
    ///         // The machines start it within a minute.
    ///         guard.at_least_for(Duration::from_secs(60));
    ///         println!("it's my turn");
    ///     }
    ///     None => println!("somebody else is at it, or was"),
    /// }
    /// assert!(lock.try_lock("try-example")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_lock(&self, name: &str) -> Result<Option<LockGuard>> {
        self.core().try_lock(&self.exclusive(name)?)
    }

    /// Tries to take a lock for as long as `timeout`; gives `None` when it is taken to the end.
    ///
    /// It tries at least once, and returns within `timeout` + 100 ms, whatever the network does. With
    /// [`LockerBuilder::attempts`](crate::LockerBuilder::attempts) it may give up earlier.
    ///
    /// # Errors
    ///
    /// Those of [`lock`](Self::lock) but `Busy`; `Unavailable` also when the server couldn't be reached at the
    /// end of `timeout`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # fn main() -> crosslock::Result<()> {
    /// let lock = crosslock::Locker::open("memory:")?;
    /// let _guard = lock.lock("timeout-example")?;
    /// assert!(lock.try_lock_for("timeout-example", Duration::from_millis(20))?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_lock_for(&self, name: &str, timeout: Duration) -> Result<Option<LockGuard>> {
        self.core().try_lock_for(&self.exclusive(name)?, timeout)
    }

    /// Does the same as [`try_lock_for`](Self::try_lock_for), until a point in time.
    ///
    /// # Errors
    ///
    /// Those of [`try_lock_for`](Self::try_lock_for).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # fn main() -> crosslock::Result<()> {
    /// let lock = crosslock::Locker::open("memory:")?;
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// assert!(lock.try_lock_until("deadline-example", deadline)?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_lock_until(&self, name: &str, deadline: Instant) -> Result<Option<LockGuard>> {
        self.core().try_lock_until(&self.exclusive(name)?, deadline)
    }

    fn exclusive(&self, name: &str) -> Result<Claim> {
        self.claim(name, Mode::Exclusive)
    }

    pub(crate) fn claim(&self, name: &str, mode: Mode) -> Result<Claim> {
        self.core().claim(&self.namespace, name, mode)
    }

    /// That of this process.
    pub(crate) fn core(&self) -> &Arc<Core> {
        self.core.get()
    }
}

// There is nothing half done that a panic could leave behind.
impl UnwindSafe for Locker {}
impl RefUnwindSafe for Locker {}

impl fmt::Debug for Locker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locker")
            .field("namespace", &self.namespace.as_str())
            .finish_non_exhaustive()
    }
}
