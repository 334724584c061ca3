//! A delay queue: what is inserted, looked at and changed. How tasks are taken is in `task`.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fmt, marker::PhantomData, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};

use super::shards::{MOST_SHARDS, shard_of, shards_of};
use super::{id::TaskId, task::Task};
use crate::base::{
    CancelToken, Claim, Deadline, Due, Error, Event, IfExists, Key, Mode, NewTask, Policy, Result,
    TaskAnswer, TaskCall, TaskCounts, TaskEnd, TaskRecord, TaskState, sys::time,
};
use crate::primitives::value::{from_json, to_json};
use crate::{engine::Engine, guard::LockGuard, locker::Locker};

/// A queue of tasks that become due at a time. If a worker crashes, its task is tried again, until it is done or
/// buried.
///
/// Tasks are values of `T`, stored as JSON. They stay where the locks are until they are done or removed. On `memory:`
/// they end with the process. Every process that opens the queue with its name can insert and take tasks. Clones are
/// cheap.
///
/// `docs/delay.md` has the guarantees, what breaks them, and when not to use a delay queue.
///
/// # A task is a guard
///
/// [`take`](Self::take) blocks until a task is due, and gives it to one worker, with a lease that a thread renews and a
/// fencing token. [`Task::done`] ends it. If a task is dropped, if its worker panics, or if its process dies, the task
/// is tried again.
///
/// # Waiting
///
/// Workers don't poll. The first waiting worker sleeps until the next task is due, and the others sleep until they are
/// woken. Workers get tasks first come, first served.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// use crosslock::Task;
///
/// # let locker = crosslock::Locker::open("memory:")?;
/// let mail = locker.delay_queue::<String>("queue-example")?;
/// mail.insert(&"to: ada".to_owned(), Duration::from_millis(10))?;
/// let task = mail.take()?; // blocks for 10 ms
/// println!("sending {}, with token {}", *task, Task::fencing_token(&task));
/// Task::done(task)?;
/// assert!(mail.try_take()?.is_none());
/// # Ok::<(), crosslock::Error>(())
/// ```
pub struct DelayQueue<T> {
    locker: Locker,
    claim: Claim,
    pub(super) policy: Policy,
    payload_limit: usize,
    of: PhantomData<fn() -> T>,
}

/// A task as [`DelayQueue::get`] shows it.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// use crosslock::TaskState;
/// # let locker = crosslock::Locker::open("memory:")?;
/// let queue = locker.delay_queue::<u32>("task-info")?;
/// let id = queue.insert(&7, Duration::from_secs(60))?;
/// let task = queue.get(&id)?.expect("it is in the queue");
/// assert_eq!((task.value, task.state, task.attempt), (7, TaskState::Delayed, 0));
/// # Ok::<(), crosslock::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskInfo<T> {
    /// Its id.
    pub id: TaskId,
    /// Its value.
    pub value: T,
    /// When it is due, or was due last.
    pub due: SystemTime,
    /// Its state.
    pub state: TaskState,
    /// How often it was taken.
    pub attempt: u32,
    /// Why its last try failed.
    pub last_error: Option<String>,
}

/// The defaults of [`Entry`](crate::Entry).
const POLICY: Policy = Policy {
    tries: 25,
    base: Duration::from_secs(1),
    cap: Duration::from_secs(3_600),
    remember: Duration::from_secs(3_600),
};

impl Locker {
    /// Returns the delay queue with this name. Does no I/O.
    ///
    /// A queue and a lock with the same name have nothing to do with each other.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] when the name has no bytes or more than 512.
    /// - [`Error::Unsupported`] on an engine without delay queues, which `docs/delay.md` lists.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let mail = locker.delay_queue::<String>("mail")?;
    /// assert_eq!(mail.counts()?.delayed, 0);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn delay_queue<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<DelayQueue<T>> {
        let claim = self.claim(name, Mode::Task)?;
        let claim = Claim {
            has_value: true,
            names: shards_of(&claim.key, self.core().engine.capabilities().shards),
            ..claim
        };
        Ok(DelayQueue {
            locker: self.clone(),
            claim,
            policy: POLICY,
            payload_limit: 64 * 1024,
            of: PhantomData,
        })
    }
}

impl<T> DelayQueue<T> {
    /// Sets how long the queue remembers the id of an [`entry`](Self::entry) after its task is done. Default: 1 h.
    /// While it remembers the id, an insert with that id changes nothing.
    ///
    /// The setting applies to tasks that this `DelayQueue` value inserts. Each remembered id takes about 100 bytes of
    /// the engine's memory.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// use crosslock::Task;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let queue = locker.delay_queue::<u32>("remember")?.remember(Duration::from_secs(60));
    /// queue.entry("a").insert(&1)?;
    /// Task::done(queue.take()?)?;
    /// assert!(!queue.entry("a").insert(&1)?, "it is remembered");
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    #[must_use = "it returns the queue"]
    pub fn remember(mut self, duration: Duration) -> Self {
        self.policy.remember = duration;
        self
    }

    /// Sets how many bytes a value may have as JSON. Default: 65,536. Inserting a longer one fails with
    /// [`Error::InvalidValue`].
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let queue = locker.delay_queue::<String>("payload-limit")?.payload_limit(10);
    /// assert!(queue.entry("a").insert(&"too long for it".to_owned()).is_err());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    #[must_use = "it returns the queue"]
    pub fn payload_limit(mut self, bytes: usize) -> Self {
        self.payload_limit = bytes;
        self
    }

    /// Sets the number of shards of the queue on a Redis Cluster: 1 to 256. Default: 16. No effect elsewhere.
    ///
    /// Each shard has its own slot, and a task's id selects its shard. So several servers share the work. But tasks of
    /// different shards don't come in the order of their times, and tokens increase only from try to try of one task.
    /// With 1 shard the queue behaves as on one server.
    ///
    /// Set the same number in all programs that use a queue: a queue with 8 shards and one with 16 are two queues. The
    /// number of a queue that has tasks can't be changed.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] when the number isn't one from 1 to 256.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let mail = locker.delay_queue::<String>("mail")?.shards(64)?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn shards(mut self, count: u16) -> Result<Self> {
        if !(1..=MOST_SHARDS).contains(&count) {
            return Err(Error::InvalidOption {
                option: "shards",
                reason: format!("{count} is out of range: use 1 to {MOST_SHARDS}"),
            });
        }
        if self.locker.core().engine.capabilities().shards > 1 {
            self.claim.names = shards_of(&self.claim.key, count);
        }
        Ok(self)
    }

    /// Returns the name of the queue.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let mail = locker.delay_queue::<String>("name-of-mail")?;
    /// assert_eq!(mail.name(), "name-of-mail");
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        self.claim.key.name()
    }

    fn ask(&self, key: &Key, call: TaskCall<'_>) -> Result<TaskAnswer> {
        let ask = |engine: &dyn Engine, by: &Deadline| engine.tasks(key, call, by);
        self.locker.calls().ask(key.name(), ask)
    }

    /// Where a task of that id is.
    fn shard_of(&self, id: &str) -> usize {
        shard_of(id, self.claim.keys().len())
    }

    /// Which of the tasks were inserted, or were changed: all of one shard.
    fn change(&self, shard: usize, call: TaskCall<'_>) -> Result<Vec<bool>> {
        match self.ask(&self.claim.keys()[shard], call)? {
            TaskAnswer::Changed(changed) => Ok(changed),
            TaskAnswer::Tasks(_) | TaskAnswer::Counts(_) => Ok(Vec::new()),
        }
    }

    fn change_one(&self, id: &str, call: TaskCall<'_>) -> Result<bool> {
        let changed = self.change(self.shard_of(id), call)?;
        Ok(changed.first() == Some(&true))
    }

    pub(super) fn insert_tasks(
        &self,
        tasks: &[NewTask<'_>],
        nonce: Option<&str>,
    ) -> Result<Vec<bool>> {
        let mut changed = vec![false; tasks.len()];
        let shards: Vec<_> = tasks.iter().map(|task| self.shard_of(task.id)).collect();
        for shard in 0..self.claim.keys().len() {
            let of_shard: Vec<_> = (0..tasks.len()).filter(|at| shards[*at] == shard).collect();
            if of_shard.is_empty() {
                continue;
            }
            let tasks: Vec<_> = of_shard.iter().map(|at| tasks[*at]).collect();
            let insert = TaskCall::Insert {
                tasks: &tasks,
                nonce,
            };
            for (at, one) in of_shard.into_iter().zip(self.change(shard, insert)?) {
                changed[at] = one;
            }
        }
        let inserted = changed.iter().filter(|changed| **changed).count();
        if inserted > 0 {
            self.locker
                .core()
                .options
                .observer
                .tell(|| Event::TasksInserted {
                    namespace: self.claim.key.namespace(),
                    name: self.name(),
                    tasks: inserted,
                });
        }
        Ok(changed)
    }

    fn records(&self, key: &Key, call: TaskCall<'_>) -> Result<Vec<TaskRecord>> {
        Ok(match self.ask(key, call)? {
            TaskAnswer::Tasks(records) => records,
            TaskAnswer::Changed(_) | TaskAnswer::Counts(_) => Vec::new(),
        })
    }

    /// Makes a task due after `delay`, by the engine's clock: one round trip. A buried task starts again with all its
    /// tries.
    ///
    /// Returns whether the queue had the task and it wasn't running.
    ///
    /// # Errors
    ///
    /// The errors of [`remove`](Self::remove).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// # let queue = locker.delay_queue::<u32>("reset")?;
    /// let id = queue.insert(&7, Duration::from_secs(60))?;
    /// assert!(queue.reset(&id, Duration::ZERO)?);
    /// assert_eq!(*queue.take()?, 7);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn reset(&self, id: &TaskId, delay: Duration) -> Result<bool> {
        let id = id.checked()?;
        self.change_one(id, TaskCall::Reset(id, Due::After(delay)))
    }

    /// Removes a task: one round trip.
    ///
    /// Returns whether the queue had the task and it wasn't running.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] when the id has no bytes or more than 512.
    /// - [`Error::Unavailable`], [`Error::Denied`], [`Error::Conflict`] and [`Error::Engine`] when the engine can't be
    ///   reached or fails. It may be done or not.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// # let queue = locker.delay_queue::<u32>("remove")?;
    /// let id = queue.insert(&7, Duration::from_secs(60))?;
    /// assert!(queue.remove(&id)?);
    /// assert!(!queue.remove(&id)?, "it is gone");
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn remove(&self, id: &TaskId) -> Result<bool> {
        let id = id.checked()?;
        self.change_one(id, TaskCall::Remove(id))
    }

    /// Makes a buried task ready, with all its tries: one round trip.
    ///
    /// Returns whether the task was buried.
    ///
    /// # Errors
    ///
    /// The errors of [`remove`](Self::remove).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// use crosslock::Task;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// # let queue = locker.delay_queue::<u32>("kick")?;
    /// let id = queue.insert(&7, Duration::ZERO)?;
    /// Task::bury(queue.take()?, "the address is wrong")?;
    /// assert!(queue.kick(&id)?);
    /// assert_eq!(*queue.take()?, 7);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn kick(&self, id: &TaskId) -> Result<bool> {
        let id = id.checked()?;
        self.change_one(id, TaskCall::Kick(id))
    }

    /// Returns the number of tasks in each state: one round trip for each shard.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`], [`Error::Denied`], [`Error::Conflict`] and [`Error::Engine`] when the engine can't be
    /// reached or fails.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// # let queue = locker.delay_queue::<u32>("counts")?;
    /// queue.insert(&7, Duration::from_secs(60))?;
    /// assert_eq!(queue.counts()?.delayed, 1);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn counts(&self) -> Result<TaskCounts> {
        let mut all = TaskCounts::default();
        for key in self.claim.keys() {
            if let TaskAnswer::Counts(counts) = self.ask(key, TaskCall::Counts)? {
                all = all.and(counts);
            }
        }
        Ok(all)
    }
}

impl<T: Serialize + DeserializeOwned> DelayQueue<T> {
    /// Inserts a task that is due after `delay`, by the engine's clock, and returns its id, which is random: one round
    /// trip.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidValue`] when the value can't be written as JSON and read again, or is longer than
    ///   [`payload_limit`](Self::payload_limit).
    /// - [`Error::Unavailable`], [`Error::Denied`], [`Error::Conflict`] and [`Error::Engine`] when the engine can't be
    ///   reached or fails. The task may be inserted or not: where a second one would do harm, use
    ///   [`entry`](Self::entry), which can be repeated.
    ///
    /// # Examples
    ///
    /// See [`DelayQueue`].
    pub fn insert(&self, value: &T, delay: Duration) -> Result<TaskId> {
        self.insert_random(&[(value, Due::After(delay))])
            .map(|mut ids| ids.remove(0))
    }

    /// Inserts a task that is due at a time of the wall clock. With a time in the past it is due at once.
    ///
    /// On Redis the server's clock decides when the time has come.
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use std::time::SystemTime;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// # let queue = locker.delay_queue::<u32>("insert-at")?;
    /// queue.insert_at(&7, SystemTime::now() + Duration::from_millis(10))?;
    /// assert_eq!(*queue.take()?, 7);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn insert_at(&self, value: &T, time: SystemTime) -> Result<TaskId> {
        let due = Due::At(since_1970(time));
        self.insert_random(&[(value, due)])
            .map(|mut ids| ids.remove(0))
    }

    /// Inserts many tasks, all or none, and returns their ids: one round trip. With several shards it takes one round
    /// trip for each shard, and after an error some tasks may be inserted.
    ///
    /// The server does nothing else meanwhile, so insert at most about a thousand at a time.
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// # let queue = locker.delay_queue::<u32>("insert-all")?;
    /// let second = Duration::from_secs(1);
    /// let ids = queue.insert_all(&[(7, second), (8, second * 2)])?;
    /// assert_eq!(ids.len(), 2);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn insert_all(&self, tasks: &[(T, Duration)]) -> Result<Vec<TaskId>> {
        let tasks: Vec<_> = tasks
            .iter()
            .map(|(value, delay)| (value, Due::After(*delay)))
            .collect();
        self.insert_random(&tasks)
    }

    /// Returns a task without taking it: one round trip. `None` if the queue has no task with this id, or it is done.
    ///
    /// # Errors
    ///
    /// The errors of [`remove`](Self::remove), and [`Error::Corrupt`] when its value isn't one of `T`.
    ///
    /// # Examples
    ///
    /// See [`TaskInfo`].
    pub fn get(&self, id: &TaskId) -> Result<Option<TaskInfo<T>>> {
        let id = id.checked()?;
        let key = &self.claim.keys()[self.shard_of(id)];
        let found = self.infos(self.records(key, TaskCall::Get(id))?)?;
        Ok(found.into_iter().next())
    }

    /// Returns the first `limit` buried tasks, the oldest first: one round trip for each shard.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// use crosslock::Task;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// # let queue = locker.delay_queue::<u32>("buried")?;
    /// queue.insert(&7, Duration::ZERO)?;
    /// Task::bury(queue.take()?, "the address is wrong")?;
    /// for task in queue.buried(10)? {
    ///     println!("{}: {:?}", task.value, task.last_error);
    /// }
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn buried(&self, limit: usize) -> Result<Vec<TaskInfo<T>>> {
        self.list(TaskState::Buried, limit)
    }

    /// Returns the first `limit` tasks in a state, in the order of their times: one round trip for each shard.
    ///
    /// With several shards, buried tasks are in the order of their due times.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// use crosslock::TaskState;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// # let queue = locker.delay_queue::<u32>("list")?;
    /// queue.insert(&7, Duration::from_secs(60))?;
    /// assert_eq!(queue.list(TaskState::Delayed, 10)?[0].value, 7);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn list(&self, state: TaskState, limit: usize) -> Result<Vec<TaskInfo<T>>> {
        let mut records = Vec::new();
        for key in self.claim.keys() {
            records.extend(self.records(key, TaskCall::List(state, limit))?);
        }
        if self.claim.is_multi() {
            records.sort_by_key(|record| record.due);
        }
        records.truncate(limit);
        self.infos(records)
    }

    /// Blocks until a task is due, and takes it.
    ///
    /// # Errors
    ///
    /// - [`Error::Cancelled`] when the locker's token is cancelled, or the locker is closed.
    /// - [`Error::Corrupt`] when the task's value isn't one of `T`. The task is buried.
    /// - [`Error::Unavailable`] when the engine can't be reached for
    ///   [`outage_timeout`](crate::LockerBuilder::outage_timeout).
    /// - [`Error::Denied`], [`Error::Conflict`] and [`Error::Engine`] when the engine fails.
    ///
    /// # Examples
    ///
    /// See [`DelayQueue`].
    pub fn take(&self) -> Result<Task<T>> {
        loop {
            // Without a deadline there is no end but a task or an error.
            if let Some(task) =
                self.task(self.locker.calls().wait_until(&self.claim, Deadline::NEVER))?
            {
                return Ok(task);
            }
        }
    }

    /// Takes a task if one is due: one round trip. With several shards it takes up to one for each.
    ///
    /// # Errors
    ///
    /// The errors of [`take`](Self::take).
    ///
    /// # Examples
    ///
    /// See [`DelayQueue`].
    pub fn try_take(&self) -> Result<Option<Task<T>>> {
        self.task(self.locker.calls().try_lock(&self.claim))
    }

    /// Blocks until a task is due, for at most `timeout`, and takes it. Returns `None` if the timeout ends first.
    ///
    /// # Errors
    ///
    /// The errors of [`take`](Self::take).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// # let queue = locker.delay_queue::<u32>("take-for")?;
    /// assert!(queue.take_for(Duration::from_millis(10))?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn take_for(&self, timeout: Duration) -> Result<Option<Task<T>>> {
        let calls = self.locker.calls();
        let deadline = Deadline::after_by(&*calls.core.clock, timeout);
        self.task(calls.wait_until(&self.claim, deadline))
    }

    /// Blocks until a task is due, but not longer than until `deadline`, and takes it. Returns `None` if no task was
    /// due.
    ///
    /// # Errors
    ///
    /// The errors of [`take`](Self::take).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use std::time::Instant;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// # let queue = locker.delay_queue::<u32>("take-until")?;
    /// let deadline = Instant::now() + Duration::from_millis(10);
    /// assert!(queue.take_until(deadline)?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn take_until(&self, deadline: Instant) -> Result<Option<Task<T>>> {
        self.take_for(deadline.saturating_duration_since(time::now()))
    }

    fn insert_random(&self, tasks: &[(&T, Due)]) -> Result<Vec<TaskId>> {
        let payloads: Vec<_> = tasks
            .iter()
            .map(|(value, _)| self.payload(value))
            .collect::<Result<_>>()?;
        let ids: Vec<_> = tasks.iter().map(|_| TaskId::random()).collect();
        let policy = Policy {
            remember: Duration::ZERO,
            ..self.policy
        };
        let due = tasks.iter().map(|(_, due)| *due);
        let tasks = ids
            .iter()
            .zip(&payloads)
            .zip(due)
            .map(|((id, payload), due)| NewTask {
                id: id.as_str(),
                payload,
                due,
                policy,
                if_exists: IfExists::Keep,
            });
        if !ids.is_empty() {
            self.insert_tasks(&tasks.collect::<Vec<_>>(), None)?;
        }
        Ok(ids)
    }

    pub(super) fn payload(&self, value: &T) -> Result<Arc<[u8]>> {
        let payload = to_json(self.name(), value)?;
        if payload.len() > self.payload_limit {
            return Err(Error::InvalidValue {
                name: self.name().to_owned(),
                reason: format!(
                    "it has {} bytes, and the limit is {}",
                    payload.len(),
                    self.payload_limit
                ),
            });
        }
        Ok(payload)
    }

    fn infos(&self, records: Vec<TaskRecord>) -> Result<Vec<TaskInfo<T>>> {
        let info = |record: TaskRecord| {
            Ok(TaskInfo {
                value: self.parse(&record)?,
                due: UNIX_EPOCH + Duration::from_micros(record.due),
                state: record.state,
                attempt: record.attempt,
                last_error: (!record.error.is_empty()).then(|| record.error.to_string()),
                id: TaskId::new(record.id),
            })
        };
        records.into_iter().map(info).collect()
    }

    fn parse(&self, record: &TaskRecord) -> Result<T> {
        from_json(self.name(), || record.id.to_string(), &record.payload)
    }

    /// Ends a task, and takes the next one if one is ready. Not on several shards: a worker would stay with one, and
    /// the tasks of the others would wait.
    pub(super) fn exchange(
        &self,
        mut task: Task<T>,
        end: TaskEnd<'_>,
    ) -> (Result<()>, Result<Option<Task<T>>>) {
        if self.claim.is_multi() {
            return (task.end(end), Ok(None));
        }
        let (ended, next) = task.end_for_next(self.locker.calls(), end);
        (ended, self.task(next))
    }

    /// The task of a lease. One that can't be read is buried: each worker would find it again.
    fn task(&self, lease: Result<Option<LockGuard>>) -> Result<Option<Task<T>>> {
        let Some(mut lease) = lease? else {
            return Ok(None);
        };
        let record = lease.value().as_deref().and_then(TaskRecord::parse);
        let record = record.ok_or_else(|| Error::Corrupt {
            name: self.name().to_owned(),
            key: self.name().to_owned(),
            reason: "the stored entry isn't a task".to_owned(),
        })?;
        match self.parse(&record) {
            Ok(value) => Ok(Some(Task::new(lease, value, record))),
            Err(e) => {
                Task::<T>::bury_unread(&mut lease, &e);
                Err(e)
            }
        }
    }
}

impl<T> DelayQueue<T> {
    /// The same queue, whose waits end when the token is cancelled.
    pub(super) fn with_cancel(&self, token: &CancelToken) -> Self {
        DelayQueue {
            locker: self.locker.with_cancel(token),
            ..self.clone()
        }
    }
}

pub(super) fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl<T> Clone for DelayQueue<T> {
    fn clone(&self) -> Self {
        DelayQueue {
            locker: self.locker.clone(),
            claim: self.claim.clone(),
            policy: self.policy,
            payload_limit: self.payload_limit,
            of: PhantomData,
        }
    }
}

impl<T> fmt::Debug for DelayQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayQueue")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}
