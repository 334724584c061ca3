//! A task that a worker has.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fmt, ops::Deref};

use super::id::TaskId;
use crate::base::{Error, ErrorChain, Event, Result, TaskEnd, TaskRecord};
use crate::{acquire::Calls, guard::LockGuard};

/// A task that a worker has taken. It dereferences to the task's value.
///
/// While it lives, a thread renews its lease. If the lease ends early, another worker gets the task. So check
/// [`Task::lease`] before each step that matters, and send [`Task::fencing_token`] with each write.
///
/// | how it ends | what follows |
/// |---|---|
/// | [`done`](Self::done) | it is gone, and an id of [`entry`](crate::DelayQueue::entry) is remembered for a while |
/// | [`retry_in`](Self::retry_in) | it is due again after that time |
/// | [`bury`](Self::bury) | it stays until it is kicked or removed |
/// | dropped, also during a panic | it is tried again after its backoff |
/// | the process dies, or can't reach the engine for a ttl | it is tried again as soon as its lease is over |
///
/// After its last try it is buried instead.
///
/// It has no methods, so that it hides none of the value's. Its functions take the task as an argument.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// use crosslock::Task;
///
/// # let locker = crosslock::Locker::open("memory:")?;
/// let jobs = locker.delay_queue::<u32>("task-example")?;
/// let id = jobs.insert(&7, Duration::ZERO)?;
/// let task = jobs.take()?;
/// assert_eq!((*task, Task::attempt(&task)), (7, 1));
/// assert!(Task::lease(&task).is_held());
/// Task::bury(task, "nobody can do it")?;
/// assert_eq!(jobs.buried(10)?[0].last_error.as_deref(), Some("nobody can do it"));
/// assert!(jobs.kick(&id)?);
/// # Ok::<(), crosslock::Error>(())
/// ```
#[must_use = "a task that is dropped is tried again: end it, `Task::done(task)`"]
pub struct Task<T> {
    lease: LockGuard,
    value: T,
    id: TaskId,
    attempt: u32,
    due: SystemTime,
    late: Duration,
}

/// What to do when it isn't known how a task ended.
const UNKNOWN: &str =
    "the outcome of the task may not have been stored; if it wasn't, the task runs again";

impl<T> Task<T> {
    pub(super) fn new(lease: LockGuard, value: T, record: TaskRecord) -> Self {
        let task = Task {
            lease,
            value,
            attempt: record.attempt,
            due: UNIX_EPOCH + Duration::from_micros(record.due),
            late: Duration::from_micros(record.now.saturating_sub(record.due)),
            id: TaskId::new(record.id),
        };
        task.lease.tell(|key, token| Event::TaskTaken {
            namespace: key.namespace(),
            name: key.name(),
            id: task.id.as_str(),
            token,
            attempt: task.attempt,
            late: task.late,
        });
        task
    }

    /// Returns the guard of the task's lease.
    ///
    /// Its [`is_held`](LockGuard::is_held), [`check`](LockGuard::check), [`lost`](LockGuard::lost) and
    /// [`fencing_token`](LockGuard::fencing_token) are about this try; [`was_abandoned`](LockGuard::was_abandoned) says
    /// whether the task's last worker vanished. Its name is the queue's.
    ///
    /// # Examples
    ///
    /// See [`Task`].
    pub fn lease(this: &Self) -> &LockGuard {
        &this.lease
    }

    /// Returns the fencing token of this try: larger than the token of each earlier try of any task of the queue. In a
    /// queue of several [shards](crate::DelayQueue::shards) this holds only for the tries of one task.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// use crosslock::Task;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// # let queue = locker.delay_queue::<u32>("task-token")?;
    /// queue.insert_all(&[(7, Duration::ZERO), (8, Duration::ZERO)])?;
    /// let (first, second) = (queue.take()?, queue.take()?);
    /// assert!(Task::fencing_token(&second) > Task::fencing_token(&first));
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn fencing_token(this: &Self) -> u64 {
        this.lease.fencing_token()
    }

    /// Returns the id of the task.
    ///
    /// # Examples
    ///
    /// ```
    /// use crosslock::Task;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// # let queue = locker.delay_queue::<u32>("task-id")?;
    /// queue.entry("invoice-17").insert(&7)?;
    /// assert_eq!(Task::id(&queue.take()?).as_str(), "invoice-17");
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn id(this: &Self) -> &TaskId {
        &this.id
    }

    /// Returns the number of this try: 1 for the first.
    ///
    /// # Examples
    ///
    /// See [`Task`].
    pub fn attempt(this: &Self) -> u32 {
        this.attempt
    }

    /// Returns when the task was due.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// use crosslock::Task;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// # let queue = locker.delay_queue::<u32>("task-due")?;
    /// queue.insert(&7, Duration::ZERO)?;
    /// println!("it was due at {:?}", Task::due(&queue.take()?));
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn due(this: &Self) -> SystemTime {
        this.due
    }

    /// Returns how long after its time the task was taken, by the engine's clock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// use crosslock::Task;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// # let queue = locker.delay_queue::<u32>("task-late")?;
    /// queue.insert(&7, Duration::ZERO)?;
    /// println!("it is {:?} late", Task::late(&queue.take()?));
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn late(this: &Self) -> Duration {
        this.late
    }

    /// Ends the task: it is done. One round trip.
    ///
    /// # Errors
    ///
    /// - [`Error::Lost`] when the lease is over. Nothing was changed: another worker has the task, or will.
    /// - [`Error::Unavailable`], [`Error::Denied`], [`Error::Conflict`] and [`Error::Engine`] when it isn't known
    ///   whether the engine knows that it is done. If it doesn't, the task is tried again.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// use crosslock::Task;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// # let queue = locker.delay_queue::<u32>("task-done")?;
    /// let id = queue.insert(&7, Duration::ZERO)?;
    /// Task::done(queue.take()?)?;
    /// assert!(queue.get(&id)?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn done(mut this: Self) -> Result<()> {
        this.end(TaskEnd::Done)
    }

    /// Ends this try. The task is due again after `delay`, or is buried if this was its last try. One round trip.
    ///
    /// # Errors
    ///
    /// The errors of [`done`](Self::done).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// use crosslock::Task;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// # let queue = locker.delay_queue::<u32>("task-retry")?;
    /// queue.insert(&7, Duration::ZERO)?;
    /// Task::retry_in(queue.take()?, Duration::from_millis(10))?;
    /// assert_eq!(Task::attempt(&queue.take()?), 2);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn retry_in(mut this: Self, delay: Duration) -> Result<()> {
        this.end(TaskEnd::RetryIn(delay, ""))
    }

    /// Gives the task up and stores the reason. It stays until it is kicked or removed. One round trip.
    ///
    /// # Errors
    ///
    /// The errors of [`done`](Self::done).
    ///
    /// # Examples
    ///
    /// See [`Task`].
    pub fn bury(mut this: Self, why: &str) -> Result<()> {
        this.end(TaskEnd::Bury(why))
    }

    /// Ends this try, and gives the lease of the next task of the queue, if one is ready.
    pub(super) fn end_for_next(
        mut self,
        calls: Calls<'_>,
        end: TaskEnd<'_>,
    ) -> (Result<()>, Result<Option<LockGuard>>) {
        self.tell_end(end);
        calls.exchange(&mut self.lease, end.to_bytes().into())
    }

    pub(super) fn bury_unread(lease: &mut LockGuard, error: &Error) {
        let end = TaskEnd::Bury(&error.to_string()).to_bytes();
        if let Err(e) = lease.release_storing(Some(end.into())) {
            log::warn!(
                "can't bury a task whose value can't be read: {}",
                ErrorChain(&e)
            );
        }
    }

    pub(super) fn end(&mut self, end: TaskEnd<'_>) -> Result<()> {
        self.tell_end(end);
        let ended = self.lease.release_storing(Some(end.to_bytes().into()));
        ended.map_err(|e| e.advising(UNKNOWN))
    }

    fn tell_end(&self, end: TaskEnd<'_>) {
        let how = match end {
            TaskEnd::Done => "done",
            TaskEnd::Retry(_) | TaskEnd::RetryIn(..) => "retried",
            TaskEnd::Bury(_) => "buried",
        };
        self.lease.tell(|key, token| Event::TaskEnded {
            namespace: key.namespace(),
            name: key.name(),
            id: self.id.as_str(),
            token,
            how,
        });
    }
}

impl<T> Deref for Task<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A task that is dropped by a panic keeps that as its error.
impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if self.lease.is_inherited() || self.lease.has_ended() {
            return;
        }
        if !self.lease.is_panicked() {
            self.tell_end(TaskEnd::Retry(""));
        } else {
            // A logger that panics must not end a process whose thread is unwinding.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                if let Err(e) = self.end(TaskEnd::Retry("the worker panicked")) {
                    log::warn!("can't store the outcome of a task: {}", ErrorChain(&e));
                }
            }));
        }
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("id", &self.id)
            .field("attempt", &self.attempt)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}
