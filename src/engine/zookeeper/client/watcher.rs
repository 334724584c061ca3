//! Hears once that a node has changed.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use crate::base::clock::Deadline;
use crate::base::limits::LONGEST_SLEEP;
use crate::base::sys::sync::{Condvar, Mutex};
use crate::base::sys::time;

/// Hears once that a node has changed: it is given to one or more requests, and whichever event comes first counts.
///
/// Clones are one watcher. When the last is dropped nobody is told.
#[derive(Clone)]
pub(in crate::engine::zookeeper) struct Watcher(Arc<Shared>);

/// A watcher, as its session has it.
#[derive(Clone, Debug)]
pub(super) struct Listening(Weak<Shared>);

/// What a watcher was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::zookeeper) enum Told {
    /// The node was made, or its data was changed, or a child of it was made or deleted.
    Changed,
    /// The node was deleted.
    Deleted,
    /// The connection was lost, or the session has ended, and the watch is no more: ask again.
    ConnectionLost,
    /// Nothing, until then.
    Nothing,
}

struct Shared {
    told: Mutex<Option<Told>>,
    /// Whether a server has answered that it watches.
    is_set: AtomicBool,
    changed: Condvar,
    /// What is called on the session's thread. It must not block.
    call: Option<Box<dyn Fn(Told) + Send + Sync>>,
}

impl Watcher {
    /// One to wait for.
    pub(in crate::engine::zookeeper) fn new() -> Self {
        Watcher::with(None)
    }

    /// One that also calls, once, on the session's thread. The call must not block, nor ask the session.
    pub(in crate::engine::zookeeper) fn calling(
        call: impl Fn(Told) + Send + Sync + 'static,
    ) -> Self {
        Watcher::with(Some(Box::new(call)))
    }

    fn with(call: Option<Box<dyn Fn(Told) + Send + Sync>>) -> Self {
        Watcher(Arc::new(Shared {
            told: Mutex::default(),
            is_set: AtomicBool::new(false),
            changed: Condvar::new(),
            call,
        }))
    }

    /// Blocks until it is told something. What it was told it says again and again.
    pub(in crate::engine::zookeeper) fn wait(&self, until: &Deadline) -> Told {
        let shared = self.0.clone();
        let wake = move || {
            // Under the lock: whoever has looked, and doesn't sleep yet, would miss it.
            let _told = shared.told.lock();
            shared.changed.notify_all();
        };
        let _registered = until.cancel().map(|cancel| cancel.on_set(Arc::new(wake)));
        let mut told = self.0.told.lock();
        loop {
            match *told {
                Some(told) => return told,
                None if until.is_over() => return Told::Nothing,
                None => {
                    let at = time::now() + until.remaining().min(LONGEST_SLEEP);
                    told = self.0.changed.wait_until(told, at);
                }
            }
        }
    }

    /// What it was told so far.
    pub(in crate::engine::zookeeper) fn told(&self) -> Told {
        (*self.0.told.lock()).unwrap_or(Told::Nothing)
    }

    /// Whether a server watches, and has told nothing. What was done before a `sync` it has told before it answers that.
    pub(in crate::engine::zookeeper) fn stands(&self) -> bool {
        self.0.is_set.load(Ordering::SeqCst) && self.told() == Told::Nothing
    }

    pub(super) fn listening(&self) -> Listening {
        Listening(Arc::downgrade(&self.0))
    }
}

impl Listening {
    /// Whether anybody can be told.
    pub(super) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// A server has answered that it watches.
    pub(super) fn set(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.is_set.store(true, Ordering::SeqCst);
        }
    }

    /// Tells it, if it is the first time. To be called without any lock.
    pub(super) fn tell(&self, what: Told) {
        let Some(shared) = self.0.upgrade() else {
            return;
        };
        {
            let mut told = shared.told.lock();
            if told.is_some() {
                return;
            }
            *told = Some(what);
            shared.changed.notify_all();
        }
        if let Some(call) = &shared.call {
            call(what);
        }
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watcher").field(&self.told()).finish()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::cancel::Cancel;
    use std::sync::atomic::AtomicU32;
    use std::thread;
    use std::time::Duration;

    fn in_time() -> Deadline {
        Deadline::after(Duration::from_secs(20))
    }

    #[test]
    fn first_event_counts() {
        let calls = Arc::new(AtomicU32::new(0));
        let counted = calls.clone();
        let watcher = Watcher::calling(move |_| _ = counted.fetch_add(1, Ordering::SeqCst));
        assert_eq!(
            watcher.wait(&Deadline::after(Duration::ZERO)),
            Told::Nothing
        );
        watcher.listening().tell(Told::Changed);
        watcher.listening().tell(Told::ConnectionLost);
        assert_eq!(watcher.wait(&in_time()), Told::Changed);
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn watcher_stands_from_the_answer_to_the_first_event() {
        let watcher = Watcher::new();
        let listening = watcher.listening();
        assert!(!watcher.stands());
        listening.set();
        assert!(watcher.stands());
        listening.tell(Told::ConnectionLost);
        assert!(!watcher.stands());
    }

    #[test]
    fn waiter_is_woken() {
        let watcher = Watcher::new();
        let listening = watcher.listening();
        thread::scope(|scope| {
            let waits = scope.spawn(|| watcher.wait(&in_time()));
            listening.tell(Told::ConnectionLost);
            assert_eq!(waits.join().unwrap(), Told::ConnectionLost);
        });
    }

    #[test]
    fn cancel_ends_the_wait() {
        let (watcher, cancel) = (Watcher::new(), Cancel::default());
        let until = Deadline::NEVER.or(&cancel);
        thread::scope(|scope| {
            let waits = scope.spawn(|| watcher.wait(&until));
            cancel.set();
            assert_eq!(waits.join().unwrap(), Told::Nothing);
        });
    }

    #[test]
    fn nobody_is_told_when_all_clones_are_gone() {
        let watcher = Watcher::new();
        let listening = watcher.listening();
        let clone = watcher.clone();
        drop(watcher);
        assert!(listening.is_alive());
        drop(clone);
        assert!(!listening.is_alive());
        listening.tell(Told::Changed);
    }
}
