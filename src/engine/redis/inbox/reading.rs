//! How the connection of an inbox is read, by a waiter or by the thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use parking_lot::MutexGuard;

use super::channels::UNUSED_FOR;
use super::pubsub::Link;
use super::state::{Place, State};
use super::{Inbox, Registered};
use crate::base::clock::Deadline;
use crate::engine::redis::failure::Failure;

/// Who reads, and for how long.
#[derive(Clone, Copy)]
pub(super) enum Reader<'a> {
    /// A waiter, until there are news for it, or that time; `None` is never.
    Waiter(&'a Registered, Option<Instant>),
    /// The thread, until another reads, or nobody needs the connection.
    Thread,
}

impl Reader<'_> {
    fn is_over(self, state: &mut State, now: Instant) -> bool {
        match self {
            Reader::Waiter(waiter, until) => {
                waiter.has_news(state) || until.is_some_and(|until| until <= now)
            }
            Reader::Thread => state.thread_is_done(now),
        }
    }

    /// When to look whether it is over.
    fn next_look(self, state: &mut State, now: Instant) -> Option<Instant> {
        match self {
            Reader::Waiter(_, until) => until,
            Reader::Thread => state.watch(now),
        }
    }

    /// By when whatever it sends has to be sent.
    fn deadline(self) -> Deadline {
        match self {
            Reader::Waiter(_, Some(until)) => Deadline::at(until),
            Reader::Waiter(_, None) | Reader::Thread => Deadline::NEVER,
        }
    }
}

impl Inbox {
    /// Reads the connection, which the caller has taken, and puts it back. What it says is for whoever waits. An error
    /// ends it, as a panic does.
    pub(super) fn read(&self, mut link: Box<Link>, reader: Reader<'_>) -> MutexGuard<'_, State> {
        let hear = AssertUnwindSafe(|| self.hear(&mut link, reader));
        let panicked = |_| Err(Failure::Closed("its reader panicked".into()));
        let heard = catch_unwind(hear).unwrap_or_else(panicked);
        let mut state = self.state.lock();
        match (heard, reader) {
            (Ok(()), Reader::Waiter(..)) => state.put_back(link),
            (Ok(()), Reader::Thread) => state.make_free(link),
            (Err(broken), _) => state.lose(broken),
        }
        self.tell_thread(&state);
        state
    }

    fn hear(&self, link: &mut Link, reader: Reader<'_>) -> Result<(), Failure> {
        let deadline = reader.deadline().or(&self.closed);
        loop {
            let changes = {
                let mut state = self.state.lock();
                self.bell.answer(&mut state.rung);
                // A locker that is gone since has set this before it closed what it found to close.
                if self.closed.is_set() {
                    return Err(Failure::Closed("its locker is gone".into()));
                }
                state.channels.changes(Instant::now())
            };
            link.change(&changes, &deadline)?;
            let mut new = true;
            while let Some(said) = link.receive(new)? {
                new = false;
                let mut state = self.state.lock();
                let told = state.take_in(&said);
                // There may be more for others without end.
                let is_over = reader.is_over(&mut state, Instant::now());
                drop(state);
                told.iter().for_each(|waiter| _ = waiter.notify_one());
                if is_over {
                    return Ok(());
                }
            }
            let now = Instant::now();
            let looks = {
                let mut state = self.state.lock();
                if reader.is_over(&mut state, now) {
                    return Ok(());
                }
                // A channel may be left by its last waiter at any time, which isn't told.
                let unused = state.channels.next_look().unwrap_or(now + UNUSED_FOR);
                [reader.next_look(&mut state, now), Some(unused)]
            };
            link.tend(now, &deadline)?;
            let next_look = looks.into_iter().flatten().fold(link.due(), Instant::min);
            self.bell
                .wait(link.as_fd(), next_look.saturating_duration_since(now))?;
        }
    }

    /// Wakes the thread if the connection is to be read by it, made anew, or looked after.
    fn tell_thread(&self, state: &State) {
        let is_up = match state.place {
            Place::Left { .. } | Place::Lost { .. } => true,
            Place::Free { .. } => state.thread_sleeps,
            Place::None | Place::WithWaiter | Place::WithThread => false,
        };
        if is_up {
            self.changed.notify_one();
        }
    }
}
