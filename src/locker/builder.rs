//! How a locker is made.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::base::backoff::Backoff;
use crate::base::claim::Prefer;
use crate::base::clock::{BootClock, Clock};
use crate::base::error::Result;
use crate::base::fork::ForkLocal;
use crate::base::name::Namespace;
use crate::base::options::Options;
use crate::core::Core;
use crate::engine;
use crate::locker::Locker;

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
    pub(crate) fn new(url: &str) -> Self {
        let (url, namespace) = (url.to_owned(), "crosslock".to_owned());
        LockerBuilder {
            url,
            namespace,
            options: Options::default(),
        }
    }

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
    /// `lock` then gives [`Error::Busy`](crate::Error::Busy), the timed calls `None`. The pauses between them are those of
    /// [`backoff`](Self::backoff): by default three attempts are over within 3 ms. To look at a lock that this
    /// locker or a clone of it holds, or waits for, is an attempt too.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.options.attempts = Some(attempts);
        self
    }

    /// Sets how long a call keeps trying while the server can't be reached, or can't serve. Default: 10 s.
    ///
    /// A server that can't serve starts, or runs a script, or can't write: it is a replica (READONLY), has too few of
    /// them (NOREPLICAS), couldn't save (MISCONF), or has no memory left (OOM).
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

    /// Sets who goes first where some want to read and others to write. Default: [`Prefer::Nobody`].
    ///
    /// Set the same in all programs that share a lock: one that prefers readers lets its own in while writers wait,
    /// and one that prefers writers has its own go before the readers that wait.
    ///
    /// # Examples
    ///
    /// ```
    /// # use crosslock::{Locker, Prefer};
    /// let lock = Locker::builder("memory:").prefer(Prefer::Writers).build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn prefer(mut self, prefer: Prefer) -> Self {
        self.options.prefer = prefer;
        self
    }

    /// Checks the options, and opens the engine.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](crate::Error::InvalidOption) for a value out of its range, and those of [`Locker::open`].
    pub fn build(self) -> Result<Locker> {
        self.options.check()?;
        let namespace = Namespace::new(&self.namespace)?;
        let clock: Arc<dyn Clock> = Arc::new(BootClock);
        let engine = engine::open::open(&self.url, &self.options, clock.clone())?;
        let core = ForkLocal::new(Core::new(engine, self.options, clock));
        Ok(Locker::new(namespace, Arc::new(core)))
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
