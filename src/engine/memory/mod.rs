//! Locks of this process: for tests, and for programs that may do without the others.
//!
//! It uses `base`, the seam and `engine::rules`. What always holds here: all changes are made under one
//! lock, and a name without holders, waiters and an abandonment to tell of has no state.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use self::state::State;
use super::receivers::Receivers;
use super::rules::Acquired;
use super::{
    Answer, Change, Cursor, Engine, Grant, Outcome, Pace, Page, Request, Revocations, Unanswered,
    Wait,
};
use crate::base::cancel::Wake;
use crate::base::clock::{BootClock, Clock, Deadline};
use crate::base::diagnosis::Finding;
use crate::base::error::{LostReason, Result};
use crate::base::fork::{AfterFork, ForkLocal, get_or_make};
use crate::base::inspection::{Holder, Inspection};
use crate::base::name::{Key, Namespace};
use crate::base::options::Options;
use crate::base::sys::sync::{Condvar, Mutex};
use crate::base::sys::time;
use crate::base::value::Stored;

mod named;
#[cfg(feature = "testing")]
mod staged;
mod state;
#[cfg(test)]
mod tests;

const PLACE: &str = "memory:";

/// A pause is at most this long by the options' bounds; a longer one would only be cut.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Every `memory:` locker of a process shares one table, as they would share a server; so do those of one name.
#[derive(Clone, Debug)]
pub(crate) struct MemoryEngine {
    /// `memory:`, and the name if it has one.
    place: Arc<str>,
    clock: Arc<dyn Clock>,
    memory: Arc<Memory>,
}

/// The memory of one process: a child's is another.
#[derive(Debug, Default)]
struct Memory {
    state: Mutex<State>,
    /// The lockers that hear of leases which somebody else has ended. Called without the state's lock.
    receivers: Receivers,
}

impl AfterFork for Memory {
    fn after_fork(&self) -> Self {
        Memory::default()
    }
}

impl MemoryEngine {
    /// That of a place, `memory:` or `memory:<name>`.
    pub(crate) fn open(place: &str) -> Arc<Self> {
        let memory = match place.strip_prefix(PLACE) {
            Some(name) if !name.is_empty() => named::memory_of(name),
            _ => MemoryEngine::shared(),
        };
        Arc::new(MemoryEngine {
            place: place.into(),
            clock: Arc::new(BootClock),
            memory,
        })
    }

    /// The memory that has no name.
    fn shared() -> Arc<Memory> {
        static SHARED: OnceLock<ForkLocal<Memory>> = OnceLock::new();
        let shared = get_or_make(&SHARED, || ForkLocal::new(Memory::default()));
        shared.get().clone()
    }

    /// One apart from all others.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn private(place: &str, clock: Arc<dyn Clock>) -> Self {
        MemoryEngine {
            place: place.into(),
            clock,
            memory: Arc::default(),
        }
    }

    fn state(&self) -> &Mutex<State> {
        &self.memory.state
    }

    /// Asks once.
    pub(crate) fn ask(&self, request: Request<'_>, waits: bool) -> Answer {
        let since = self.clock.now();
        let mut state = self.state().lock();
        match state.change(|names| names.acquire(request, waits, since)) {
            Acquired::Granted(token) => Answer::Granted(Grant {
                token,
                value: state.valued(request),
                since,
            }),
            Acquired::Taken { holder } => Answer::Taken {
                is_queued: waits,
                holder,
            },
            Acquired::Broken => Answer::Broken,
        }
    }

    /// Waits on a condition variable of the owner. A waiter that was let in is to ask at once.
    fn wait(&self, request: Request<'_>, timeout: Duration, until: &Deadline) {
        let end = time::now() + timeout.min(LONGEST_PAUSE);
        let condvar = Arc::<Condvar>::default();
        let _registered = until
            .cancel()
            .map(|cancel| cancel.on_set(self.wake(condvar.clone())));
        let mut state = self.state().lock();
        state.add_sleeper(request.owner, &condvar);
        while let Some(changes) = state.names().changes(request) {
            if until.is_over() {
                break;
            }
            let left = changes.since(self.clock.now()).min(LONGEST_PAUSE);
            let by = end.min(time::now() + left);
            state = condvar.wait_until(state, by);
            if by <= time::now() {
                break;
            }
        }
        state.remove_sleeper(request.owner);
    }

    /// Has a waiter look again.
    fn wake(&self, condvar: Arc<Condvar>) -> Wake {
        let memory = self.memory.clone();
        Arc::new(move || {
            // Under the state's lock: a waiter that has looked before waits by now, and is notified.
            let _state = memory.state.lock();
            condvar.notify_all();
        })
    }
}

impl Engine for MemoryEngine {
    fn place(&self) -> &str {
        &self.place
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        Box::new(MemoryWait(self.clone()))
    }

    fn change(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        _deadline: &Deadline,
    ) -> Result<Outcome> {
        let now = self.clock.now();
        let mut state = self.state().lock();
        Ok(match change {
            Change::Renew => state.change(|names| names.renew(request, now)),
            Change::Verify => state.change(|names| names.is_owner(request, now)),
            Change::Release(release) => {
                let released = state.change(|names| names.release(request, release, now));
                if let (Outcome::Done(_), Some(value)) = (&released, release.value) {
                    state.set_value(request.key(), value);
                }
                released
            }
            Change::Store(value) => {
                let is_held = state.change(|names| names.holds(request, now));
                if is_held {
                    state.set_value(request.key(), value);
                }
                Outcome::of(is_held)
            }
            Change::Downgrade { last_used, value } => {
                let done = state.change(|names| names.downgrade(request, last_used, now));
                if let (Some((_, false)), Some(value)) = (done, value) {
                    state.set_value(request.key(), value);
                }
                done.map(|(token, _)| token).into()
            }
            Change::Adopt { from, last_used } => {
                let token = state.change(|names| names.adopt(request, from, last_used, now));
                token.map(|token| (token, state.valued(request))).into()
            }
            Change::GiveAway => Outcome::DONE,
        })
    }

    fn inspect(&self, key: &Key, _deadline: &Deadline) -> Result<Inspection> {
        let now = self.clock.now();
        Ok(self.state().lock().names().inspect(key, now))
    }

    /// All on one page.
    fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        _cursor: Cursor,
        _deadline: &Deadline,
    ) -> Result<Page> {
        let now = self.clock.now();
        let names = self.state().lock().names().list(namespace, prefix, now);
        Ok(Page { names, next: None })
    }

    fn break_lock(&self, key: &Key, _deadline: &Deadline) -> Result<Vec<Holder>> {
        let now = self.clock.now();
        let broken = self
            .state()
            .lock()
            .change(|names| names.break_lock(key, now));
        self.memory
            .receivers
            .tell(&broken.owners, LostReason::Broken);
        Ok(broken.holders)
    }

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.memory.receivers.add(to);
    }

    fn diagnose(
        &self,
        _namespace: &Namespace,
        _options: &Options,
        _deadline: &Deadline,
    ) -> Result<Vec<Finding>> {
        let found = "locks of this process: other processes have others, and they end with it";
        Ok(vec![Finding::fine("engine", found)])
    }

    fn after_fork(&self) -> Option<Arc<dyn Engine>> {
        Some(MemoryEngine::open(&self.place))
    }

    fn load(&self, key: &Key, _deadline: &Deadline) -> Result<Stored> {
        Ok(self.state().lock().value(key))
    }

    fn remove(&self, key: &Key, _deadline: &Deadline) -> Result<()> {
        self.state().lock().values.remove(key);
        Ok(())
    }

    fn value_key(&self, key: &Key) -> String {
        let apart = if *self.place == *PLACE { "" } else { "/" };
        format!("{}{apart}{}", self.place, key.name())
    }

    fn free_permits(&self, key: &Key, of: u32, _deadline: &Deadline) -> Result<u32> {
        let now = self.clock.now();
        Ok(self.state().lock().names().free_permits(key, of, now))
    }
}

/// How one owner waits: in the queue of a name, on a condition variable.
struct MemoryWait(MemoryEngine);

impl Wait for MemoryWait {
    fn ask(
        &mut self,
        request: Request<'_>,
        pace: Option<&mut Pace<'_>>,
        _deadline: &Deadline,
    ) -> Result<Answer, Unanswered> {
        Ok(self.0.ask(request, pace.is_some()))
    }

    fn wait(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> Option<Grant> {
        let pause = pace.next_pause().min(request.ttl / 3);
        self.0.wait(request, pause, pace.until);
        None
    }
}
