//! Where locks are taken.

use std::env::{self, VarError};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::acquire::acquire;
use crate::backoff::Backoff;
use crate::clock::{BootClock, BootInstant, Clock, Deadline};
use crate::engine::{self, Engine};
use crate::error::{Error, Result};
use crate::farewell::Farewells;
use crate::guard::LockGuard;
use crate::name::{Key, Namespace};
use crate::options::Options;
use crate::patience::Patience;
use crate::per_process::PerProcess;
use crate::place::LocalQueues;
use crate::renewal::{Renewer, Renewers};

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
/// | `unix:///path.sock[?db=N&user=U&pass=P]` | the same by a unix socket | all its clients |
///
/// User, password and path may have `%xx`. A part that isn't understood is an error.
///
/// A thread that locks a name twice waits for itself: for ever, or until its own lease ends.
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
    core: Arc<Core>,
}

/// What the clones of a `Locker`, and its guards, share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) options: Options,
    pub(crate) renewers: PerProcess<Renewers>,
    pub(crate) farewells: PerProcess<Farewells>,
    pub(crate) queues: PerProcess<LocalQueues>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The variable that [`Locker::from_env`] reads.
const VARIABLE: &str = "CROSSLOCK_URL";

impl Locker {
    /// Opens the engine that `url` names, with the default options.
    ///
    /// A server is connected to at once: one round trip, three with a password and a database number.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidUrl`] when a part of it isn't understood or names what can't be.
    /// - [`Error::Unavailable`] when the server can't be reached within the connect timeout of 2 s.
    /// - [`Error::Denied`] when it refuses the password or the user, or the directory its use.
    /// - [`Error::Engine`] when it is no Redis server, has a certificate that isn't trusted, or hasn't as many
    ///   databases.
    /// - [`Error::Unsupported`] when the engine isn't part of this build.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// let lock = crosslock::Locker::open("redis://127.0.0.1/")?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn open(url: &str) -> Result<Self> {
        Locker::builder(url).build()
    }

    /// Opens the engine that the environment variable `CROSSLOCK_URL` names, or `file:` when it isn't set.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open). A variable that is set but empty is an error too.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// let lock = crosslock::Locker::from_env()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn from_env() -> Result<Self> {
        let invalid = |url: &str, reason: &str| {
            let (url, reason) = (url.to_owned(), format!("{VARIABLE} {reason}"));
            Err(Error::InvalidUrl { url, reason })
        };
        match env::var(VARIABLE) {
            Err(VarError::NotPresent) => Locker::open("file:"),
            Err(VarError::NotUnicode(_)) => invalid("…", "isn't UTF-8"),
            Ok(url) if url.is_empty() => {
                invalid("", "is set but empty: unset it, or name an engine")
            }
            Ok(url) => Locker::open(&url).map_err(|e| match e {
                Error::InvalidUrl { url, reason } => Error::InvalidUrl {
                    url,
                    reason: format!("{reason} (from {VARIABLE})"),
                },
                e => e,
            }),
        }
    }

    /// Starts with the default options, to change some.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let lock = crosslock::Locker::builder("memory:")
    ///     .namespace("deploy")
    ///     .ttl(Duration::from_secs(30))
    ///     .build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn builder(url: &str) -> LockerBuilder {
        let (url, namespace) = (url.to_owned(), "crosslock".to_owned());
        LockerBuilder {
            url,
            namespace,
            options: Options::default(),
        }
    }

    /// Returns a clone whose names are kept apart from those of other namespaces.
    ///
    /// On Redis, a namespace in which a lock was waited for is listened to for as long as the locker lives.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`], as in [`LockerBuilder::namespace`].
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
    /// for at most [`LockerBuilder::hand_over`]. While it waits it sends a command about every ttl / 3. While the
    /// server can't be reached it is tried for [`LockerBuilder::unavailable_for`]. Another program's key of that
    /// name that never expires blocks it for as long as the key is there.
    ///
    /// On `file:` it blocks in the kernel, which promises no order between processes; where leases end there too
    /// ([`LockerBuilder::renew`], [`LockerBuilder::max_hold`]) it tries with the pauses of
    /// [`LockerBuilder::backoff`].
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] when `name` isn't 1 to 512 bytes long.
    /// - [`Error::Busy`] when it was taken at all of [`LockerBuilder::attempts`]; without them, never.
    /// - [`Error::Unavailable`] when the server can't be reached for too long.
    /// - [`Error::Denied`] when it refuses the user, or the directory its use.
    /// - [`Error::Conflict`] when the key or the file holds something that is no lock.
    /// - [`Error::Engine`] for other failures, a thread that can't be started among them.
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
        let attempts = self.core.options.attempts;
        let guard = self.acquire(name, Deadline::NEVER, attempts)?;
        // Without a number of attempts there is no end but a guard or an error.
        let attempts = attempts.unwrap_or(u32::MAX);
        guard.ok_or_else(|| Error::Busy {
            name: name.to_owned(),
            attempts,
        })
    }

    /// Tries to take a lock once, without waiting; gives `None` when it is taken.
    ///
    /// It takes no lock that others wait for (on `file:`, that threads of this locker wait for). One that is known
    /// to be taken, because this locker or a clone of it holds it or waits for it, is not asked for: no I/O.
    ///
    /// # Errors
    ///
    /// Those of [`lock`](Self::lock) but `Busy`; `Unavailable` at once, or after the connect and I/O timeouts.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let lock = crosslock::Locker::open("memory:")?;
    /// match lock.try_lock("try-example")? {
    ///     Some(_guard) => println!("it's my turn"),
    ///     None => println!("somebody else is at it"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_lock(&self, name: &str) -> Result<Option<LockGuard>> {
        self.acquire(name, Deadline::NEVER, Some(1))
    }

    /// Tries to take a lock for as long as `timeout`; gives `None` when it is taken to the end.
    ///
    /// It tries at least once, and returns within `timeout` + 100 ms, whatever the network does. With
    /// [`LockerBuilder::attempts`] it may give up earlier.
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
        #[cfg(crosslock_mutant = "timeout_ignored")]
        let timeout = timeout * 4;
        self.acquire(name, Deadline::after(timeout), self.core.options.attempts)
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
        // The one attempt after a deadline that has passed takes time as well.
        let deadline = Deadline::at(deadline.max(Instant::now()));
        self.acquire(name, deadline, self.core.options.attempts)
    }

    fn acquire(
        &self,
        name: &str,
        deadline: Deadline,
        attempts: Option<u32>,
    ) -> Result<Option<LockGuard>> {
        let patience = Patience::new(deadline, attempts, &self.core.options);
        acquire(&self.core, &Key::new(&self.namespace, name)?, patience)
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

impl Core {
    /// A thread for the lease that is about to be taken, if it will need one.
    pub(crate) fn renewer(&self, key: &Key, process: u32) -> Result<Option<Renewer>> {
        if !self.leases_end() {
            return Ok(None);
        }
        match self.renewers.get(process).take() {
            Ok(renewer) => Ok(Some(renewer)),
            #[cfg(crosslock_mutant = "renewer_not_needed")]
            Err(_) => Ok(None),
            #[cfg(not(crosslock_mutant = "renewer_not_needed"))]
            Err(e) => Err(Error::engine(
                Some(key.name()),
                "the thread that would renew it",
                e,
            )),
        }
    }

    /// When a lease ends that would end at `end` by its ttl.
    pub(crate) fn lease_end(&self, end: BootInstant) -> BootInstant {
        if self.leases_end() {
            end
        } else {
            BootInstant::MAX
        }
    }

    /// Whether a lease can end although its process lives.
    pub(crate) fn leases_end(&self) -> bool {
        self.engine.has_ttl() || self.options.leases_end()
    }
}

/// Options of a [`Locker`].
///
/// Setters chain; [`build`](Self::build) checks them all. A value out of its range is an error, never adjusted.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// use crosslock::{Error, Locker};
///
/// let built = Locker::builder("memory:").ttl(Duration::from_millis(1)).build();
/// assert!(matches!(built, Err(Error::InvalidOption { option: "ttl", .. })));
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until it builds"]
pub struct LockerBuilder {
    url: String,
    namespace: String,
    options: Options,
}

impl LockerBuilder {
    /// Sets the prefix that keeps applications apart: up to 64 of `A-Z a-z 0-9 . _ -`. Default: `crosslock`.
    ///
    /// An empty one makes the lock's key the name itself, to share a lock with other programs.
    pub fn namespace(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        self
    }

    /// Sets how long a lease lasts without renewal: 100 ms to 24 h. Default: 10 s.
    ///
    /// It is how long the others wait after a holder has crashed. A short one costs more renewals, and a
    /// process that stands still for as long (a pause, a slow disk, a network that is down) loses its locks.
    /// On `file:` a crashed holder's lock is free at once, and the ttl matters only when leases aren't renewed.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.options.ttl = ttl;
        self
    }

    /// Sets how often a lease is renewed: 10 ms to half of the ttl. Default: a third of the ttl.
    ///
    /// Each renewal is one command; it is sent up to 10 % earlier, at random. A third leaves time for a second
    /// try.
    pub fn renew_every(mut self, every: Duration) -> Self {
        self.options.renew_every = Some(every);
        self
    }

    /// Sets whether leases are renewed. Default: true.
    ///
    /// Without it a lock is lost one ttl after it was taken, whether its holder is done or not; up to
    /// [`hand_over`](Self::hand_over), at most half of the ttl, earlier when another thread of this process handed it
    /// over.
    pub fn renew(mut self, renew: bool) -> Self {
        self.options.renew = renew;
        self
    }

    /// Sets for how long a lease is renewed: 1 ms and up. Default: without end.
    ///
    /// After this time the lease isn't renewed any more, and lost within a ttl: a holder that hangs but lives
    /// doesn't keep its lock for ever.
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.options.max_hold = Some(max_hold);
        self
    }

    /// Sets the pauses between attempts by those who aren't told when the lock is theirs. Default: 1 ms, 100 ms, 0.5.
    ///
    /// These are: calls with a number of [`attempts`](Self::attempts), those that wait for another program's lock,
    /// and all while the server can't be reached or its messages can't be heard. On `file:` also timed calls, and
    /// all where leases end. The pauses double from `base` (100 us and up) to `cap` (at most 60 s); each is
    /// shortened at random by up to the part `jitter` (0.0 to 1.0) of it. On Redis each attempt is one command. A
    /// pause never lasts longer than what is left of the holder's lease, or a third of the ttl.
    pub fn backoff(mut self, base: Duration, cap: Duration, jitter: f64) -> Self {
        self.options.backoff = Backoff { base, cap, jitter };
        self
    }

    /// Sets after how many attempts a call gives up: 1 and up. Default: without end.
    ///
    /// `lock` then gives [`Error::Busy`], the timed calls `None`. The pauses between them are those of
    /// [`backoff`](Self::backoff): by default three attempts are over within 3 ms. To look at a lock that this
    /// locker or a clone of it holds, or waits for, is an attempt too.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.options.attempts = Some(attempts);
        self
    }

    /// Sets how long a call keeps trying while the server can't be reached. Default: 10 s.
    ///
    /// Zero: the first attempt is the last. Each attempt takes at most the connect and the I/O timeout. Timed
    /// calls end with their own timeout if that is earlier. Opening a locker and `try_lock` never try again.
    pub fn unavailable_for(mut self, unavailable_for: Duration) -> Self {
        self.options.unavailable_for = unavailable_for;
        self
    }

    /// Sets how long making a connection may take: 10 ms to 60 s. Default: 2 s.
    ///
    /// Name lookup, TLS and login are part of it. No effect on `file:` and `memory:`.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.options.connect_timeout = timeout;
        self
    }

    /// Sets how long the answer to one command may take: 10 ms to 60 s. Default: 2 s.
    ///
    /// A release has at most 400 ms, of which a connection that was idle gets half. No effect on `file:` and
    /// `memory:`.
    pub fn io_timeout(mut self, timeout: Duration) -> Self {
        self.options.io_timeout = timeout;
        self
    }

    /// Sets how long the threads of this locker and its clones may go on handing a lease to one another, before
    /// other processes are let in: any. Default: 1 ms.
    ///
    /// It is counted from when the lease was granted. Within it a guard that is dropped passes its lease to the
    /// next thread that waits, without a round trip; each holder has a token of its own. It does so at most 1024
    /// times, and only while half of the ttl is left. A longer time is faster for these threads, and others wait for
    /// longer. Zero: never; each lock and each unlock is one command.
    pub fn hand_over(mut self, hand_over: Duration) -> Self {
        self.options.hand_over = hand_over;
        self
    }

    /// Checks the options, and opens the engine.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] for a value out of its range, and those of [`Locker::open`].
    pub fn build(self) -> Result<Locker> {
        self.options.check()?;
        let namespace = Namespace::new(&self.namespace)?;
        let engine = engine::open(&self.url, &self.options)?;
        let core = Arc::new(Core {
            renewers: PerProcess::new(Renewers::default()),
            farewells: PerProcess::new(Farewells::new(engine.clone())),
            queues: PerProcess::new(LocalQueues::default()),
            engine,
            options: self.options,
            clock: Arc::new(BootClock),
        });
        Ok(Locker { namespace, core })
    }
}

/// Without the URL, which may hold a password.
impl fmt::Debug for LockerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockerBuilder")
            .field("namespace", &self.namespace)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
