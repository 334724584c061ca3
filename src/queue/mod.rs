//! The threads of a process that want the same name: one has the turn, the others wait for it.
//!
//! It uses `base`, `lease` and the traits of `engine`. What always holds here: a name has one turn, one thread or guard
//! has it, and what belongs to it moves along.

pub(crate) mod local;
mod sync;

use std::{fmt, time::Instant};

use crate::base::{Key, Owner, Process};
use crate::engine::{Engine, Wait};
use crate::lease::{Lease, renewer::Renewer};

/// The right of one thread to deal with the engine for a name, or to hold it.
pub(crate) type Turn = local::Turn<Key, TurnState>;

/// A thread that waits for the turn.
pub(crate) type Waiter = local::Waiter<Key, TurnState>;

/// The threads of this process that wait for names.
pub(crate) type LocalQueues = local::LocalQueues<Key, TurnState>;

/// What comes with the turn.
#[derive(Default)]
pub(crate) enum TurnState {
    /// Nothing: the engine is to be asked.
    #[default]
    Acquire,
    /// The thread before waited in vain: the next one goes on in its place in the engine's queue.
    Resume(Box<Contender>, Option<Renewer>),
    /// The thread before held the lock: its lease is handed over.
    Lease(Box<Lease>, Option<Renewer>),
}

/// The owner for which this process asks the engine. It belongs to the thread that has the turn.
pub(crate) struct Contender {
    /// The same for all questions, so that an attempt whose answer was lost is found again. One whose lease was broken
    /// gets nothing any more: then there is another contender.
    pub(crate) owner: Owner,
    pub(crate) wait: Box<dyn Wait>,
    pub(crate) state: ContenderState,
    /// Whether an answer said that the lock was taken.
    pub(crate) was_taken: bool,
    /// Since when the engine doesn't say how the lock stands: it can't be reached, or refused the last question.
    pub(crate) failing: Option<Instant>,
}

/// What the engine knows of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContenderState {
    /// Nothing.
    Unknown,
    /// It is in the engine's queue.
    Queued,
    /// It may be in the queue, or have the lock: a question has no answer, or the answer came too late.
    Unclear,
}

impl Contender {
    pub(crate) fn new(engine: &dyn Engine, process: Process, label: Option<&str>) -> Self {
        Contender {
            owner: Owner::of(process, label),
            wait: engine.new_wait(),
            state: ContenderState::Unknown,
            was_taken: false,
            failing: None,
        }
    }
}

impl fmt::Debug for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contender")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::Namespace;
    use crate::queue::local::{Entered, Left};

    #[test]
    fn queue_is_gone_when_nobody_waits() {
        let queues = LocalQueues::default();
        let namespace = Namespace::new("test").unwrap();
        let keys: Vec<_> = (0..1_000)
            .map(|n| Key::new(&namespace, &n.to_string()).unwrap())
            .collect();
        let entered: Vec<_> = keys.iter().map(|key| queues.enter(key)).collect();
        let Entered::Behind(waiter) = queues.enter(&keys[0]) else {
            panic!("the turn is taken")
        };
        assert_eq!(queues.len(), 1_001);
        assert!(matches!(waiter.leave(), Left::Gone { taken: false }));
        drop(entered);
        assert_eq!(queues.len(), 0);
        assert!(queues.room() < 100, "{}", queues.room());
    }
}
