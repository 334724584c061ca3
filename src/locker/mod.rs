//! Where every program begins: lockers, and how they are made.
//!
//! It uses `acquire` and all below. What always holds here: a locker that was made has options within their ranges, and
//! an engine that was found to be usable.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};
use std::{borrow::Borrow, fmt, sync::Arc};

use crate::base::{
    AfterFork, Cancel, CancelToken, Claim, Error, ForkLocal, LeaseTicket, Mode, Namespace,
    Registration, Result,
};
use crate::{acquire::Calls, core::Core, guard::LockGuard};

pub(crate) mod builder;
mod open;
pub(crate) mod operate;

/// Takes locks in one place: a server, a directory, or this process's memory.
///
/// Locks exclude each other when their engine, namespace and name are the same, whichever process, thread or `Locker`
/// takes them.
///
/// Open one `Locker` and clone it. Clones share connections, and their threads wait in one queue. Two lockers that
/// are opened separately know nothing of each other, as if they were in two processes.
///
/// | URL | locks live in | exclude each other |
/// |---|---|---|
/// | `memory:` | this process | its threads |
/// | `memory:name` | the same, apart from all other names; gone with its last locker | its threads |
/// | `file:` | `/tmp/crosslock-<uid>`, mode 0700 | all processes of this user on this host |
/// | `file:///dir` | that directory, made if it doesn't exist; not one on a network | all processes of this host that may write there |
/// | `redis://[[user]:password@]host[:6379][/db]` | a Redis (6.2 and up) or Valkey server | all its clients |
/// | `rediss://...[?ca=FILE&cert=FILE&key=FILE]` | the same over TLS (feature `tls`); PEM files: `ca` has trusted certificates, `cert` and `key` are your own | all its clients |
/// | `valkey://...`, `valkeys://...` | the same as `redis://` and `rediss://` | all its clients |
/// | `unix:///path.sock[?db=N&user=U&pass=P]` | the same over a unix socket | all its clients |
/// | `redis+sentinel://[[user]:password@]host[:26379],host/master[/db]` | the master that the sentinels report; with `?sentinel_username=U&sentinel_password=P` for the sentinels' own login | all its clients |
/// | `redis+cluster://[[user]:password@]host[:6379],host` | the masters of a Redis Cluster (7.0 and up) or Valkey cluster | all its clients |
/// | `redis+quorum://[[user]:password@]host[:6379],host,host[/db][?rejoin=60s]` | a majority of 3, 5, 7 or 9 independent servers: plain locks; see `docs/quorum.md` | all clients of the same servers |
/// | `etcd://[user:password@]host[:2379],host[/root]` | etcd (3.4 and up; feature `etcd`) | all clients of that root |
/// | `etcds://...[?ca=FILE&cert=FILE&key=FILE]` | the same over TLS (feature `tls`); `cert` and `key` are the client's own | all clients of that root |
/// | `zk://host[:2181],host[/chroot][?auth=digest:user:password&tick=2s]` | ZooKeeper (3.5.3 and up; feature `zookeeper`); `tick` is the servers' `tickTime` | all clients of that chroot |
/// | `zks://...[&ca=FILE&cert=FILE&key=FILE]` | the same over TLS (feature `tls`), with port 2281 by default; `cert` and `key` are the client's own | all clients of that chroot |
///
/// You can write `rediss`, `valkey` or `valkeys` instead of `redis` before `+sentinel`, `+cluster` and `+quorum`. All
/// Redis URLs take `?min_replicas=N&replica_timeout=500ms&clock_skew=10ms`, except that `redis+quorum://` takes only
/// `clock_skew`: see [`min_replicas`](crate::LockerBuilder::min_replicas).
///
/// Write other characters in user, password and path as `%xx`. An unknown part of a URL is an error.
///
/// A thread that locks a name twice waits for itself, as in `std`: for ever, or until its own lease ends. After 3 s a
/// warning in the log reports this, and also threads that wait for each other.
///
/// # Examples
///
/// ```
/// # fn main() -> crosslock::Result<()> {
/// let locker = crosslock::Locker::open("memory:")?;
/// let _guard = locker.lock("locker-example")?;
/// // ... nobody else is here ...
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Locker {
    namespace: Namespace,
    core: Arc<ForkLocal<Core>>,
    /// What else ends its calls, besides the end of the core.
    ended_by: Option<Arc<ForkLocal<EndedBy>>>,
}

impl Locker {
    pub(crate) fn new(namespace: Namespace, core: Arc<ForkLocal<Core>>) -> Self {
        Locker {
            namespace,
            core,
            ended_by: None,
        }
    }

    /// Returns a clone for another namespace: its names are apart from those of all others.
    ///
    /// On Redis, the locker subscribes to a namespace while one of its threads waits there, and for 10 to 20 s more.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](crate::Error::InvalidOption) when `namespace` isn't up to 64 of `A-Z a-z 0-9 . _ -`.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let locker = crosslock::Locker::open("memory:")?;
    /// let deploy = locker.with_namespace("deploy")?;
    /// let _one = locker.lock("namespace-example")?;
    /// let _other = deploy.lock("namespace-example")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_namespace(&self, namespace: &str) -> Result<Self> {
        Ok(Locker {
            namespace: Namespace::new(namespace)?,
            ..self.clone()
        })
    }

    /// Takes a lock, blocking until it is free.
    ///
    /// On Redis a free lock takes one round trip. When the lock is taken, the process enters the lock's queue on the
    /// server, and each release grants the lock to the first process there: first come, first served. Threads that wait
    /// on one locker and its clones share one place in that queue, and hand the lock over to one another for at most
    /// [`LockerBuilder::hand_over`](crate::LockerBuilder::hand_over). That is fair, but not in the order of arrival: a
    /// running thread may go ahead of a sleeping one. A waiter sends a command about every third of the ttl. While the
    /// server can't be reached, the call keeps trying for
    /// [`LockerBuilder::outage_timeout`](crate::LockerBuilder::outage_timeout). If another program's key of that name
    /// never expires, the call waits for as long as the key exists.
    ///
    /// On `file:` the call sleeps in the kernel until the lock is passed to it, or the process ahead of it has ended.
    /// In case a message is lost, it also checks once a second, and less often in a long queue.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`](crate::Error::InvalidName) when `name` isn't 1 to 512 bytes long.
    /// - [`Error::Busy`](crate::Error::Busy) when the lock was taken at each of
    ///   [`LockerBuilder::attempts`](crate::LockerBuilder::attempts); without that option, never.
    /// - [`Error::Cancelled`](crate::Error::Cancelled) when the locker was closed, or a token of
    ///   [`with_cancel`](Self::with_cancel) was cancelled, before the call or in it.
    /// - [`Error::Unavailable`](crate::Error::Unavailable) when the server couldn't be reached for
    ///   [`LockerBuilder::outage_timeout`](crate::LockerBuilder::outage_timeout).
    /// - [`Error::Denied`](crate::Error::Denied) when the server refuses the user, or the directory can't be used.
    /// - [`Error::Conflict`](crate::Error::Conflict) when the key or the file holds something that isn't a lock.
    /// - [`Error::Engine`](crate::Error::Engine) for other failures, such as a thread that can't be started.
    ///
    /// After an error the caller holds nothing. If the call may have taken the lock, it releases it; if the server
    /// can't be reached, a thread of the locker goes on trying, until the lease ends with its ttl.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let locker = crosslock::Locker::open("memory:")?;
    /// let _guard = locker.lock("lock-example")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn lock(&self, name: &str) -> Result<LockGuard> {
        self.calls().lock(&self.exclusive(name)?)
    }

    /// Tries to take a lock once, without waiting. Returns `None` when it is taken.
    ///
    /// It takes no lock for which other processes wait. It does no I/O if this locker or a clone of it holds the lock,
    /// or waits for it.
    ///
    /// If several machines start a job that should run once, also call [`at_least_for`](LockGuard::at_least_for): a
    /// machine that starts when the first one is done would find the lock free.
    ///
    /// # Errors
    ///
    /// The errors of [`lock`](Self::lock), except `Busy`. `Unavailable` comes at once, or after the connect and I/O
    /// timeouts.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # fn main() -> crosslock::Result<()> {
    /// let locker = crosslock::Locker::open("memory:")?;
    /// match locker.try_lock("try-example")? {
    ///     Some(guard) => {
    ///         // The machines start it within a minute.
    ///         guard.at_least_for(Duration::from_secs(60));
    ///         println!("it's my turn");
    ///     }
    ///     None => println!("another machine does it, or did it just now"),
    /// }
    /// assert!(locker.try_lock("try-example")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_lock(&self, name: &str) -> Result<Option<LockGuard>> {
        self.calls().try_lock(&self.exclusive(name)?)
    }

    /// Tries to take a lock for at most `timeout`. Returns `None` if the lock stays taken.
    ///
    /// The call tries at least once, and returns within `timeout` + 100 ms, whatever the network does. With
    /// [`LockerBuilder::attempts`](crate::LockerBuilder::attempts) it may give up earlier.
    ///
    /// # Errors
    ///
    /// The errors of [`lock`](Self::lock), except `Busy`. `Unavailable` also when the server couldn't be reached at
    /// the end of `timeout`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # fn main() -> crosslock::Result<()> {
    /// let locker = crosslock::Locker::open("memory:")?;
    /// let _guard = locker.lock("timeout-example")?;
    /// assert!(locker.try_lock_for("timeout-example", Duration::from_millis(20))?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_lock_for(&self, name: &str, timeout: Duration) -> Result<Option<LockGuard>> {
        self.calls().try_lock_for(&self.exclusive(name)?, timeout)
    }

    /// Tries to take a lock until `deadline`, as [`try_lock_for`](Self::try_lock_for) does.
    ///
    /// # Errors
    ///
    /// The errors of [`try_lock_for`](Self::try_lock_for).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # fn main() -> crosslock::Result<()> {
    /// let locker = crosslock::Locker::open("memory:")?;
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// assert!(locker.try_lock_until("deadline-example", deadline)?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_lock_until(&self, name: &str, deadline: Instant) -> Result<Option<LockGuard>> {
        self.calls()
            .try_lock_until(&self.exclusive(name)?, deadline)
    }

    /// Calls `work` with the lock held: [`lock`](Self::lock), then `work`, then [`unlock`](LockGuard::unlock).
    ///
    /// Returns the result of `work` once the lock is released. If `work` panics, the lock is released at once, and the
    /// next holder finds it [abandoned](LockGuard::was_abandoned). `work` gets the guard so that it can check the
    /// lease. It must not lock the same name, because it would wait for itself.
    ///
    /// # Errors
    ///
    /// - The errors of [`lock`](Self::lock): `work` wasn't called.
    /// - The errors of [`unlock`](LockGuard::unlock): `work` was called. [`Error::Lost`](crate::Error::Lost) means that
    ///   others may have held the lock meanwhile.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let locker = crosslock::Locker::open("memory:")?;
    /// let token = locker.with_lock("with-lock-example", |guard| guard.fencing_token())?;
    /// assert!(token > 0);
    /// assert!(locker.try_lock("with-lock-example")?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_lock<R>(&self, name: &str, work: impl FnOnce(&LockGuard) -> R) -> Result<R> {
        let guard = self.lock(name)?;
        let done = work(&guard);
        guard.unlock()?;
        Ok(done)
    }

    fn exclusive(&self, name: &str) -> Result<Claim> {
        self.claim(name, Mode::Exclusive)
    }

    pub(crate) fn claim(&self, name: &str, mode: Mode) -> Result<Claim> {
        // What an engine can do, and the options, are the same in a child.
        self.core.original().claim(&self.namespace, name, mode)
    }

    /// The same of a lock with a value beside it.
    #[cfg(feature = "value")]
    pub(crate) fn claim_with_value(&self, name: &str, mode: Mode) -> Result<Claim> {
        let claim = self.claim(name, mode)?.with_value();
        self.core.original().check_values()?;
        Ok(claim)
    }

    /// How its calls take locks.
    pub(crate) fn calls(&self) -> Calls<'_> {
        let core = self.core();
        let ended_by = match &self.ended_by {
            Some(ended_by) => ended_by.get().cancel(),
            None => core.closed(),
        };
        Calls { core, ended_by }
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

impl Locker {
    /// Takes over a lease that another process passed on with [`LockGuard::into_ticket`]: on Redis one round trip.
    ///
    /// The new guard has its own renewal, a full ttl, and a fencing token larger than every token used under the lease.
    /// Nobody else held the lock in between. The lock is held as before: exclusively, to read, or with permits. The
    /// ticket decides which lock that is. If you don't trust its sender with all locks of this namespace, compare
    /// [`LeaseTicket::name`] first.
    ///
    /// A ticket can be used once. After [`Error::Unavailable`] or [`Error::Cancelled`] it is unknown whether this
    /// process has the lease. Call `adopt` again with the same `LeaseTicket` value (not with another one of the same
    /// text), or let the lease end with its ttl.
    ///
    /// # Errors
    ///
    /// - [`Error::Lost`] when the ticket's lease is over: its ttl ended, or somebody broke or adopted it.
    /// - [`Error::InvalidOption`] when the ticket belongs to another namespace than this locker's.
    /// - [`Error::Unsupported`] when the engine can't hold a lock in that way.
    /// - [`Error::Unavailable`], [`Error::Denied`], [`Error::Conflict`], [`Error::Engine`] and [`Error::Cancelled`] as
    ///   for [`lock`](Self::lock), but without trying again.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::io::Read;
    /// use crosslock::{Locker, LeaseTicket};
    ///
    /// # fn adopt(input: impl Read) -> Result<(), Box<dyn std::error::Error>> {
    /// # let locker = Locker::open("memory:")?;
    /// let ticket: LeaseTicket = std::io::read_to_string(input)?.parse()?;
    /// let guard = locker.adopt(ticket)?;
    /// guard.check()?;
    /// # Ok(())
    /// # }
    /// # let locker = Locker::open("memory:")?;
    /// # let secret = locker.lock("adopt-example")?.into_ticket()?.to_secret();
    /// # adopt(secret.as_bytes())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn adopt(&self, ticket: impl Borrow<LeaseTicket>) -> Result<LockGuard> {
        let ticket = ticket.borrow();
        let claim = self.claim_of(ticket)?;
        self.calls().adopt(&claim, ticket)
    }

    fn claim_of(&self, ticket: &LeaseTicket) -> Result<Claim> {
        let of = &ticket.claim;
        if of.key.namespace() != self.namespace.as_str() {
            let (own, other) = (self.namespace.as_str(), of.key.namespace());
            return Err(Error::InvalidOption {
                option: "ticket",
                reason: format!("it belongs to namespace {other:?}, and the locker uses {own:?}"),
            });
        }
        let core = self.core.original();
        let first = core.claim(&self.namespace, of.keys()[0].name(), of.mode)?;
        if of.is_multi() {
            core.check_several_names(of.keys().len())?;
        }
        Ok(Claim {
            key: of.key.clone(),
            names: of.names.clone(),
            ..first
        })
    }
}

/// What ends the calls of a locker with tokens.
///
/// A call has one [`Cancel`]. Of a locker without tokens it is that of the core, which `close` sets; of a locker with
/// tokens it follows theirs and the core's, for as long as the locker lives.
#[derive(Debug)]
struct EndedBy {
    tokens: Vec<CancelToken>,
    core: Arc<ForkLocal<Core>>,
    any: Cancel,
    _registrations: Vec<Registration>,
}

impl EndedBy {
    fn new(tokens: Vec<CancelToken>, core: Arc<ForkLocal<Core>>) -> Self {
        let parents = tokens.iter().map(CancelToken::cancellation);
        let (any, registrations) = Cancel::of_any(parents.chain([core.get().closed()]));
        EndedBy {
            tokens,
            core,
            any,
            _registrations: registrations,
        }
    }

    fn cancel(&self) -> &Cancel {
        &self.any
    }
}

impl AfterFork for EndedBy {
    fn after_fork(&self) -> Self {
        EndedBy::new(self.tokens.clone(), self.core.clone())
    }
}
