//! A process's place among those that wait for a name: in its own queue, and in the engine's line.

use std::fmt;
use std::time::Instant;

use crate::base::clock::BootInstant;
use crate::base::fork::AfterFork;
use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::engine::Grants;
use crate::lease::Lease;
use crate::lease::renewer::Renewer;
use crate::queue::local;

/// The right of one thread to deal with the engine for a name, or to hold it.
pub(crate) type Turn = local::Turn<Key, Handoff>;

/// A thread that waits for the turn.
pub(crate) type Waiter = local::Waiter<Key, Handoff>;

/// The threads of this process that wait for names.
pub(crate) type LocalQueues = local::LocalQueues<Key, Handoff>;

impl AfterFork for LocalQueues {
    fn after_fork(&self) -> Self {
        LocalQueues::default()
    }
}

/// What comes with the turn.
#[derive(Default)]
pub(crate) enum Handoff {
    /// The engine is to be asked.
    #[default]
    Acquire,
    /// The same, in a place that the process has already.
    Resume(Box<Place>, Option<Renewer>),
    /// The lease is handed over.
    Lease(Box<Lease>, Option<Renewer>),
}

/// The place of this process in the engine's line. It belongs to whoever has the turn.
pub(crate) struct Place {
    /// Who stands there, and will be the owner.
    pub(crate) owner: Owner,
    /// Whether the engine may know this owner: in its line, or as the holder without our knowing.
    pub(crate) known: bool,
    /// Whether it stands in the engine's line, as far as the last answer said.
    pub(crate) stands: bool,
    /// Where grants are heard of.
    pub(crate) grants: Option<Box<dyn Grants>>,
    /// Whether it was tried to hear of grants.
    pub(crate) listened: bool,
    pub(crate) seen: Option<Seen>,
    /// Since when the engine doesn't say how the lock stands: it can't be reached, or refused the last question.
    pub(crate) failing: Option<Instant>,
}

/// The last answer that the lock was taken: what was granted later came after this.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// When the question was sent.
    pub(crate) asked: BootInstant,
    /// The tokens granted later are above it.
    pub(crate) counter: u64,
    /// How long the engine's line was.
    pub(crate) length: u64,
}

impl Place {
    pub(crate) fn new(process: u32) -> Self {
        Place {
            owner: Owner::of(process),
            known: false,
            stands: false,
            grants: None,
            listened: false,
            seen: None,
            failing: None,
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("known", &self.known)
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
