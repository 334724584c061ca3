//! Connections that are idle, until they are used again or too old.

use std::collections::VecDeque;
use std::time::Instant;

use crate::base::sys::sync::Mutex;
use crate::engine::net::limits::{IDLE, IN_USE};

/// Above this number the oldest are closed. A call takes a round trip, so these serve hundreds of threads that send a
/// command now and then; a thread that finds none connects.
const MOST: usize = 32;

/// Connections that are idle, in the order of their last use: the last one is used next, the first one has idled longest.
#[derive(Debug)]
pub(in crate::engine) struct Pool<C>(Mutex<VecDeque<Idle<C>>>);

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
    pub(in crate::engine) fn after_fork(&self) -> Self {
        // Another thread of the parent may have locked it.
        if let Some(mut idle) = self.0.try_lock() {
            idle.clear();
        }
        Pool::default()
    }

    /// The connection that was used last and is likely to work. A connection that isn't quiet is closed or out of step;
    /// to look is a system call.
    pub(in crate::engine) fn take(&self, now: Instant, is_quiet: impl Fn(&C) -> bool) -> Option<C> {
        let mut idle = self.0.lock();
        while let Some(Idle { connection, since }) = idle.pop_back() {
            let idled = now.saturating_duration_since(since);
            if idled < IN_USE || (idled < IDLE && is_quiet(&connection)) {
                return Some(connection);
            }
        }
        None
    }

    /// Puts a connection back, and closes those that are too old, or too many.
    pub(in crate::engine) fn put(&self, connection: C, now: Instant) {
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
    pub(in crate::engine) fn close_those_before(&self, began: Instant) {
        self.0.lock().retain(|idle| idle.since > began);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn idle(pool: &Pool<u32>) -> Vec<u32> {
        pool.0.lock().iter().map(|idle| idle.connection).collect()
    }

    #[test]
    fn last_one_used_is_used_next() {
        let (pool, now) = (Pool::default(), Instant::now());
        (0..3).for_each(|n| pool.put(n, now));
        assert_eq!(pool.take(now, |_| true), Some(2));
        let later = now + IDLE / 2;
        assert_eq!(pool.take(later, |n| *n == 0), Some(0));
        assert_eq!(pool.take(later, |_| true), None);
    }

    #[test]
    fn connections_that_are_too_old_are_closed_when_one_is_put_back() {
        let (pool, start) = (Pool::default(), Instant::now());
        (0..20).for_each(|n| pool.put(n, start));
        pool.put(20, start + Duration::from_secs(1));
        pool.put(21, start + IDLE + Duration::from_millis(1));
        assert_eq!(idle(&pool), [20, 21]);
        pool.put(22, start + 3 * IDLE);
        assert_eq!(idle(&pool), [22]);
        assert_eq!(pool.take(start + 5 * IDLE, |_| true), None);
    }

    #[test]
    fn no_more_than_some_stay() {
        let (pool, now) = (Pool::default(), Instant::now());
        (0..900).for_each(|n| pool.put(n, now));
        assert_eq!(idle(&pool), (900 - 32..900).collect::<Vec<_>>());
    }
}
