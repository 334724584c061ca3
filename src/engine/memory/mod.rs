//! Locks of this process: for tests, and for programs that may do without the others.
//!
//! It uses `base`, the seam and `engine::rules`. What always holds here: all changes are made under one
//! lock, and a name without holders, waiters and an abandonment to tell of has no state.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use self::watch::Watches;
use super::rules::{Table, Values, tasks::Tasks};
use super::{
    Answer, Capabilities, Change, Cursor, Engine, Failed, Grant, Outcome, Pace, Page, Receivers,
    Request, Revocations, Wait, Watch,
};
use crate::base::sys::collections::HashMap;
use crate::base::sys::sync::{Condvar, Mutex};
use crate::base::{
    AfterFork, BootClock, BootInstant, Clock, Deadline, Finding, ForkLocal, Holder, Inspection,
    Key, LostReason, Mode, Namespace, Options, Owner, Result, Stored, TaskAnswer, TaskCall,
    fork::get_or_make, sys::time,
};

mod tasks;
#[cfg(test)]
mod tests;
mod watch;

const ENDPOINT: &str = "memory:";

/// A pause is at most this long by the options' bounds; a longer one would only be cut.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Every `memory:` locker of a process shares one table, as they would share a server; so do those of one name.
#[derive(Clone, Debug)]
pub(crate) struct MemoryEngine {
    /// `memory:`, and the name if it has one.
    endpoint: Arc<str>,
    clock: Arc<dyn Clock>,
    memory: Arc<Memory>,
}

/// What the lockers of one endpoint share.
#[derive(Debug, Default)]
struct Memory {
    state: Mutex<State>,
    /// The lockers that hear of leases which somebody else has ended. Called without the state's lock.
    receivers: Receivers,
}

#[derive(Debug, Default)]
struct State {
    names: Table,
    values: Contents,
    queues: Queues,
    /// Since a queue was used for the first time.
    zero: Option<tasks::Zero>,
    /// What notifies the owners whose threads wait.
    sleepers: HashMap<Owner, Arc<Condvar>>,
}

/// What the locks protect, and who waits until it changes.
#[derive(Debug, Default)]
struct Contents {
    stored: HashMap<Key, Arc<[u8]>>,
    watches: Watches,
}

impl Values for Contents {
    fn load(&self, key: &Key) -> Result<Stored> {
        Ok(self.stored.get(key).cloned())
    }

    fn store(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        self.stored.insert(key.clone(), value.into());
        self.watches.tell(key);
        Ok(())
    }
}

/// The delay queues in use.
type Queues = HashMap<Key, Tasks>;

/// The memories of this process. A child begins with new ones.
#[derive(Debug, Default)]
struct Memories {
    unnamed: Arc<Memory>,
    /// Each for as long as somebody uses it.
    named: Mutex<HashMap<String, Weak<Memory>>>,
}

impl AfterFork for Memories {
    fn after_fork(&self) -> Self {
        Memories::default()
    }
}

impl Memories {
    /// That of a name, made if nobody uses it.
    fn of(&self, name: &str) -> Arc<Memory> {
        if name.is_empty() {
            return self.unnamed.clone();
        }
        let mut named = self.named.lock();
        if let Some(memory) = named.get(name).and_then(Weak::upgrade) {
            return memory;
        }
        named.retain(|_, memory| memory.strong_count() > 0);
        let memory = Arc::default();
        named.insert(name.to_owned(), Arc::downgrade(&memory));
        memory
    }
}

impl MemoryEngine {
    /// That of an endpoint, `memory:` or `memory:<name>`.
    pub(crate) fn open(endpoint: &str) -> Arc<Self> {
        static MEMORIES: OnceLock<ForkLocal<Memories>> = OnceLock::new();
        let memories = get_or_make(&MEMORIES, || ForkLocal::new(Memories::default()));
        let name = endpoint.strip_prefix(ENDPOINT).unwrap_or_default();
        Arc::new(MemoryEngine {
            endpoint: endpoint.into(),
            clock: Arc::new(BootClock),
            memory: memories.get().of(name),
        })
    }

    /// One apart from all others.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn private(endpoint: &str, clock: Arc<dyn Clock>) -> Self {
        MemoryEngine {
            endpoint: endpoint.into(),
            clock,
            memory: Arc::default(),
        }
    }

    fn state(&self) -> &Mutex<State> {
        &self.memory.state
    }

    /// Makes a change, and notifies the owners that were granted a name by it.
    fn changed<T>(&self, change: impl FnOnce(&mut Table, &mut Contents) -> T) -> T {
        // Before the lock is waited for: no lease begins earlier.
        let now = self.clock.now();
        let mut state = self.state().lock();
        let State {
            names,
            values,
            sleepers,
            ..
        } = &mut *state;
        let done = change(names.at(now), values);
        for owner in names.take_granted().into_iter().filter_map(|one| one.owner) {
            if let Some(sleeper) = sleepers.get(&owner) {
                sleeper.notify_one();
            }
        }
        done
    }

    /// Asks once.
    pub(crate) fn ask(&self, request: Request<'_>, waits: bool) -> Result<Answer> {
        if request.claim.mode == Mode::Task {
            return Ok(self.ask_for_task(request, waits));
        }
        self.changed(|names, values| names.ask(request, waits, values))
    }

    /// Waits on a condition variable of the owner. A waiter that was let in is to ask at once.
    fn wait(&self, request: Request<'_>, timeout: Duration, until: &Deadline) {
        let end = time::now() + timeout.min(LONGEST_PAUSE);
        let condvar = Arc::<Condvar>::default();
        let (memory, woken) = (self.memory.clone(), condvar.clone());
        let wake = Arc::new(move || {
            // Under the state's lock: a waiter that has looked before waits by now, and is notified.
            let _state = memory.state.lock();
            woken.notify_all();
        });
        let _registered = until.cancel().map(|cancel| cancel.on_set(wake));
        let mut state = self.state().lock();
        let owner = request.owner;
        state.sleepers.insert(owner.clone(), condvar.clone());
        while let Some(changes) = state.changes(request, self.clock.now()) {
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
        state.sleepers.remove(owner);
    }
}

impl State {
    /// When an owner that waits is to ask, if nobody notifies it before: `None` at once.
    fn changes(&self, request: Request<'_>, now: BootInstant) -> Option<BootInstant> {
        match request.claim.mode {
            Mode::Task => MemoryEngine::task_changes(self, request, now),
            _ => self.names.changes(request),
        }
    }
}

impl Engine for MemoryEngine {
    fn endpoint(&self) -> &str {
        &self.endpoint
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            shards: 1,
            ..Capabilities::default()
        }
    }

    fn tasks(&self, key: &Key, call: TaskCall<'_>, _deadline: &Deadline) -> Result<TaskAnswer> {
        Ok(self.call_tasks(key, call))
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
        if request.claim.mode == Mode::Task {
            return Ok(self.change_task(request, change));
        }
        self.changed(|names, values| names.change(request, change, values))
    }

    fn inspect(&self, key: &Key, _deadline: &Deadline) -> Result<Inspection> {
        let now = self.clock.now();
        Ok(self.state().lock().names.inspect(key, now))
    }

    /// All on one page.
    fn list(&self, of: (&Namespace, &str), _cursor: Cursor, _deadline: &Deadline) -> Result<Page> {
        let (namespace, prefix) = of;
        let now = self.clock.now();
        let names = self.state().lock().names.list(namespace, prefix, now);
        Ok(Page { names, next: None })
    }

    fn break_lock(&self, key: &Key, _deadline: &Deadline) -> Result<Vec<Holder>> {
        let broken = self.changed(|names, _| names.break_lock(key));
        let receivers = &self.memory.receivers;
        receivers.tell(&broken.owners, LostReason::Broken);
        Ok(broken.holders)
    }

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.memory.receivers.add(to);
    }

    fn diagnose(&self, _of: (&Namespace, &Options), _deadline: &Deadline) -> Result<Vec<Finding>> {
        let found = "locks of this process, which other processes don't see and which end with it";
        Ok(vec![Finding::fine("engine", found)])
    }

    fn after_fork(&self) -> Option<Arc<dyn Engine>> {
        Some(MemoryEngine::open(&self.endpoint))
    }

    fn load(&self, key: &Key, _deadline: &Deadline) -> Result<Stored> {
        self.state().lock().values.load(key)
    }

    fn remove(&self, key: &Key, _deadline: &Deadline) -> Result<()> {
        let values = &mut self.state().lock().values;
        values.stored.remove(key);
        values.watches.tell(key);
        Ok(())
    }

    fn watch(&self, key: &Key) -> Result<Box<dyn Watch>> {
        Ok(Box::new(self.state().lock().values.watches.watch(key)))
    }

    fn value_key(&self, key: &Key) -> String {
        let apart = if *self.endpoint == *ENDPOINT { "" } else { "/" };
        format!("{}{apart}{}", self.endpoint, key.name())
    }

    fn free_permits(&self, key: &Key, of: u32, _deadline: &Deadline) -> Result<u32> {
        let now = self.clock.now();
        Ok(self.state().lock().names.free_permits(key, of, now))
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
    ) -> Result<Answer, Failed> {
        let answer = self.0.ask(request, pace.is_some());
        answer.map_err(Failed::sent)
    }

    fn wait(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> Option<Grant> {
        // A worker is called when it is to ask.
        let pause = match request.claim.mode {
            Mode::Task if !pace.counted => pace.until.remaining(),
            _ => pace.next_pause().min(request.ttl / 3),
        };
        self.0.wait(request, pause, pace.until);
        None
    }
}

/// What a test's clock and network are told by the memory behind them.
#[cfg(feature = "testing")]
impl MemoryEngine {
    /// When an owner that waits may come in without anybody's doing; `None` when it may now.
    pub(crate) fn changes(&self, request: Request<'_>) -> Option<BootInstant> {
        let now = self.clock.now();
        let at = self.state().lock().changes(request, now)?;
        (now < at).then_some(at)
    }

    /// How many owners wait for a lock.
    pub(crate) fn waiting(&self, key: &Key) -> usize {
        let now = self.clock.now();
        self.state().lock().names.inspect(key, now).waiters.len()
    }

    /// Forgets who has a lock, and tells them for which reason they have lost it.
    pub(crate) fn forget(&self, key: &Key, is_abandoned: bool, reason: LostReason) {
        let owners = self.changed(|names, _| names.forget(key, is_abandoned));
        self.memory.receivers.tell(&owners, reason);
    }
}
