//! Connections that are idle, until they are used again or too old; and which host of a URL is asked next, where any
//! of them would do.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{IDLE, IN_USE};
use crate::base::sys;
use crate::base::sys::sync::Mutex;

/// Above this number the oldest are closed. A call takes a round trip, so these serve hundreds of threads that send a
/// command now and then; a thread that finds none connects.
const MOST: usize = 32;

/// Connections that are idle, in the order of their last use: the last one is used next, the first one has idled
/// longest.
#[derive(Debug)]
pub(crate) struct Pool<C>(Mutex<VecDeque<Idle<C>>>);

#[derive(Debug)]
struct Idle<C> {
    connection: C,
    since: Instant,
}

impl<C> Default for Pool<C> {
    fn default() -> Self {
        Pool(Mutex::default())
    }
}

impl<C> Pool<C> {
    /// An empty one for a child that was forked off. It shares its parent's sockets: to close its copies is all that it
    /// may do with them.
    pub(crate) fn after_fork(&self) -> Self {
        // Another thread of the parent may have locked it.
        if let Some(mut idle) = self.0.try_lock() {
            idle.clear();
        }
        Pool::default()
    }

    /// The connection that was used last and is likely to work. A connection that isn't quiet is closed or out of step;
    /// to look is a system call.
    pub(crate) fn take(&self, now: Instant, is_quiet: impl Fn(&mut C) -> bool) -> Option<C> {
        let mut idle = self.0.lock();
        while let Some(Idle {
            mut connection,
            since,
        }) = idle.pop_back()
        {
            let idled = now.saturating_duration_since(since);
            if idled < IN_USE || (idled < IDLE && is_quiet(&mut connection)) {
                return Some(connection);
            }
        }
        None
    }

    /// Puts a connection back, and closes those that are too old, or too many.
    pub(crate) fn put(&self, connection: C, now: Instant) {
        let mut idle = self.0.lock();
        idle.push_back(Idle {
            connection,
            since: now,
        });
        let is_old = |idle: &Idle<C>| now.saturating_duration_since(idle.since) > IDLE;
        if idle.len() > MOST || idle.front().is_some_and(is_old) {
            let old = idle.iter().take_while(|idle| is_old(idle)).count();
            let many = idle.len().saturating_sub(MOST);
            let closed: Vec<_> = idle.drain(..old.max(many)).collect();
            // Other threads don't wait for them to be closed.
            drop(idle);
            drop(closed);
        }
    }

    /// Closes all that have been idle since before then.
    pub(crate) fn close_those_before(&self, began: Instant) {
        self.0.lock().retain(|idle| idle.since > began);
    }
}

/// What a host may take at first, where there are others: a host that doesn't answer costs the others no more.
const FIRST_ROUND: Duration = Duration::from_millis(250);

/// The hosts of a URL, by their places in it. Clients begin at random, so that they spread.
#[derive(Debug)]
pub(crate) struct Rotation {
    hosts: usize,
    first: AtomicUsize,
}

impl Rotation {
    pub(crate) fn new(hosts: usize) -> Self {
        let hosts = hosts.max(1);
        Rotation {
            hosts,
            first: sys::random_below(hosts).into(),
        }
    }

    /// The host that is asked first: the last that answered, if it hasn't failed since.
    pub(crate) fn first(&self) -> usize {
        self.first.load(Ordering::Relaxed)
    }

    /// That host has answered.
    pub(crate) fn answered(&self, host: usize) {
        // Threads that find it so don't take the cache line from each other.
        if self.first() != host {
            self.first.store(host, Ordering::Relaxed);
        }
    }

    /// That host has failed: it is asked after all others, unless another thread has found a better one already.
    pub(crate) fn failed(&self, host: usize) {
        let (next, order) = ((host + 1) % self.hosts, Ordering::Relaxed);
        let _ = self.first.compare_exchange(host, next, order, order);
    }

    /// The turns of the hosts for one call. None takes longer than `most`.
    pub(crate) fn turns(&self, most: Duration) -> Turns {
        Turns {
            hosts: self.hosts,
            first: self.first(),
            taken: 0,
            most,
        }
    }
}

/// Round after round of all hosts, and how long each may take.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    hosts: usize,
    first: usize,
    /// How many turns there were.
    taken: usize,
    most: Duration,
}

impl Turns {
    /// The next host, and what it may take of what remains. With each round hosts get twice the time, for a network
    /// that is slow.
    pub(crate) fn next(&mut self, remaining: Duration) -> (usize, Duration) {
        let (round, left) = (self.taken / self.hosts, self.left());
        let host = (self.first + self.taken % self.hosts) % self.hosts;
        self.taken += 1;
        let fair = (remaining / left).min(self.most);
        let longest = match self.hosts {
            1 => fair,
            _ => FIRST_ROUND
                .saturating_mul(2u32.saturating_pow(round.try_into().unwrap_or(u32::MAX))),
        };
        (host, fair.min(longest))
    }

    /// How many hosts are still to have a turn in this round; all of them, if it hasn't begun.
    pub(crate) fn left(&self) -> u32 {
        (self.hosts - self.taken % self.hosts)
            .try_into()
            .unwrap_or(u32::MAX)
    }

    /// Whether each host has had as many turns as the others.
    pub(crate) fn is_round_over(&self) -> bool {
        self.taken.is_multiple_of(self.hosts)
    }
}

#[cfg(test)]
mod tests;
