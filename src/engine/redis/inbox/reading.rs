//! How the connection of an inbox is read, by a waiter or by the thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::listener::Listener;
use super::pubsub::PubSub;
use super::state::{Custody, State};
use crate::base::cancel::Cancel;
use crate::base::clock::Deadline;
use crate::base::sys::sync::{Condvar, MutexGuard};
use crate::base::sys::time;
use crate::engine::net::limits::CHANNEL_UNUSED;
use crate::engine::redis::failure::Failure;

/// Who reads, and for how long.
#[derive(Clone, Copy)]
pub(super) enum Reader<'a> {
    /// A waiter, until it has a notification, or that time has come, or it is cancelled; `None` is never.
    Waiter {
        channel: &'a str,
        owner: &'a str,
        until: Option<Instant>,
        cancel: Option<&'a Cancel>,
    },
    /// The thread, until a waiter had better read, or nobody needs the connection.
    Thread,
}

impl Reader<'_> {
    fn is_done(self, state: &mut State, now: Instant) -> bool {
        match self {
            Reader::Waiter {
                channel,
                owner,
                until,
                cancel,
            } => {
                let notification = state.notification(channel, owner);
                let is_notified = notification.is_some_and(|one| one.is_some());
                let is_over = until.is_some_and(|until| until <= now);
                is_notified || is_over || cancel.is_some_and(Cancel::is_set)
            }
            Reader::Thread => state.thread_is_done(now),
        }
    }

    /// When to look whether it is done, if nothing arrives.
    fn looks_at(self, state: &mut State, now: Instant) -> Option<Instant> {
        match self {
            Reader::Waiter { until, .. } => until,
            Reader::Thread => state.thread_looks_at(now),
        }
    }

    /// By when the commands that it sends have to be sent.
    fn deadline(self) -> Deadline {
        match self {
            Reader::Waiter {
                until: Some(until), ..
            } => Deadline::at(until),
            Reader::Waiter { until: None, .. } | Reader::Thread => Deadline::NEVER,
        }
    }
}

impl Listener {
    /// Reads the connection, which the caller has taken, delivers what arrives, and puts the connection back. After an
    /// error, or a panic, the connection is lost.
    pub(super) fn read(
        &self,
        mut pubsub: Box<PubSub>,
        reader: Reader<'_>,
    ) -> MutexGuard<'_, State> {
        let read = AssertUnwindSafe(|| self.read_until_done(&mut pubsub, reader));
        let panicked = |_| Err(Failure::Closed("its reader panicked".into()));
        let result = catch_unwind(read).unwrap_or_else(panicked);
        let mut state = self.state.lock();
        match (result, reader) {
            (Ok(()), Reader::Waiter { .. }) => state.put_back(pubsub),
            (Ok(()), Reader::Thread) => state.make_free(pubsub),
            (Err(failure), _) => state.lose(failure),
        }
        self.wake_thread_if_needed(&state);
        state
    }

    fn read_until_done(&self, pubsub: &mut PubSub, reader: Reader<'_>) -> Result<(), Failure> {
        let deadline = reader.deadline().or(&self.closed);
        loop {
            self.send_changes(pubsub, &deadline)?;
            if self.receive_all(pubsub, reader)? {
                return Ok(());
            }
            let now = time::now();
            let Some(next_look) = self.next_look(reader, now) else {
                return Ok(());
            };
            pubsub.check_alive(now, &deadline)?;
            let until = next_look.min(pubsub.next_check());
            let timeout = until.saturating_duration_since(now);
            self.waker.wait(pubsub.as_fd(), timeout)?;
        }
    }

    fn send_changes(&self, pubsub: &mut PubSub, deadline: &Deadline) -> Result<(), Failure> {
        let changes = {
            let mut state = self.state.lock();
            self.waker.clear(&mut state.wake_pending);
            // `close` sets this before it closes the connection that it finds, which may not have been this one.
            if self.closed.is_set() {
                return Err(Failure::Closed("its locker is gone".into()));
            }
            state.channels.changes(time::now())
        };
        pubsub.send_changes(&changes, deadline)
    }

    /// Delivers what has arrived. Returns whether the reader is done, which it may be before all is read: messages
    /// for other waiters may come without end.
    fn receive_all(&self, pubsub: &mut PubSub, reader: Reader<'_>) -> Result<bool, Failure> {
        let mut look_again = true;
        while let Some(received) = pubsub.receive(look_again)? {
            look_again = false;
            let mut state = self.state.lock();
            let waiter: Option<Arc<Condvar>> = state.deliver(&received);
            let is_done = reader.is_done(&mut state, time::now());
            drop(state);
            waiter.iter().for_each(|condvar| condvar.notify_one());
            if let Some((owner, below)) = received.broken_lease() {
                self.tell_broken(owner, below);
            }
            if is_done {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// When the reader is to look at the state again, if nothing arrives; `None` when it is done.
    fn next_look(&self, reader: Reader<'_>, now: Instant) -> Option<Instant> {
        let mut state = self.state.lock();
        if reader.is_done(&mut state, now) {
            return None;
        }
        // The last waiter of a channel doesn't wake the reader when it leaves.
        let unused = state.channels.next_check();
        let unused = unused.unwrap_or(now + CHANNEL_UNUSED);
        let looks_at = reader.looks_at(&mut state, now);
        Some(looks_at.map_or(unused, |at| at.min(unused)))
    }

    /// Wakes the thread if it has to read the connection, to make a new one, or to watch a free one.
    fn wake_thread_if_needed(&self, state: &State) {
        let is_needed = match state.custody {
            Custody::Left { .. } | Custody::Lost { .. } => true,
            Custody::Free { .. } => state.thread_sleeps,
            Custody::None | Custody::WithWaiter | Custody::WithThread => false,
        };
        if is_needed {
            self.thread_wakes.notify_one();
        }
    }
}
