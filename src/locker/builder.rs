//! How a locker is made.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::{fmt, sync::Arc, time::Duration};

use crate::base::{
    Backoff, BootClock, Clock, ForkLocal, Namespace, Observer, Observers, Options, Prefer, Result,
};
use crate::{core::Core, engine, locker::Locker};

/// Sets the options of a [`Locker`].
///
/// Setters chain, and [`build`](Self::build) checks them all. A value out of its range is an error. It is never
/// adjusted.
///
/// | option | range | default |
/// |---|---|---|
/// | [`namespace`](Self::namespace) | up to 64 of `A-Z a-z 0-9 . _ -` | `crosslock` |
/// | [`ttl`](Self::ttl) | 100 ms to 24 h | 10 s |
/// | [`renew_every`](Self::renew_every) | 10 ms to ttl / 2 | ttl / 3 |
/// | [`renew`](Self::renew) | | `true` |
/// | [`max_hold`](Self::max_hold) | 1 ms and up | none |
/// | [`prefer`](Self::prefer) | `Fair`, `Readers`, `Writers` | `Fair` |
/// | [`hand_over`](Self::hand_over) | any | 1 ms |
/// | [`backoff`](Self::backoff) | 100 us to 60 s; 0.0 to 1.0 | 1 ms, 100 ms, 0.5 |
/// | [`attempts`](Self::attempts) | 1 and up | none |
/// | [`outage_timeout`](Self::outage_timeout) | any | 10 s |
/// | [`connect_timeout`](Self::connect_timeout) | 10 ms to 60 s | 2 s |
/// | [`io_timeout`](Self::io_timeout) | 10 ms to 60 s | 2 s |
/// | [`min_replicas`](Self::min_replicas) | any | 0 |
/// | [`replica_timeout`](Self::replica_timeout) | 10 ms to 60 s | 500 ms |
/// | [`clock_skew`](Self::clock_skew) | 0 to ttl / 4 | 10 ms with several Redis servers |
/// | [`label`](Self::label) | 1 to 128 bytes | none |
/// | [`observer`](Self::observer) | | none |
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
    #[cfg(feature = "testing")]
    opener: Option<Opener>,
}

/// Opens what isn't named by a URL.
#[cfg(feature = "testing")]
pub(crate) type Opener = Arc<dyn Fn(Options) -> Arc<ForkLocal<Core>> + Send + Sync>;

impl LockerBuilder {
    pub(crate) fn new(url: &str) -> Self {
        let namespace = Namespace::default().as_str().to_owned();
        LockerBuilder {
            url: url.to_owned(),
            namespace,
            options: Options::default(),
            #[cfg(feature = "testing")]
            opener: None,
        }
    }

    /// One that has no URL.
    #[cfg(feature = "testing")]
    pub(crate) fn opened_by(opener: Opener) -> Self {
        LockerBuilder {
            opener: Some(opener),
            ..LockerBuilder::new("")
        }
    }

    /// Sets the prefix that keeps applications apart: up to 64 of `A-Z a-z 0-9 . _ -`. Default: `crosslock`.
    ///
    /// If it is empty, the key of a lock on Redis is the name itself, so that other programs can share it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let locker = crosslock::Locker::builder("memory:").namespace("deploy").build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn namespace(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        self
    }

    /// Sets how long a lease lasts without renewal: 100 ms to 24 h. Default: 10 s.
    ///
    /// If a holder crashes, others wait this long. A short ttl costs more renewals, and a process that can't renew for
    /// that long (a pause, a slow disk, a network that is down) loses its locks. On `file:` the lock of a crashed
    /// holder is free at once, and the ttl matters only if leases aren't renewed. If they are, a holder checks three
    /// times per ttl whether its lock was broken.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let locker = crosslock::Locker::builder("memory:").ttl(Duration::from_secs(30)).build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.options.ttl = ttl;
        self
    }

    /// Sets how often a lease is renewed: 10 ms to half of the ttl. Default: a third of the ttl.
    ///
    /// Each renewal is one command, sent up to 10 % earlier, at random. A third of the ttl leaves time for a second
    /// try.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let locker = crosslock::Locker::builder("memory:").renew_every(Duration::from_secs(1)).build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn renew_every(mut self, every: Duration) -> Self {
        self.options.renew_every = Some(every);
        self
    }

    /// Sets whether leases are renewed. Default: true.
    ///
    /// Without renewal a lock is lost one ttl after it was taken, whether its holder is done or not. A lock that
    /// another thread of this process handed over is lost earlier: by up to [`hand_over`](Self::hand_over), at most
    /// half of the ttl.
    ///
    /// # Examples
    ///
    /// ```
    /// let locker = crosslock::Locker::builder("memory:").renew(false).build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn renew(mut self, renew: bool) -> Self {
        self.options.renew = renew;
        self
    }

    /// Sets for how long a lease is renewed: 1 ms and up. Default: without end.
    ///
    /// After this time the lease isn't renewed any more, and is lost within a ttl. So a holder that hangs can't keep
    /// its lock for ever.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let locker = crosslock::Locker::builder("memory:").max_hold(Duration::from_secs(3600)).build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.options.max_hold = Some(max_hold);
        self
    }

    /// Sets the pauses between attempts, where a call has to poll. Default: 1 ms, 100 ms, 0.5.
    ///
    /// A call polls if it has a number of [`attempts`](Self::attempts), or waits for another program's lock. Every call
    /// polls while the server can't be reached or its messages don't arrive.
    ///
    /// The pauses double from `base` (100 us and up) to `cap` (at most 60 s). Each is shortened at random by up to
    /// `jitter` (0.0 to 1.0) of its length. On Redis each attempt is one command. A pause ends with the holder's lease,
    /// and after a third of the ttl, unless thousands wait.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let locker = crosslock::Locker::builder("memory:")
    ///     .backoff(Duration::from_millis(5), Duration::from_secs(1), 0.5)
    ///     .build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn backoff(mut self, base: Duration, cap: Duration, jitter: f64) -> Self {
        self.options.backoff = Backoff { base, cap, jitter };
        self
    }

    /// Sets after how many attempts a call gives up: 1 and up. Default: without end.
    ///
    /// `lock` then returns [`Error::Busy`](crate::Error::Busy), and the timed calls return `None`. Between attempts
    /// the call makes the pauses of [`backoff`](Self::backoff): by default at most 3 ms in all for three attempts.
    /// If this locker or a clone of it holds the lock or waits for it, that counts as an attempt too.
    ///
    /// # Examples
    ///
    /// ```
    /// let locker = crosslock::Locker::builder("memory:").attempts(3).build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.options.attempts = Some(attempts);
        self
    }

    /// Sets how long a call keeps trying while the server can't be reached, or can't serve. Default: 10 s.
    ///
    /// A server can't serve while it starts, runs a script, or can't write: it is a replica (READONLY), has too few
    /// replicas (NOREPLICAS), couldn't save (MISCONF), or has no memory left (OOM).
    ///
    /// With zero the first attempt is the last. Each attempt takes at most the connect and the I/O timeout. A timed
    /// call ends with its own timeout if that is earlier. Opening a locker and `try_lock` never try again.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let locker = crosslock::Locker::builder("memory:").outage_timeout(Duration::ZERO).build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn outage_timeout(mut self, outage_timeout: Duration) -> Self {
        self.options.outage_timeout = outage_timeout;
        self
    }

    /// Sets how long making a connection may take: 10 ms to 60 s. Default: 2 s.
    ///
    /// That includes name lookup, TLS and login. No effect on `file:` and `memory:`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let locker = crosslock::Locker::builder("memory:").connect_timeout(Duration::from_secs(1)).build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.options.connect_timeout = timeout;
        self
    }

    /// Sets how long the answer to one command may take: 10 ms to 60 s. Default: 2 s.
    ///
    /// A release has at most 400 ms, of which a connection that was idle gets half. No effect on `file:` and
    /// `memory:`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let locker = crosslock::Locker::builder("memory:").io_timeout(Duration::from_millis(500)).build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn io_timeout(mut self, timeout: Duration) -> Self {
        self.options.io_timeout = timeout;
        self
    }

    /// Sets how long threads of this locker and its clones may hand a lease over to one another before other processes
    /// have their turn: any. Default: 1 ms.
    ///
    /// The time counts from when the server granted the lease. Within this time, and while half of the ttl is left, a
    /// dropped guard leaves its lease to other threads of this process, without a round trip. A running thread may take
    /// it before a sleeping one, but each waiting thread has its turn within about 0.5 ms. A longer time is faster for
    /// these threads, and makes other processes wait longer. With zero, a lease is never handed over: each lock and
    /// each unlock is one command.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let locker = crosslock::Locker::builder("memory:").hand_over(Duration::from_millis(10)).build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn hand_over(mut self, hand_over: Duration) -> Self {
        self.options.hand_over = hand_over;
        self
    }

    /// Sets whether readers or writers go first. Default: [`Prefer::Fair`].
    ///
    /// Use the same setting in all programs that share a lock. Otherwise, readers of a program that prefers readers
    /// pass the waiting writers of other programs, and writers of a program that prefers writers pass their waiting
    /// readers.
    ///
    /// # Examples
    ///
    /// ```
    /// # use crosslock::{Locker, Prefer};
    /// let locker = Locker::builder("memory:").prefer(Prefer::Writers).build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn prefer(mut self, prefer: Prefer) -> Self {
        self.options.prefer = prefer;
        self
    }

    /// Sets how many replicas must confirm a lease before it is granted or renewed, on Redis. 0 and up, default: 0.
    ///
    /// If all replicas must confirm, a failover loses no lease. With a smaller number it may: see `docs/replicas.md`. A
    /// lease that too few replicas confirm isn't granted or renewed. `?min_replicas=N` in the URL takes precedence.
    ///
    /// # Examples
    ///
    /// ```
    /// let locker = crosslock::Locker::builder("memory:").min_replicas(1).build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn min_replicas(mut self, replicas: u32) -> Self {
        self.options.min_replicas = replicas;
        self
    }

    /// Sets how long the server waits for replicas to confirm a lease. 10 ms to 60 s, default: 500 ms.
    ///
    /// If the call has less than twice that time left, the server waits for half of what is left.
    /// `?replica_timeout=500ms` in the URL takes precedence.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = crosslock::Locker::builder("memory:").min_replicas(1);
    /// let locker = builder.replica_timeout(Duration::from_millis(200)).build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn replica_timeout(mut self, timeout: Duration) -> Self {
        self.options.replica_timeout = timeout;
        self
    }

    /// Sets how far the clocks of servers that replace each other may differ. 0 to ttl / 4, default: 10 ms
    /// where there are several servers: with Sentinel, in a cluster, in a quorum and with
    /// [`min_replicas`](Self::min_replicas).
    ///
    /// A lease is valid for its ttl less this time. `?clock_skew=10ms` in the URL takes precedence.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = crosslock::Locker::builder("memory:");
    /// let locker = builder.clock_skew(Duration::from_millis(50)).build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.options.clock_skew = Some(skew);
        self
    }

    /// Sets a text that others see beside this locker's holders and waiters: 1 to 128 bytes without control characters.
    /// Default: none.
    ///
    /// [`Locker::inspect`] shows it after host, process and thread, and so do the logs of programs that wait for this
    /// one. Use it for a deploy number, the name of a job or the id of a request. It is stored with the lock, as part
    /// of the owner, and adds its length to each command.
    ///
    /// # Examples
    ///
    /// ```
    /// let locker = crosslock::Locker::builder("memory:").label("deploy 4711").build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn label(mut self, label: &str) -> Self {
        self.options.label = Some(label.into());
        self
    }

    /// Sets an observer of this locker's locks. Default: none, which costs nothing.
    ///
    /// # Examples
    ///
    /// See [`Observer`].
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.options.observer = Observers::of(observer);
        self
    }

    /// Checks the options, and opens the engine.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](crate::Error::InvalidOption) for a value out of its range, and the errors of
    /// [`Locker::open`].
    ///
    /// # Examples
    ///
    /// ```
    /// let locker = crosslock::Locker::builder("memory:").namespace("deploy").build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn build(self) -> Result<Locker> {
        self.options.check()?;
        let namespace = Namespace::new(&self.namespace)?;
        #[cfg(feature = "testing")]
        if let Some(open) = self.opener {
            return Ok(Locker::new(namespace, open(self.options)));
        }
        let clock: Arc<dyn Clock> = Arc::new(BootClock);
        let engine = engine::open::open(&self.url, &self.options, clock.clone())?;
        let core = ForkLocal::new(Core::new(engine, self.options, clock));
        Ok(Locker::new(namespace, Arc::new(core)))
    }
}

// A panic leaves nothing half done in it. An observer is called where panics are caught.
impl UnwindSafe for LockerBuilder {}
impl RefUnwindSafe for LockerBuilder {}

/// Without the URL, which may hold a password.
impl fmt::Debug for LockerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockerBuilder")
            .field("namespace", &self.namespace)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::cancel::CancelToken;

    #[test]
    fn builder_and_token_may_be_used_after_a_panic_that_was_caught() {
        fn is_safe<T: UnwindSafe + RefUnwindSafe>() {}
        is_safe::<LockerBuilder>();
        is_safe::<CancelToken>();
    }
}
