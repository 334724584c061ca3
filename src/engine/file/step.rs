//! The changes of a delay queue, as its journal has them.

use std::io::{self, ErrorKind};
use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::page::BootId;
use crate::base::{Due, IfExists, NewTask, Policy, TaskAnswer, TaskCall, TaskEnd, sys::time};
use crate::engine::rules::tasks::{Asked, Micros, Tasks, Waits};

/// A lease lasts for as long as its owner's presence.
pub(super) const FOR_EVER: Micros = 1 << 52;

/// The time of a queue: since 1970, as the host's clock had it when the first change of this boot was made. It goes on
/// with the time since the boot, so a clock that is set moves no task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueueClock {
    pub(super) boot: String,
    /// How far it is ahead of the time since the boot.
    pub(super) ahead: Micros,
}

/// A change of a queue. Owners are those of `queue::name_of`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Step {
    Boot(QueueClock),
    Ask {
        owner: Arc<str>,
        waits: bool,
    },
    End {
        owner: Arc<str>,
        /// As [`TaskEnd`] writes it; `None`: the task was dropped.
        end: Option<String>,
        granted: Option<u64>,
    },
    TakeBack {
        owner: Arc<str>,
    },
    Gone {
        owner: Arc<str>,
    },
    Insert {
        tasks: Vec<Inserted>,
        nonce: Option<String>,
    },
    Reset(String, Due),
    Remove(String),
    Kick(String),
}

/// A task that is inserted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Inserted {
    id: String,
    payload: String,
    due: Due,
    policy: Policy,
    #[serde(with = "Existing")]
    if_exists: IfExists,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "IfExists", rename_all = "kebab-case")]
enum Existing {
    Keep,
    Reset,
    Replace,
}

/// What came of a change.
#[derive(Debug)]
pub(super) enum Stepped {
    Asked(Asked),
    /// Whether it was the owner's.
    Was(bool),
    Answer(TaskAnswer),
    Nothing,
}

impl Step {
    /// What a call changes, at that time of the queue; `None` of one that only looks.
    pub(super) fn of(call: TaskCall<'_>, now: Micros) -> io::Result<Option<Self>> {
        Ok(Some(match call {
            TaskCall::Insert { tasks, nonce } => {
                let tasks = tasks.iter().map(|task| Inserted::of(task, now));
                Step::Insert {
                    tasks: tasks.collect::<Result<_, _>>()?,
                    nonce: nonce.map(str::to_owned),
                }
            }
            TaskCall::Reset(id, due) => Step::Reset(id.to_owned(), by_queue(due, now)),
            TaskCall::Remove(id) => Step::Remove(id.to_owned()),
            TaskCall::Kick(id) => Step::Kick(id.to_owned()),
            TaskCall::Get(_) | TaskCall::Counts | TaskCall::List(..) => return Ok(None),
        }))
    }

    /// Whose change it is.
    pub(super) fn owner(&self) -> Option<&Arc<str>> {
        match self {
            Step::Ask { owner, .. }
            | Step::End { owner, .. }
            | Step::TakeBack { owner }
            | Step::Gone { owner } => Some(owner),
            _ => None,
        }
    }

    pub(super) fn make(&self, tasks: &mut Tasks, now: Micros) -> Stepped {
        let mut call = |call| Stepped::Answer(tasks.call(call, now, 0));
        match self {
            Step::Boot(_) => Stepped::Nothing,
            Step::Ask { owner, waits } => {
                let waits = if *waits {
                    Waits::Until(None)
                } else {
                    Waits::Not
                };
                Stepped::Asked(tasks.ask(owner, FOR_EVER, waits, now))
            }
            Step::End {
                owner,
                end,
                granted,
            } => {
                let end = end.as_deref().map(str::as_bytes).and_then(TaskEnd::parse);
                Stepped::Was(tasks.end(owner, end, *granted, now))
            }
            Step::TakeBack { owner } => Stepped::Was(tasks.take_back(owner, now)),
            Step::Gone { owner } => {
                tasks.vanish(owner, now);
                Stepped::Nothing
            }
            Step::Insert { tasks: new, nonce } => {
                let tasks: Vec<_> = new.iter().map(Inserted::as_new).collect();
                let nonce = nonce.as_deref();
                call(TaskCall::Insert {
                    tasks: &tasks,
                    nonce,
                })
            }
            Step::Reset(id, due) => call(TaskCall::Reset(id, *due)),
            Step::Remove(id) => call(TaskCall::Remove(id)),
            Step::Kick(id) => call(TaskCall::Kick(id)),
        }
    }
}

impl Inserted {
    fn of(task: &NewTask<'_>, now: Micros) -> io::Result<Self> {
        let payload = std::str::from_utf8(task.payload);
        let payload = payload.map_err(|e| io::Error::new(ErrorKind::InvalidInput, e))?;
        Ok(Inserted {
            id: task.id.to_owned(),
            payload: payload.to_owned(),
            due: by_queue(task.due, now),
            policy: task.policy,
            if_exists: task.if_exists,
        })
    }

    fn as_new(&self) -> NewTask<'_> {
        NewTask {
            id: &self.id,
            payload: self.payload.as_bytes(),
            due: self.due,
            policy: self.policy,
            if_exists: self.if_exists,
        }
    }
}

/// A time since 1970 is the host's, and becomes the queue's.
fn by_queue(due: Due, now: Micros) -> Due {
    match due {
        Due::After(_) => due,
        Due::At(since_1970) => {
            let at = since_1970.saturating_add(Duration::from_micros(now));
            Due::At(at.saturating_sub(time::wall()))
        }
    }
}

pub(super) fn micros(duration: Duration) -> Micros {
    duration.as_micros().try_into().unwrap_or(FOR_EVER)
}

impl QueueClock {
    pub(super) fn of_this_boot() -> Self {
        QueueClock {
            boot: String::from_utf8_lossy(&BootId::current().0).into_owned(),
            ahead: micros(time::wall()).saturating_sub(micros(time::boot())),
        }
    }

    pub(super) fn is_of_this_boot(&self) -> bool {
        self.boot.as_bytes() == BootId::current().0
    }

    pub(super) fn now(&self) -> Micros {
        micros(time::boot()).saturating_add(self.ahead)
    }
}
