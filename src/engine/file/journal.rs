//! The journal of a delay queue. Its first line is the queue as it once was, and each further line is a change of it,
//! which the rules of `rules::tasks` make again in each process that reads it.
//!
//! Whoever changes a queue has its file locked, reads the lines that others have added, makes the change and adds a
//! line. A journal that has become long is replaced by a new one, which begins with the queue as it is.
//!
//! What always holds here: a change is in the file when its newline is. What is behind the last newline was never done:
//! its process was killed, or the disk was full; the next change is written over it. The rules are the same in all
//! processes that read a format, so [`FORMAT`] changes with them.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::{os::unix::fs::FileExt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::create::check_size;
use super::section::{NameFile, queue_name};
use super::{dir::Dir, page::BootId};
use crate::base::{
    Due, IfExists, Key, NewTask, Policy, TaskAnswer, TaskCall, TaskEnd, sys::sync::Mutex, sys::time,
};
use crate::engine::rules::tasks::{Asked, Micros, Tasks, Waits};

const FORMAT: &str = "crosslock tasks 1";

/// A longer file isn't read.
const LONGEST: u64 = 1 << 30;

/// A journal is replaced when its changes are longer than this and than the queue was.
const LONG: u64 = 1 << 18;

/// A lease lasts for as long as its owner's presence.
const FOR_EVER: Micros = 1 << 52;

/// The file of a queue, and the queue as this process knows it.
#[derive(Debug)]
pub(super) struct QueueFile {
    pub(super) file: NameFile,
    pub(super) journal: Mutex<Journal>,
}

impl QueueFile {
    /// Makes it if it isn't there.
    pub(super) fn open(root: &Arc<Dir>, key: &Key) -> io::Result<Self> {
        Ok(QueueFile {
            file: NameFile::open(root, &queue_name(key))?,
            journal: Mutex::default(),
        })
    }
}

/// A queue, up to a place in its journal.
#[derive(Debug, Default)]
pub(super) struct Journal {
    pub(super) tasks: Tasks,
    clock: QueueClock,
    /// When the last change was made.
    last: Micros,
    /// How much of the file this is.
    read: u64,
    /// How much of that is the first line.
    head: u64,
}

/// The time of a queue: since 1970, as the host's clock had it when the first change of this boot was made. It goes on
/// with the time since the boot, so a clock that is set moves no task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueueClock {
    boot: String,
    /// How far it is ahead of the time since the boot.
    ahead: Micros,
}

#[derive(Serialize, Deserialize)]
struct Head {
    format: String,
    clock: QueueClock,
    last: Micros,
    tasks: Tasks,
}

#[derive(Serialize, Deserialize)]
struct Line {
    at: Micros,
    change: Step,
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

    fn make(&self, tasks: &mut Tasks, now: Micros) -> Stepped {
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

fn micros(duration: Duration) -> Micros {
    duration.as_micros().try_into().unwrap_or(FOR_EVER)
}

impl QueueClock {
    fn of_this_boot() -> Self {
        QueueClock {
            boot: String::from_utf8_lossy(&BootId::current().0).into_owned(),
            ahead: micros(time::wall()).saturating_sub(micros(time::boot())),
        }
    }

    fn is_of_this_boot(&self) -> bool {
        self.boot.as_bytes() == BootId::current().0
    }

    fn now(&self) -> Micros {
        micros(time::boot()).saturating_add(self.ahead)
    }
}

impl Journal {
    /// What time it is in this queue.
    pub(super) fn now(&self) -> Micros {
        let now = match self.clock.is_of_this_boot() {
            true => self.clock.now(),
            false => QueueClock::of_this_boot().now(),
        };
        now.max(self.last)
    }

    /// How long after the host's boot a time of this queue is; `None` for one that never comes.
    pub(super) fn since_boot(&self, at: Micros) -> Option<Duration> {
        let at = Some(at).filter(|at| *at < FOR_EVER)?;
        Some(Duration::from_micros(at.saturating_sub(self.clock.ahead)))
    }

    /// How far the host's clock is ahead of the queue's.
    pub(super) fn wall_ahead(&self) -> Micros {
        micros(time::wall()).saturating_sub(self.now())
    }

    /// Makes the changes that others have written. For who has the file locked.
    pub(super) fn read(&mut self, file: &File) -> io::Result<()> {
        let length = file.metadata()?.len();
        if length < self.read {
            // Somebody has emptied it.
            *self = Journal::default();
        }
        if length > LONGEST {
            return Err(no_queue());
        }
        let mut text = vec![0; usize::try_from(length - self.read).unwrap_or(0)];
        file.read_exact_at(&mut text, self.read)?;
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        for line in text[..whole].split_inclusive(|byte| *byte == b'\n') {
            if let Err(e) = self.read_line(line) {
                if self.read == 0 || self.clock.is_of_this_boot() {
                    return Err(e);
                }
                log::warn!(
                    "a power cut has left a part of a delay queue's journal: what is behind it is dropped"
                );
                return file.set_len(self.read);
            }
        }
        Ok(())
    }

    fn read_line(&mut self, line: &[u8]) -> io::Result<()> {
        if self.read == 0 {
            let head: Head = serde_json::from_slice(line).map_err(|_| no_queue())?;
            if head.format != FORMAT || head.last >= FOR_EVER {
                return Err(no_queue());
            }
            (self.clock, self.last, self.tasks) = (head.clock, head.last, head.tasks);
            self.head = line.len() as u64;
        } else {
            let line: Line = serde_json::from_slice(line).map_err(|_| no_queue())?;
            if !(self.last..FOR_EVER).contains(&line.at) {
                return Err(no_queue());
            }
            self.make(&line);
            // Those that were called then have been told.
            self.tasks.take_called();
        }
        self.read += line.len() as u64;
        Ok(())
    }

    fn make(&mut self, line: &Line) -> Stepped {
        self.last = line.at;
        if let Step::Boot(clock) = &line.change {
            self.clock.clone_from(clock);
        }
        line.change.make(&mut self.tasks, line.at)
    }

    /// Makes a change, and writes it down. After an error this isn't the queue of the file any more.
    pub(super) fn change(&mut self, file: &File, step: Step) -> io::Result<Stepped> {
        let mut text = Vec::new();
        if self.read == 0 {
            self.clock = QueueClock::of_this_boot();
            text = self.head_line()?;
            self.head = text.len() as u64;
        } else if !self.clock.is_of_this_boot() {
            let clock = QueueClock::of_this_boot();
            self.add(&mut text, Step::Boot(clock))?;
        }
        let stepped = self.add(&mut text, step)?;
        let end = self.read + text.len() as u64;
        if end > LONGEST {
            let text = format!("the queue needs {end} bytes, and may have {LONGEST}");
            return Err(io::Error::new(ErrorKind::QuotaExceeded, text));
        }
        check_size(usize::try_from(end).unwrap_or(usize::MAX))?;
        if let Err(e) = file.write_all_at(&text, self.read) {
            // No part of it may be in front of what is written next.
            file.set_len(self.read)?;
            return Err(e);
        }
        self.read = end;
        Ok(stepped)
    }

    fn add(&mut self, text: &mut Vec<u8>, change: Step) -> io::Result<Stepped> {
        let at = self.now();
        let line = Line { at, change };
        let stepped = self.make(&line);
        push_line(text, &line)?;
        Ok(stepped)
    }

    fn head_line(&self) -> io::Result<Vec<u8>> {
        let head = Head {
            format: FORMAT.to_owned(),
            clock: self.clock.clone(),
            last: self.last,
            tasks: self.tasks.clone(),
        };
        let mut text = Vec::new();
        push_line(&mut text, &head)?;
        Ok(text)
    }

    /// What a new file is to hold in place of this one, if this has become long.
    pub(super) fn shortened(&self) -> io::Result<Option<Vec<u8>>> {
        let changes = self.read - self.head;
        let is_long = changes > LONG.max(self.head);
        is_long.then(|| self.head_line()).transpose()
    }
}

fn push_line(text: &mut Vec<u8>, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *text, line)?;
    text.push(b'\n');
    Ok(())
}

/// The error for a file that holds something else.
fn no_queue() -> io::Error {
    ErrorKind::InvalidData.into()
}

#[cfg(test)]
mod tests;
