//! The delay queues of a memory: the rules of tasks, asked as an engine is.

use std::time::Duration;

use super::{MemoryEngine, State};
use crate::base::{BootInstant, Ending, Key, Owner, TaskAnswer, TaskCall, TaskEnd, sys::time};
use crate::engine::rules::tasks::{Asked, Micros, Tasks, Waits, ahead_of};
use crate::engine::{Answer, Change, Grant, Outcome, Release, Request};

fn micros(duration: Duration) -> Micros {
    duration.as_micros().try_into().unwrap_or(Micros::MAX)
}

/// How far the time since 1970 is ahead of the rules' time.
fn wall_ahead_of(now: Micros) -> i64 {
    ahead_of(now, micros(time::wall()))
}

/// What the rules' time is ahead of the engine's clock. The rules begin with the time since 1970, so that tasks have an
/// order even if they were due before the boot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zero(Micros);

impl Zero {
    fn at(now: BootInstant) -> Self {
        Zero(micros(time::wall()).saturating_sub(since_start(now)))
    }

    fn time(self, at: BootInstant) -> Micros {
        self.0.saturating_add(since_start(at))
    }

    fn instant(self, time: Micros) -> BootInstant {
        BootInstant::START.plus(Duration::from_micros(time.saturating_sub(self.0)))
    }
}

fn since_start(at: BootInstant) -> Micros {
    micros(at.since(BootInstant::START))
}

impl MemoryEngine {
    /// Does something with a queue, and notifies the workers that it calls.
    fn with_queue<T>(
        &self,
        key: &Key,
        act: impl FnOnce(&mut Tasks, Micros) -> T,
    ) -> (T, BootInstant) {
        // Before the lock is waited for: no lease begins earlier.
        let now = self.clock.now();
        let mut state = self.state().lock();
        let zero = *state.zero.get_or_insert_with(|| Zero::at(now));
        let State {
            queues, sleepers, ..
        } = &mut *state;
        let queue = queues.entry(key.clone()).or_default();
        let done = act(queue, zero.time(now));
        for owner in queue.take_called() {
            if let Some(sleeper) = sleepers.get(&Owner::from_text(&owner)) {
                sleeper.notify_one();
            }
        }
        if queue.is_unused() {
            queues.remove(key);
        }
        (done, now)
    }

    pub(super) fn call_tasks(&self, key: &Key, call: TaskCall<'_>) -> TaskAnswer {
        let act = |queue: &mut Tasks, now: Micros| queue.call(call, now, wall_ahead_of(now));
        self.with_queue(key, act).0
    }

    pub(super) fn ask_for_task(&self, request: Request<'_>, waits: bool) -> Answer {
        let waits = if waits {
            Waits::Until(None)
        } else {
            Waits::Not
        };
        let ask = |queue: &mut Tasks, now| {
            let asked = queue.ask(request.owner.as_str(), micros(request.ttl), waits, now);
            (asked, wall_ahead_of(now))
        };
        match self.with_queue(request.key(), ask) {
            ((Asked::Task { token, record }, wall), since) => {
                Answer::Granted(Grant::of_task(token, record, wall, since))
            }
            ((Asked::Empty { place, .. }, _), _) => Answer::Taken {
                is_queued: place > 0,
                holder: None,
            },
        }
    }

    pub(super) fn change_task(&self, request: Request<'_>, change: Change<'_>) -> Outcome {
        let (owner, granted) = (request.owner.as_str(), request.granted);
        let act = |queue: &mut Tasks, now| match change {
            Change::Renew => queue.renew(owner, Some(micros(request.ttl)), granted, now),
            Change::Verify => queue.renew(owner, None, granted, now),
            Change::Release(Release {
                ending: Ending::Unknown,
                ..
            }) => queue.take_back(owner, now),
            Change::Release(Release { value, .. }) => {
                queue.end(owner, value.and_then(TaskEnd::parse), granted, now)
            }
            // Nobody asks for these.
            Change::Store(_)
            | Change::Downgrade { .. }
            | Change::Adopt { .. }
            | Change::GiveAway => false,
        };
        Outcome::of(self.with_queue(request.key(), act).0)
    }

    /// When a worker is to ask, if nobody calls it before: `None` at once.
    pub(super) fn task_changes(
        state: &State,
        request: Request<'_>,
        now: BootInstant,
    ) -> Option<BootInstant> {
        let queue = state.queues.get(request.key())?;
        let zero = state.zero?;
        let at = queue.asks_at(request.owner.as_str(), zero.time(now))?;
        Some(zero.instant(at))
    }
}
