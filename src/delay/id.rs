//! What a task is called in its queue.

use std::{fmt, sync::Arc};

use crate::base::{Error, Result, sys};

/// The id of a task in its queue: a text of 1 to 512 bytes.
///
/// [`DelayQueue::insert`](crate::DelayQueue::insert) makes a random one. An id that you choose for
/// [`DelayQueue::entry`](crate::DelayQueue::entry) is its idempotence key: while the queue knows it, a second insert
/// doesn't make a second task.
///
/// # Examples
///
/// ```
/// use crosslock::TaskId;
///
/// let id = TaskId::from("invoice-17");
/// assert_eq!(id.to_string(), "invoice-17");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(Arc<str>);

impl TaskId {
    pub(crate) fn random() -> Self {
        TaskId(sys::random_uuid().simple().to_string().into())
    }

    pub(crate) fn new(id: Arc<str>) -> Self {
        TaskId(id)
    }

    /// # Errors
    ///
    /// `InvalidName` when it is too short or too long.
    pub(crate) fn checked(&self) -> Result<&str> {
        const LONGEST: usize = 512;
        if (1..=LONGEST).contains(&self.0.len()) {
            return Ok(&self.0);
        }
        Err(Error::InvalidName {
            name: self.0.chars().take(64).collect(),
            reason: format!(
                "it has {} bytes; the id of a task must have 1 to {LONGEST}",
                self.0.len()
            ),
        })
    }

    /// Returns the id's text.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(crosslock::TaskId::from("a").as_str(), "a");
    /// ```
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for TaskId {
    fn from(id: &str) -> Self {
        TaskId(id.into())
    }
}

impl From<String> for TaskId {
    fn from(id: String) -> Self {
        TaskId(id.into())
    }
}

impl From<&TaskId> for TaskId {
    fn from(id: &TaskId) -> Self {
        id.clone()
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
