//! What is to happen at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::network::Arrival;
use crate::service::Connection;

/// Nanoseconds since the world began.
pub(crate) type Nanos = u64;

pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) enum Event {
    /// A thread has waited for long enough, if it still waits for the same.
    Timeout { thread: usize, generation: u64 },
    /// Something comes to one end of a connection.
    Arrive(Connection, Arrival),
    /// A service asked to be woken.
    Wake { service: usize },
}

/// Events in the order of their times; those of one time in the order in which they were made.
#[derive(Default)]
pub(crate) struct Events {
    queue: BinaryHeap<Reverse<Entry>>,
    next: u64,
}

struct Entry {
    at: Nanos,
    number: u64,
    event: Event,
}

impl Events {
    pub(crate) fn push(&mut self, at: Nanos, event: Event) {
        let number = self.next;
        self.next += 1;
        self.queue.push(Reverse(Entry { at, number, event }));
    }

    pub(crate) fn next_time(&self) -> Option<Nanos> {
        self.queue.peek().map(|Reverse(entry)| entry.at)
    }

    /// The next one that isn't later than `now`.
    pub(crate) fn pop_until(&mut self, now: Nanos) -> Option<Event> {
        let is_due = self.next_time().is_some_and(|at| at <= now);
        let entry = is_due.then(|| self.queue.pop()).flatten();
        entry.map(|Reverse(entry)| entry.event)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
