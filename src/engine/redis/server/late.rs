//! Questions whose callers have gone without an answer.
//!
//! Such a question may still be on its way, and takes what it asks for when it arrives. What its owner sends next, which is
//! most often the release that gives that back, would overtake it on another connection. So the connection is kept, and the
//! owner's next command goes out on it, behind the question.

use std::collections::VecDeque;
use std::time::Instant;

use crate::base::clock::Deadline;
use crate::base::sys::sync::Mutex;
use crate::base::sys::time;
use crate::engine::net::limits::IDLE;
use crate::engine::redis::connection::Connection;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::script::Order;

/// More questions than these are late only when nothing comes through. The oldest is given up then.
pub(super) const MOST: usize = 32;

/// The connections on which the answer to a question is missing, the oldest first.
#[derive(Debug, Default)]
pub(super) struct LateQuestions(Mutex<VecDeque<Late>>);

#[derive(Debug)]
struct Late {
    owner: String,
    connection: Connection,
    since: Instant,
}

impl LateQuestions {
    /// An empty one for a child that was forked off, which closes its copies of the sockets.
    pub(super) fn after_fork(&self) -> Self {
        // Another thread of the parent may have locked it.
        if let Some(mut late) = self.0.try_lock() {
            late.clear();
        }
        LateQuestions::default()
    }

    /// The connection of a late question that a command with this order has to come behind. Those that were kept for as long as
    /// no idle connection is are given up: something on the way has forgotten them.
    pub(super) fn take(&self, order: Order<'_>, now: Instant) -> Option<Connection> {
        let mut all = self.0.lock();
        let is_old = |late: &Late| now.saturating_duration_since(late.since) > IDLE;
        let old: Vec<_> = match all.front() {
            Some(first) if is_old(first) => {
                let count = all.iter().take_while(|late| is_old(late)).count();
                all.drain(..count).collect()
            }
            _ => Vec::new(),
        };
        let is_its = |late: &Late| Some(&*late.owner) == order.owner();
        let at = all.iter().position(is_its);
        let found = at.and_then(|at| all.remove(at));
        drop(all);
        old.into_iter().for_each(|late| late.connection.give_up());
        found.map(|late| late.connection)
    }

    /// Keeps a connection without an answer for what its owner sends next, if a question is still on its way there and the
    /// call has no time left; else gives it up.
    pub(super) fn leave(
        &self,
        connection: Connection,
        order: Order<'_>,
        failure: &Failure,
        deadline: &Deadline,
    ) {
        let asker = match order {
            Order::TakesBack(_) if !connection.has_unwanted() => None,
            order => order.owner(),
        };
        let is_late = matches!(failure, Failure::TimedOut(_))
            && connection.is_awaited()
            && deadline.is_over();
        match asker {
            Some(owner) if is_late => self.keep(owner, connection),
            _ => connection.give_up(),
        }
    }

    fn keep(&self, owner: &str, connection: Connection) {
        let late = Late {
            owner: owner.to_owned(),
            connection,
            since: time::now(),
        };
        let mut all = self.0.lock();
        all.push_back(late);
        let oldest = (all.len() > MOST).then(|| all.pop_front()).flatten();
        drop(all);
        if let Some(late) = oldest {
            late.connection.give_up();
        }
    }

    pub(super) fn give_up_all(&self) {
        let all = std::mem::take(&mut *self.0.lock());
        all.into_iter().for_each(|late| late.connection.give_up());
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }
}
