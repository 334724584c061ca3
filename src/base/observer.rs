//! What happens to the locks of a locker, for those who watch: metrics, traces, logs.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{Error, LostReason};
use crate::base::name::Key;
use crate::base::token::Token;

/// Receives the events of a locker: see [`LockerBuilder::observer`](crate::LockerBuilder::observer).
///
/// The thread that finds an event calls the observer: the thread of the call, the thread that renews a lease, a thread
/// that asks a guard whether it is held and finds its lease over, or a thread that receives the server's messages. The
/// thread continues when the observer returns. So an observer must be fast, must not block, and must not use the locker
/// that it observes. The library holds no lock of its own during the call. A panic of the observer is caught and has no
/// effect.
///
/// # Forks
///
/// A guard that a child of `fork` has inherited causes no events in the child. The child's own locks call its copy of
/// the observer, which continues from the parent's counts.
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
    /// Receives one event.
    fn event(&self, event: &Event<'_>);
}

/// An event in the life of a lock or a task: the argument of [`Observer::event`].
///
/// What always holds:
///
/// - Each call that waits causes one `Waiting`, and then one `Acquired` or one `GaveUp`. A call that gets its lock at
///   once causes only `Acquired`. A call that finds the lock taken and doesn't wait causes no event.
/// - Each `Acquired` is followed by one `Released` or one `Lost` with the same token. A guard that is lost and later
///   dropped causes only `Lost`. A forgotten guard causes neither: it stays held.
/// - When a thread hands its lease over, it causes `Released`, and the next thread causes `Acquired`.
/// - [`LockGuard::downgrade`](crate::LockGuard::downgrade) causes `Released` for the exclusive lock and `Acquired` for
///   the read lock, which has its own token.
/// - Events of one lease come in order. Events of different threads may overtake each other.
/// - The lease of a task causes the events of a lock with the queue's name, besides the events of the task.
///
/// If a guard holds several locks, the name in its events is that of [`LockGuard::name`](crate::LockGuard::name), with
/// all names.
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
    /// A call starts to wait, because the lock is taken, or because no task of the queue is due.
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
        /// Whether the previous holder never released the lock.
        abandoned: bool,
    },
    /// A waiting call ended without the lock: after its timeout, its number of attempts, a cancellation or an error.
    #[non_exhaustive]
    GaveUp {
        /// The lock's namespace.
        namespace: &'a str,
        /// The lock's name.
        name: &'a str,
        /// How long the call took.
        waited: Duration,
        /// The error, if there is one. A call whose timeout ended has none: it returned `Ok(None)`.
        error: Option<&'a Error>,
    },
    /// A holder released the lock, handed it over to another thread, or turned it into a ticket. If the engine can't be
    /// reached, the release continues in the background.
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
    /// A lease ended before its holder released it. This may be found by the release itself.
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
        /// How the end was noticed.
        reason: LostReason,
    },
    /// A call can't reach the engine, or the engine can't serve it, or a renewal failed and the one before it didn't.
    /// Each call and each lease that is affected causes one.
    #[non_exhaustive]
    OutageBegan {
        /// The namespace of the affected lock.
        namespace: &'a str,
        /// The name of the affected lock.
        name: &'a str,
        /// Where locks live, without user and password.
        engine: &'a str,
        /// What was found.
        error: &'a Error,
    },
    /// The engine answered the same call, or a renewal of the same lease, again. A call or lease that ended during the
    /// outage causes none.
    #[non_exhaustive]
    OutageEnded {
        /// The namespace of the affected lock.
        namespace: &'a str,
        /// The name of the affected lock.
        name: &'a str,
        /// Where locks live, without user and password.
        engine: &'a str,
        /// How long it has lasted for this call or lease.
        lasted: Duration,
    },
    /// This program ended the leases of a lock with [`Locker::break_lock`](crate::Locker::break_lock). Breaking a free
    /// lock causes no event.
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
    /// A worker took a task. Its lease causes the events of a lock with the queue's name, too.
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
    /// A worker ended a task, or dropped it.
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
        /// `done`, `retried` or `buried`, as the worker asked. A task that is retried after its last try is buried.
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
