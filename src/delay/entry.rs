//! A task that is about to be inserted under an id of the program's.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Serialize, de::DeserializeOwned};

use super::id::TaskId;
use super::queue::{DelayQueue, since_1970};
use crate::base::{Due, IfExists, NewTask, Policy, Result, sys};

/// A task that is about to be inserted under an id that the program chose: see [`DelayQueue::entry`].
///
/// Setters chain, and [`insert`](Self::insert) inserts.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # let locker = crosslock::Locker::open("memory:")?;
/// let mail = locker.delay_queue::<String>("entry-example")?;
/// let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3600));
/// let is_new = mail
///     .entry("invoice-17")
///     .after(hour)
///     .tries(5)
///     .backoff(second, hour)
///     .insert(&"to: ada".to_owned())?;
/// assert!(is_new);
/// assert!(!mail.entry("invoice-17").insert(&"again".to_owned())?);
/// # Ok::<(), crosslock::Error>(())
/// ```
#[must_use = "an entry is inserted by `insert`"]
pub struct Entry<'a, T> {
    queue: &'a DelayQueue<T>,
    id: TaskId,
    due: Due,
    policy: Policy,
    if_exists: IfExists,
}

impl<T: Serialize + DeserializeOwned> DelayQueue<T> {
    /// Returns an entry for a task with an id of your own, which serves as an idempotence key.
    ///
    /// # Examples
    ///
    /// See [`Entry`].
    pub fn entry(&self, id: impl Into<TaskId>) -> Entry<'_, T> {
        Entry::new(self, id.into())
    }
}

impl<'a, T: Serialize + DeserializeOwned> Entry<'a, T> {
    pub(super) fn new(queue: &'a DelayQueue<T>, id: TaskId) -> Self {
        Entry {
            queue,
            id,
            due: Due::After(Duration::ZERO),
            policy: queue.policy,
            if_exists: IfExists::Keep,
        }
    }

    /// Sets how long after its insert the task is due, by the engine's clock. By default it is due at once.
    ///
    /// # Examples
    ///
    /// See [`Entry`].
    pub fn after(self, delay: Duration) -> Self {
        let due = Due::After(delay);
        Entry { due, ..self }
    }

    /// Sets the time when the task is due. With a time in the past it is due at once.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use std::time::SystemTime;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// # let queue = locker.delay_queue::<u32>("entry-at")?;
    /// let new_year = SystemTime::UNIX_EPOCH + Duration::from_secs(1_893_456_000);
    /// queue.entry("new-year").at(new_year).insert(&2030)?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn at(self, time: SystemTime) -> Self {
        let due = Due::At(since_1970(time));
        Entry { due, ..self }
    }

    /// Sets how often the task is tried before it is buried; 0 means without end. Default: 25.
    ///
    /// A try counts as soon as a worker takes the task, even if the worker then vanishes.
    ///
    /// # Examples
    ///
    /// See [`Entry`].
    pub fn tries(mut self, tries: u32) -> Self {
        self.policy.tries = tries;
        self
    }

    /// Sets how long the task waits after its first try, and the longest wait, in whole milliseconds. The wait doubles
    /// after each try. Default: 1 s and 1 h.
    ///
    /// Each wait is up to a fifth shorter, at random, so that tasks that fail together aren't tried together.
    ///
    /// # Examples
    ///
    /// See [`Entry`].
    pub fn backoff(mut self, base: Duration, cap: Duration) -> Self {
        (self.policy.base, self.policy.cap) = (base, cap);
        self
    }

    /// Sets what happens if the queue has a task with this id. By default the old one stays.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// use crosslock::IfExists;
    ///
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let queue = locker.delay_queue::<u32>("if-exists")?;
    /// let minute = Duration::from_secs(60);
    /// assert!(queue.entry("a").after(minute).insert(&1)?);
    /// assert!(!queue.entry("a").after(minute).insert(&2)?, "the first stays");
    /// assert!(queue.entry("a").after(minute).if_exists(IfExists::Replace).insert(&3)?);
    /// # assert_eq!(queue.get(&"a".into())?.map(|task| task.value), Some(3));
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn if_exists(self, if_exists: IfExists) -> Self {
        Entry { if_exists, ..self }
    }

    /// Inserts the task, and returns whether that changed anything: one round trip.
    ///
    /// `false` means that the queue has a task with this id and [`IfExists::Keep`] kept it, or that the task is
    /// running, or that it was done within [`remember`](DelayQueue::remember). If the answer is lost and you repeat the
    /// call, the task isn't inserted twice.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`](crate::Error::InvalidName) when the id has no bytes or more than 512.
    /// - [`Error::InvalidValue`](crate::Error::InvalidValue) when the value can't be written as JSON and read again, or
    ///   is longer than [`payload_limit`](DelayQueue::payload_limit).
    /// - [`Error::Unavailable`](crate::Error::Unavailable), [`Error::Denied`](crate::Error::Denied),
    ///   [`Error::Conflict`](crate::Error::Conflict) and [`Error::Engine`](crate::Error::Engine) when the engine can't
    ///   be reached or fails. It may be inserted or not; insert it again.
    ///
    /// # Examples
    ///
    /// See [`Entry`].
    pub fn insert(self, value: &T) -> Result<bool> {
        let payload = self.queue.payload(value)?;
        let task = NewTask {
            id: self.id.checked()?,
            payload: &payload,
            due: self.due,
            policy: self.policy,
            if_exists: self.if_exists,
        };
        let nonce = sys::random_uuid().simple().to_string();
        let changed = self.queue.insert_tasks(&[task], Some(&nonce))?;
        Ok(changed.first() == Some(&true))
    }
}

impl<T> fmt::Debug for Entry<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
