//! What a caller waits for: the answers to what it asked, and the change of a node.

use std::fmt;
use std::sync::{Arc, Weak};

use super::failure::Failure;
use crate::base::sys::collections::HashMap;
use crate::base::sys::sync::{Condvar, Mutex};
use crate::base::{Deadline, limits::LONGEST_SLEEP, sys::time};

/// What one thread waits for, and another tells.
#[derive(Debug, Default)]
struct Waited<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T: Send + 'static> Waited<T> {
    fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let changed = change(&mut self.value.lock());
        self.changed.notify_all();
        changed
    }

    /// Blocks until `look` finds something, which counts also if it is there only at the deadline.
    fn wait<R>(
        self: &Arc<Self>,
        until: &Deadline,
        mut look: impl FnMut(&mut T) -> Option<R>,
    ) -> Option<R> {
        let waited = self.clone();
        // Under the lock: whoever has looked, and doesn't sleep yet, would miss it.
        let wake = move || waited.change(|_| ());
        let _registered = until.cancel().map(|cancel| cancel.on_set(Arc::new(wake)));
        let mut value = self.value.lock();
        loop {
            let found = look(&mut value);
            if found.is_some() || until.is_over() {
                return found;
            }
            let at = time::now() + until.remaining().min(LONGEST_SLEEP);
            value = self.changed.wait_until(value, at);
        }
    }
}

/// Where a caller waits for the answers to what it sent together. They come in order.
#[derive(Debug)]
pub(super) struct AnswerSlot<A> {
    expected: usize,
    /// Those that have come, and why the others won't.
    answers: Arc<Waited<(Vec<A>, Option<Failure>)>>,
}

impl<A: Send + 'static> AnswerSlot<A> {
    pub(super) fn new(expected: usize) -> Self {
        AnswerSlot {
            expected,
            answers: Arc::default(),
        }
    }

    pub(super) fn answer(&self, answer: A) {
        let mut come = self.answers.value.lock();
        come.0.push(answer);
        if come.0.len() == self.expected {
            self.answers.changed.notify_all();
        }
    }

    /// The answers that haven't come never will.
    pub(super) fn fail(&self, failure: Failure) {
        self.answers
            .change(|(_, known)| _ = known.get_or_insert(failure));
    }

    /// Blocks until all answers are there.
    pub(super) fn wait(&self, deadline: &Deadline) -> Result<Vec<A>, Failure> {
        let done = self.answers.wait(deadline, |(answers, failure)| {
            match answers.len() == self.expected {
                true => Some(Ok(std::mem::take(answers))),
                false => failure.take().map(Err),
            }
        });
        done.unwrap_or(Err(Failure::TimedOut))
    }
}

/// Hears once that a node has changed: it is given to one or more requests, and whichever event comes first counts.
///
/// Clones are one watcher. When the last is dropped nobody is told.
#[derive(Clone)]
pub(crate) struct Watcher(Arc<Waited<Watching>>);

/// A watcher, as its session has it.
#[derive(Clone)]
pub(super) struct Listening(Weak<Waited<Watching>>);

/// What a watcher was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchEvent {
    /// The node was made, or its data was changed, or a child of it was made or deleted.
    Changed,
    /// The node was deleted.
    Deleted,
    /// The connection was lost, or the session has ended, and the watch is no more: ask again.
    ConnectionLost,
}

#[derive(Default)]
struct Watching {
    state: WatchState,
    /// What is called on the session's thread.
    call: Option<Box<dyn FnOnce(WatchEvent) + Send>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WatchState {
    #[default]
    Asked,
    /// A server has answered that it watches.
    Set,
    Told(WatchEvent),
}

impl Watcher {
    /// One to wait for.
    pub(crate) fn new() -> Self {
        Watcher(Arc::default())
    }

    /// One that also calls, once, on the session's thread. The call must not block, nor ask the session.
    pub(crate) fn calling(call: impl FnOnce(WatchEvent) + Send + 'static) -> Self {
        let watcher = Watcher::new();
        watcher.0.change(|one| one.call = Some(Box::new(call)));
        watcher
    }

    /// Blocks until it is told something, or until then. What it was told it says again and again.
    pub(crate) fn wait(&self, until: &Deadline) -> Option<WatchEvent> {
        self.0.wait(until, |one| one.told())
    }

    /// What it was told so far.
    pub(crate) fn told(&self) -> Option<WatchEvent> {
        self.0.value.lock().told()
    }

    /// Whether a server watches, and has told nothing. What was done before a `sync` it has told before it answers
    /// that.
    pub(crate) fn stands(&self) -> bool {
        self.0.value.lock().state == WatchState::Set
    }

    pub(super) fn listening(&self) -> Listening {
        Listening(Arc::downgrade(&self.0))
    }
}

impl Watching {
    fn told(&self) -> Option<WatchEvent> {
        match self.state {
            WatchState::Told(told) => Some(told),
            WatchState::Asked | WatchState::Set => None,
        }
    }
}

impl Listening {
    /// Whether anybody can be told.
    fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// A server has answered that it watches.
    fn set(&self) {
        let set = |one: &mut Watching| {
            if one.state == WatchState::Asked {
                one.state = WatchState::Set;
            }
        };
        self.0.upgrade().iter().for_each(|one| one.change(set));
    }

    /// Tells it, if it is the first time. To be called without any lock.
    pub(super) fn tell(&self, what: WatchEvent) {
        let Some(one) = self.0.upgrade() else {
            return;
        };
        let call = one.change(|one| {
            let call = one.call.take();
            if one.told().is_none() {
                one.state = WatchState::Told(what);
            }
            call
        });
        // It is taken by what is told first.
        if let Some(call) = call {
            call(what);
        }
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watcher").field(&self.told()).finish()
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").finish_non_exhaustive()
    }
}

/// What of a node is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    Data,
    Children,
}

/// What happened to a node that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// It was made, or its data changed, or its children.
    Changed(Watched),
    Deleted,
}

/// The watches of a connection, by their nodes. A server sends one event for all watches of a kind on a node.
#[derive(Debug, Default)]
pub(super) struct Watches {
    nodes: HashMap<String, Vec<(Watched, Listening)>>,
    /// How many nodes there are when those are forgotten for which nobody listens any more.
    full: usize,
}

/// With fewer nodes, watches without listeners aren't looked for.
const FEW: usize = 64;

impl Watches {
    pub(super) fn add(&mut self, path: String, watched: Watched, listening: Listening) {
        listening.set();
        if self.nodes.len() >= self.full.max(FEW) {
            self.nodes.retain(|_, watches| {
                watches.retain(|(_, listening)| listening.is_alive());
                !watches.is_empty()
            });
            self.full = self.nodes.len() * 2;
        }
        let watches = self.nodes.entry(path).or_default();
        watches.retain(|(_, listening)| listening.is_alive());
        watches.push((watched, listening));
    }

    /// The listeners of an event, whose watches it ends.
    pub(super) fn take(&mut self, event: Event, path: &str) -> Vec<Listening> {
        let Some(watches) = self.nodes.get_mut(path) else {
            return Vec::new();
        };
        let told = watches.extract_if(.., |(watched, _)| match event {
            Event::Changed(what) => what == *watched,
            Event::Deleted => true,
        });
        let told = told.map(|(_, listening)| listening).collect();
        if watches.is_empty() {
            self.nodes.remove(path);
        }
        told
    }

    /// All that watch anything: the connection is lost.
    pub(super) fn take_all(&mut self) -> Vec<Listening> {
        let all = std::mem::take(&mut self.nodes).into_values().flatten();
        all.map(|(_, listening)| listening).collect()
    }
}
