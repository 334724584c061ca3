//! Asks several servers the same at once, so that one that doesn't answer keeps nobody waiting.
//!
//! Each is asked in a thread of its own, which ends with its answer, with the deadline, or within
//! [`CANCEL_LATENESS`](crate::engine::net::limits::CANCEL_LATENESS) of when the answers are dropped.

use std::sync::Arc;

use crate::base::sys::channel::Receiver;
use crate::base::sys::{self, channel};

use crate::base::cancel::Cancel;
use crate::base::clock::Deadline;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::server::Server;

/// What servers answer, in the order in which they do.
#[derive(Debug)]
pub(in crate::engine::redis) struct Answers<T> {
    received: Receiver<Result<T, Failure>>,
    deadline: Deadline,
    dropped: Cancel,
}

/// Asks each of the servers by `ask`, which is given the deadline of its own calls.
pub(in crate::engine::redis) fn ask_all<T: Send + 'static>(
    servers: &[Arc<Server>],
    deadline: &Deadline,
    ask: impl Fn(&Arc<Server>, &Deadline) -> Result<T, Failure> + Clone + Send + 'static,
) -> Answers<T> {
    let (answered, received) = channel::bounded(servers.len());
    let dropped = Cancel::default();
    for server in servers {
        let (ask, answered) = (ask.clone(), answered.clone());
        let (server, deadline) = (server.clone(), deadline.clone().or(&dropped));
        let asking = move || {
            let said = ask(&server, &deadline);
            // Nobody may wait for it any more.
            let _ = answered.send(said);
        };
        if let Err(e) = sys::spawn("crosslock-lookup", asking) {
            log::warn!("no thread to look a server up: {e}");
        }
    }
    Answers {
        received,
        deadline: deadline.clone(),
        dropped,
    }
}

impl<T> Answers<T> {
    /// The next answer; `None` when all have answered, or by `until`, or when the deadline is over.
    pub(in crate::engine::redis) fn next(&self, until: &Deadline) -> Option<Result<T, Failure>> {
        loop {
            let patience = until.remaining().min(self.deadline.remaining());
            let patience = patience.min(super::CANCEL_LATENESS);
            match self.received.recv_timeout(patience) {
                Ok(answer) => return Some(answer),
                Err(e) if e.is_disconnected() => return None,
                Err(_) if until.is_over() || self.deadline.is_over() => return None,
                Err(_) => {}
            }
        }
    }
}

impl<T> Drop for Answers<T> {
    fn drop(&mut self) {
        self.dropped.set();
    }
}
