//! What happens to the locks of a locker, for those who watch: metrics, traces, logs.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{Error, LostReason};
use crate::base::name::Key;
use crate::base::token::Token;

/// Is told what happens to the locks of a locker: see [`LockerBuilder::observer`](crate::LockerBuilder::observer).
///
/// Events come from the thread to which they happen: from that of the call, from that which renews a lease, and from
/// any that asks a guard whether it is held, and so finds its lease over. The call goes on when the observer returns.
/// So an observer must be fast, must not block, and must not use the locker that it observes. The library holds no lock
/// of its own meanwhile. A panic of the observer is caught, and changes nothing.
///
/// # Forks
///
/// A guard that a child made by `fork` has inherited tells nothing there. The child's own locks are told to its copy of
/// the observer, which goes on from what its parent's had counted.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use crosslock::{Event, Locker, Observer};
///
/// #[derive(Default)]
/// struct Count(AtomicU64);
///
/// impl Observer for Count {
///     fn event(&self, event: &Event<'_>) {
///         if let Event::Acquired { .. } = event {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
///
/// # fn main() -> crosslock::Result<()> {
/// let count = Arc::new(Count::default());
/// let locker = Locker::builder("memory:").observer(count.clone()).build()?;
/// drop(locker.lock("observer-example")?);
/// assert_eq!(count.0.load(Ordering::Relaxed), 1);
/// # Ok(())
/// # }
/// ```
pub trait Observer: Send + Sync {
    /// Is called once for each event.
    fn event(&self, event: &Event<'_>);
}

/// Says what has happened: the argument of [`Observer::event`].
///
/// What always holds:
///
/// - For each call that waits there is one `Waiting`, and then one `Acquired` or one `GaveUp`. A call that gets its
///   lock at once has `Acquired` only. A call that doesn't wait, and finds the lock taken, tells nothing.
/// - For each `Acquired` there is one `Released` or one `Lost`, of the same token. A guard that is lost, and dropped
///   later, has `Lost` only. One that is forgotten has neither: it is held on.
/// - A lease that is handed over is `Released` by one thread, and then `Acquired` by the next.
/// - [`LockGuard::downgrade`](crate::LockGuard::downgrade) is `Released` for the exclusive lock, and `Acquired` for the
///   reading one, which has a token of its own.
/// - Events of one lease come in the order in which they happen. Those of several threads may overtake each other.
///
/// - The lease of a task of a delay queue is told as that of a lock by the queue's name, and the task besides.
///
/// The name of several locks that are held by one guard is that of
/// [`LockGuard::name`](crate::LockGuard::name): the text has all names.
///
/// # Examples
///
/// ```
/// use crosslock::Event;
///
/// fn line(event: &Event<'_>) -> String {
///     match event {
///         Event::Acquired { name, waited, .. } => format!("{name}: after {waited:?}"),
///         Event::Lost { name, reason, .. } => format!("{name}: lost, {reason}"),
///         other => format!("{other:?}"),
///     }
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A call waits, because the lock is taken.
    #[non_exhaustive]
    Waiting {
        /// The lock's namespace.
        namespace: &'a str,
        /// The lock's name.
        name: &'a str,
    },
    /// A call has the lock.
    #[non_exhaustive]
    Acquired {
        /// The lock's namespace.
        namespace: &'a str,
        /// The lock's name.
        name: &'a str,
        /// The fencing token.
        token: u64,
        /// How long the call took. Zero for a downgrade.
        waited: Duration,
        /// Whether there was a `Waiting` for this call.
        was_waiting: bool,
        /// Whether another thread of this process handed its lease over.
        handed_over: bool,
        /// Whether the holder before never released the lock.
        abandoned: bool,
    },
    /// A call that was waiting ends without the lock: by its timeout, its number of attempts, a cancel, or an error.
    #[non_exhaustive]
    GaveUp {
        /// The lock's namespace.
        namespace: &'a str,
        /// The lock's name.
        name: &'a str,
        /// How long the call took.
        waited: Duration,
        /// The error, if it ends with one. A call with a timeout ends with `None`, and so without an error.
        error: Option<&'a Error>,
    },
    /// A holder has released the lock, or has handed it over or passed it on. If the engine can't be reached, the
    /// release goes on in the background.
    #[non_exhaustive]
    Released {
        /// The lock's namespace.
        namespace: &'a str,
        /// The lock's name.
        name: &'a str,
        /// The fencing token.
        token: u64,
        /// How long it was held, until its holder began to release it.
        held: Duration,
    },
    /// A lease was renewed.
    #[non_exhaustive]
    Renewed {
        /// The lock's namespace.
        namespace: &'a str,
        /// The lock's name.
        name: &'a str,
        /// The fencing token.
        token: u64,
    },
    /// A renewal failed, and is tried again.
    #[non_exhaustive]
    RenewalFailed {
        /// The lock's namespace.
        namespace: &'a str,
        /// The lock's name.
        name: &'a str,
        /// The fencing token.
        token: u64,
        /// For how much longer the lease is valid without another renewal.
        remaining: Duration,
        /// Why.
        error: &'a Error,
    },
    /// A lease has ended before its holder released it. A release that finds so tells it too.
    #[non_exhaustive]
    Lost {
        /// The lock's namespace.
        namespace: &'a str,
        /// The lock's name.
        name: &'a str,
        /// The fencing token.
        token: u64,
        /// How long it was held.
        held: Duration,
        /// How that was noticed.
        reason: LostReason,
    },
    /// A call for a lock can't reach the engine, or the engine can't serve; or a renewal failed, after one that didn't.
    /// There is one for each call, and one for each lease, that finds it.
    #[non_exhaustive]
    OutageBegan {
        /// The namespace of the lock that it was found by.
        namespace: &'a str,
        /// The name of that lock.
        name: &'a str,
        /// Where locks live, without user and password.
        engine: &'a str,
        /// What was found.
        error: &'a Error,
    },
    /// The same call, or a renewal of the same lease, is answered again. There is none for a call or a lease that ends
    /// before.
    #[non_exhaustive]
    OutageEnded {
        /// The namespace of the lock that it was found by.
        namespace: &'a str,
        /// The name of that lock.
        name: &'a str,
        /// Where locks live, without user and password.
        engine: &'a str,
        /// How long it has lasted for this call or lease.
        lasted: Duration,
    },
    /// This program has ended the leases of a lock by [`Locker::break_lock`](crate::Locker::break_lock). Breaking one
    /// that is free tells nothing.
    #[non_exhaustive]
    Broken {
        /// The lock's namespace.
        namespace: &'a str,
        /// The lock's name.
        name: &'a str,
        /// How many leases it has ended.
        holders: usize,
    },
    /// Tasks were inserted into a delay queue.
    #[non_exhaustive]
    TasksInserted {
        /// The queue's namespace.
        namespace: &'a str,
        /// The queue's name.
        name: &'a str,
        /// How many.
        tasks: usize,
    },
    /// A worker has a task. Its lease is told as that of a lock, by the name of the queue.
    #[non_exhaustive]
    TaskTaken {
        /// The queue's namespace.
        namespace: &'a str,
        /// The queue's name.
        name: &'a str,
        /// The task's id.
        id: &'a str,
        /// The fencing token.
        token: u64,
        /// Which try it is: 1 for the first.
        attempt: u32,
        /// How long after its time it was taken, by the engine's clock.
        late: Duration,
    },
    /// A worker has ended a task, or dropped it.
    #[non_exhaustive]
    TaskEnded {
        /// The queue's namespace.
        namespace: &'a str,
        /// The queue's name.
        name: &'a str,
        /// The task's id.
        id: &'a str,
        /// The fencing token.
        token: u64,
        /// `done`, `retried` or `buried`, as the worker says. A task that is retried after its last try is buried.
        how: &'static str,
    },
}

/// The observer of a locker, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Observers(Option<Arc<dyn Observer>>);

impl Observers {
    pub(crate) fn of(observer: Arc<dyn Observer>) -> Self {
        Observers(Some(observer))
    }

    /// Whether there is one: then what costs something may be found out for it.
    pub(crate) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// Tells what has happened.
    pub(crate) fn tell<'a>(&self, event: impl FnOnce() -> Event<'a>) {
        if let Some(observer) = &self.0 {
            tell(&**observer, &event());
        }
    }

    /// A lock was taken by what isn't a call for it, and doesn't wait: by a downgrade.
    pub(crate) fn acquired_at_once(&self, key: &Key, token: Token) {
        self.tell(|| Event::Acquired {
            namespace: key.namespace(),
            name: key.name(),
            token: token.number,
            waited: Duration::ZERO,
            was_waiting: false,
            handed_over: false,
            abandoned: token.abandoned,
        });
    }

    pub(crate) fn released(&self, key: &Key, token: u64, held: Duration) {
        self.tell(|| Event::Released {
            namespace: key.namespace(),
            name: key.name(),
            token,
            held,
        });
    }

    pub(crate) fn lost(
        &self,
        key: &Key,
        token: u64,
        held: impl FnOnce() -> Duration,
        reason: LostReason,
    ) {
        self.tell(|| Event::Lost {
            namespace: key.namespace(),
            name: key.name(),
            token,
            held: held(),
            reason,
        });
    }

    pub(crate) fn renewed(&self, key: &Key, token: u64) {
        self.tell(|| Event::Renewed {
            namespace: key.namespace(),
            name: key.name(),
            token,
        });
    }

    pub(crate) fn renewal_failed(&self, key: &Key, token: u64, remaining: Duration, error: &Error) {
        self.tell(|| Event::RenewalFailed {
            namespace: key.namespace(),
            name: key.name(),
            token,
            remaining,
            error,
        });
    }

    pub(crate) fn outage_began(&self, key: &Key, engine: &str, error: &Error) {
        self.tell(|| Event::OutageBegan {
            namespace: key.namespace(),
            name: key.name(),
            engine,
            error,
        });
    }

    pub(crate) fn outage_ended(&self, key: &Key, engine: &str, lasted: impl FnOnce() -> Duration) {
        self.tell(|| Event::OutageEnded {
            namespace: key.namespace(),
            name: key.name(),
            engine,
            lasted: lasted(),
        });
    }
}

#[cold]
#[inline(never)]
fn tell(observer: &dyn Observer, event: &Event<'_>) {
    // An observer that panics must not break a call, end a renewer, or abort a thread that unwinds already.
    let _ = catch_unwind(AssertUnwindSafe(|| observer.event(event)));
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Some(..)" } else { "None" })
    }
}
