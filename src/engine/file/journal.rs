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
use super::dir::Dir;
use super::section::{NameFile, queue_name};
use super::step::{FOR_EVER, QueueClock, Step, Stepped, micros};
use crate::base::{Key, sys::sync::Mutex, sys::time};
use crate::engine::rules::tasks::{Micros, Tasks, ahead_of};

const FORMAT: &str = "crosslock tasks 1";

/// A longer file isn't read.
const LONGEST: u64 = 1 << 30;

/// A journal is replaced when its changes are longer than this and than the queue was.
const LONG: u64 = 1 << 18;

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
    pub(super) fn wall_ahead(&self) -> i64 {
        ahead_of(self.now(), micros(time::wall()))
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
                    "a crash of the host left the journal of a delay queue incomplete: dropping the incomplete end"
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
            let text = format!("the queue needs {end} bytes, and the limit is {LONGEST}");
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
