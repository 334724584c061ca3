//! What may block, and is done in its order by a thread that begins with the first and ends with the last: calls of
//! the user's code, which is an observer, or a logger; and to delete nodes.
//!
//! The thread of the session does none of this: while it is blocked, no lease of its locker is proven.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{collections::VecDeque, fmt, io, sync::Arc};

use crate::base::sys;
use crate::{base::sys::sync::Mutex, engine::Telling};

/// Makes calls on a thread of its own.
#[derive(Clone, Default)]
pub(super) struct Teller(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    calls: VecDeque<Telling>,
    has_worker: bool,
}

/// While as many calls wait, a line for the log is left out.
const MOST: usize = 256;

impl Teller {
    /// Makes these calls of the user's code soon.
    pub(super) fn tell(&self, calls: impl IntoIterator<Item = Telling>) {
        let mut queue = self.0.lock();
        if self.starts(&mut queue, calls).is_err() {
            // Here is better than never, and by nobody else meanwhile.
            queue.has_worker = true;
            drop(queue);
            self.work();
        }
    }

    /// Makes these calls soon. Without a thread for them they are made with the next.
    pub(super) fn start(&self, calls: impl IntoIterator<Item = Telling>) -> io::Result<()> {
        self.starts(&mut self.0.lock(), calls)
    }

    fn starts(
        &self,
        queue: &mut Queue,
        calls: impl IntoIterator<Item = Telling>,
    ) -> io::Result<()> {
        queue.calls.extend(calls);
        if queue.calls.is_empty() || queue.has_worker {
            return Ok(());
        }
        let teller = self.clone();
        // It waits for the lock.
        let started = sys::spawn("crosslock-zk-tell", move || teller.work());
        queue.has_worker = started.is_ok();
        started
    }

    /// Logs that soon, if anybody reads it.
    pub(super) fn log(&self, level: log::Level, text: impl FnOnce() -> String) {
        if !log::log_enabled!(level) || self.0.lock().calls.len() >= MOST {
            return;
        }
        let text = text();
        self.tell([Box::new(move || log::log!(level, "{text}")) as Telling]);
    }

    /// `None`: the thread ends.
    fn next(&self) -> Option<Telling> {
        let mut queue = self.0.lock();
        let next = queue.calls.pop_front();
        queue.has_worker = next.is_some();
        next
    }

    fn work(&self) {
        while let Some(call) = self.next() {
            // The others are to be told all the same.
            let _ = catch_unwind(AssertUnwindSafe(call));
        }
    }
}

impl fmt::Debug for Teller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Teller").finish_non_exhaustive()
    }
}
