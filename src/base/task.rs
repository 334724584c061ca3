//! The words of delay queues: tasks, what is asked about them, and how a task is written down.
//!
//! Times are microseconds of the engine's clock, on Redis those since 1970.

#![cfg_attr(
    not(feature = "delay"),
    allow(
        dead_code,
        unreachable_pub,
        reason = "programs without delay queues use none of it"
    )
)]

use std::sync::Arc;
use std::time::Duration;

/// What an insert does if the queue has a task with the same id.
///
/// A running task, or an id that was finished a short while ago, always stays as it is.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "delay")] {
/// # use std::time::Duration;
/// use crosslock::IfExists;
///
/// # let locker = crosslock::Locker::open("memory:")?;
/// let mail = locker.delay_queue::<String>("if-exists")?;
/// let insert = |text: &str| mail.entry("greeting").if_exists(IfExists::Replace).insert(&text.to_owned());
/// assert!(insert("hello")? && insert("good morning")?);
/// assert_eq!(*mail.try_take()?.expect("it is due"), "good morning");
/// # }
/// # Ok::<(), crosslock::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IfExists {
    /// The old task stays as it is (the default).
    #[default]
    Keep,
    /// The old task gets the new due time.
    Reset,
    /// The new task replaces the old one, and its tries start at zero.
    Replace,
}

/// The state of a task.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "delay")] {
/// # use std::time::Duration;
/// use crosslock::TaskState;
///
/// # let locker = crosslock::Locker::open("memory:")?;
/// let mail = locker.delay_queue::<String>("task-state")?;
/// let id = mail.insert(&"to: ada".to_owned(), Duration::from_secs(60))?;
/// assert_eq!(mail.get(&id)?.expect("it is there").state, TaskState::Delayed);
/// # }
/// # Ok::<(), crosslock::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskState {
    /// It isn't due yet.
    Delayed,
    /// It is due, and waits for a worker.
    Ready,
    /// A worker has it.
    Running,
    /// Its last try failed, or a worker buried it. It stays until it is kicked or removed.
    Buried,
}

impl TaskState {
    /// As scripts know it.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            TaskState::Delayed => "d",
            TaskState::Ready => "r",
            TaskState::Running => "x",
            TaskState::Buried => "b",
        }
    }

    fn of_mark(mark: &str) -> Option<Self> {
        let all = [
            TaskState::Delayed,
            TaskState::Ready,
            TaskState::Running,
            TaskState::Buried,
        ];
        all.into_iter().find(|state| state.mark() == mark)
    }
}

/// The number of tasks of a queue in each state.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "delay")] {
/// # use std::time::Duration;
/// # let locker = crosslock::Locker::open("memory:")?;
/// let mail = locker.delay_queue::<String>("task-counts")?;
/// mail.insert(&"to: ada".to_owned(), Duration::ZERO)?;
/// mail.insert(&"to: bob".to_owned(), Duration::from_secs(60))?;
/// let counts = mail.counts()?;
/// assert_eq!((counts.ready, counts.delayed), (1, 1));
/// # }
/// # Ok::<(), crosslock::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TaskCounts {
    /// Tasks that aren't due yet.
    pub delayed: u64,
    /// Tasks that are due, and wait for a worker.
    pub ready: u64,
    /// Tasks that a worker has.
    pub running: u64,
    /// Tasks that are buried.
    pub buried: u64,
}

impl TaskCounts {
    /// Those of two shards.
    pub(crate) fn and(self, other: Self) -> Self {
        TaskCounts {
            delayed: self.delayed + other.delayed,
            ready: self.ready + other.ready,
            running: self.running + other.running,
            buried: self.buried + other.buried,
        }
    }
}

/// When a task is to be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "delay", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Due {
    /// So long after the engine has it.
    After(Duration),
    /// So long after the beginning of 1970.
    At(Duration),
}

/// A task that is to be inserted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewTask<'a> {
    pub(crate) id: &'a str,
    pub(crate) payload: &'a [u8],
    pub(crate) due: Due,
    pub(crate) policy: Policy,
    pub(crate) if_exists: IfExists,
}

/// How often a task is tried, and what is known of it afterwards. In milliseconds where scripts see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "delay", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Policy {
    /// After so many tries it is buried; 0: never.
    pub(crate) tries: u32,
    /// How long it waits after the first try; twice as long after each further one.
    pub(crate) base: Duration,
    /// The longest wait.
    pub(crate) cap: Duration,
    /// For how long its id is known when it is done.
    pub(crate) remember: Duration,
}

impl Policy {
    /// How long a task waits that has failed so often. A part of up to a fifth is taken off by the time, so that tasks
    /// that fail together aren't due together.
    pub(crate) fn backoff(&self, attempt: u32, now: u64) -> Duration {
        let doublings = attempt.saturating_sub(1).min(40);
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let whole = millis(self.base).saturating_mul(1 << doublings);
        let micros = whole.min(millis(self.cap)).saturating_mul(1_000);
        Duration::from_micros(micros - micros / 5_120 * (now % 1_024))
    }
}

/// What is done with the tasks of a queue, apart from taking them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TaskCall<'a> {
    /// Inserts tasks. A repeated call has the same `nonce`, by which tasks of the first are known; without one it isn't
    /// repeated.
    Insert {
        tasks: &'a [NewTask<'a>],
        nonce: Option<&'a str>,
    },
    /// Sets when a task is due that isn't running.
    Reset(&'a str, Due),
    /// Removes a task that isn't running.
    Remove(&'a str),
    /// Makes a buried task ready.
    Kick(&'a str),
    Get(&'a str),
    Counts,
    /// So many in a state, first come first.
    List(TaskState, usize),
}

/// The answer to a [`TaskCall`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TaskAnswer {
    /// Which tasks were inserted, or whether the one was changed.
    Changed(Vec<bool>),
    Tasks(Vec<TaskRecord>),
    Counts(TaskCounts),
}

/// A task, as engines show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskRecord {
    pub(crate) id: Arc<str>,
    pub(crate) state: TaskState,
    /// When it was or is due, and when this was written down.
    pub(crate) due: u64,
    pub(crate) now: u64,
    /// Which try is running, or was the last.
    pub(crate) attempt: u32,
    pub(crate) tries: u32,
    pub(crate) error: Arc<str>,
    pub(crate) payload: Arc<[u8]>,
}

impl TaskRecord {
    /// `<state> <now> <length of id> <id><attempt> <abandoned> <tries> <due> <length of error> <error><payload>`.
    /// Behind the id it is as a server stores it. The lease says whether it was abandoned.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let TaskRecord { id, error, .. } = self;
        let head = format!(
            "{} {} {} {id}{} 0 {} {} {} {error}",
            self.state.mark(),
            self.now,
            id.len(),
            self.attempt,
            self.tries,
            self.due,
            error.len()
        );
        [head.as_bytes(), &self.payload].concat()
    }

    /// `None` of anything else.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let state = TaskState::of_mark(word(&mut rest)?)?;
        let now = number(&mut rest)?;
        let id = text(&mut rest)?;
        let attempt = number(&mut rest)?.try_into().ok()?;
        let _abandoned = word(&mut rest)?;
        let tries = number(&mut rest)?.try_into().ok()?;
        let due = number(&mut rest)?;
        let error = text(&mut rest)?;
        Some(TaskRecord {
            id: std::str::from_utf8(id).ok()?.into(),
            state,
            due,
            now,
            attempt,
            tries,
            error: String::from_utf8_lossy(error).into(),
            payload: rest.into(),
        })
    }
}

/// What stands before the next space.
fn word<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let end = rest.iter().take(24).position(|byte| *byte == b' ')?;
    let (word, behind) = (&rest[..end], &rest[end + 1..]);
    *rest = behind;
    std::str::from_utf8(word).ok()
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    word(rest)?.parse().ok()
}

/// Bytes behind their number.
fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = number(rest)?.try_into().ok()?;
    let (text, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(text)
}

/// How a worker ends a task. It is what is stored when the task's lease is released; a lease that is released with
/// nothing is a task that was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskEnd<'a> {
    Done,
    /// It is tried again in that time.
    RetryIn(Duration, &'a str),
    /// It is tried again by its backoff.
    Retry(&'a str),
    Bury(&'a str),
}

impl<'a> TaskEnd<'a> {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        match self {
            TaskEnd::Done => "d".to_owned(),
            TaskEnd::RetryIn(wait, error) => format!("i{} {}", wait.as_micros(), short(error)),
            TaskEnd::Retry(error) => ["r", short(error)].concat(),
            TaskEnd::Bury(why) => ["b", short(why)].concat(),
        }
        .into_bytes()
    }

    /// `None` of anything else.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (mark, rest) = text.split_at_checked(1)?;
        Some(match mark {
            "d" => TaskEnd::Done,
            "i" => {
                let (wait, error) = rest.split_once(' ')?;
                TaskEnd::RetryIn(Duration::from_micros(wait.parse().ok()?), error)
            }
            "r" => TaskEnd::Retry(rest),
            "b" => TaskEnd::Bury(rest),
            _ => return None,
        })
    }
}

/// Payloads as text: what this library inserts is JSON.
#[cfg(feature = "delay")]
pub(crate) mod as_text {
    use std::{borrow::Cow, sync::Arc};

    use serde::{Deserialize, Deserializer, Serializer, ser};

    pub(crate) fn serialize<S: Serializer>(bytes: &Arc<[u8]>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(std::str::from_utf8(bytes).map_err(ser::Error::custom)?)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Arc<[u8]>, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        Ok(text.as_bytes().into())
    }
}

/// What is kept of an error's text.
fn short(text: &str) -> &str {
    const LONGEST: usize = 1_024;
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::for_any;

    #[test]
    fn record_and_end_come_back() {
        for_any(|random| {
            let record = TaskRecord {
                id: random.text(1..=9).into(),
                state: TaskState::Ready,
                due: random.u64(..1 << 52),
                now: random.u64(..1 << 52),
                attempt: 3,
                tries: 0,
                error: random.text(0..=9).into(),
                payload: random.list(0..=9, |random| random.u8(..)).into(),
            };
            assert_eq!(TaskRecord::parse(&record.to_bytes()), Some(record));
            let text = random.text(0..=9);
            let wait = Duration::from_micros(random.u64(..1 << 52));
            for end in [
                TaskEnd::Done,
                TaskEnd::RetryIn(wait, &text),
                TaskEnd::Retry(&text),
                TaskEnd::Bury(&text),
            ] {
                assert_eq!(TaskEnd::parse(&end.to_bytes()), Some(end));
            }
        });
    }

    #[test]
    fn other_bytes_are_no_record() {
        for bytes in [
            "",
            "d",
            "d 1 1 ",
            "d 1 1 a1 0 1 1 1 ",
            "q 1 1 a1 0 1 1 0 ",
            "d 1 9 a1 0 1 1 0 ",
            "d -1 1 a1 0 1 1 0 ",
        ] {
            assert_eq!(TaskRecord::parse(bytes.as_bytes()), None, "{bytes}");
        }
        assert_eq!(TaskEnd::parse(b"i1"), None);
        assert_eq!(TaskEnd::parse(b"x"), None);
    }
}
