//! The engine of a fake's locker: the memory of the fake, behind a network that fails and is slow when a test says so.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::world::{ENDPOINT, Waiting, World, cut};
use crate::base::{
    Deadline, Ending, Error, Finding, Holder, Inspection, Key, Namespace, Options, Result, Stored,
    TaskAnswer, TaskCall, sys::time,
};
use crate::engine::{
    Answer, Capabilities, Change, Cursor, Engine, Failed, Grant, Outcome, Pace, Page, Request,
    Revocations, Wait, Watch, memory::MemoryEngine,
};

/// The engine of a fake's locker.
#[derive(Clone, Debug)]
pub(super) struct FakeEngine {
    world: Arc<World>,
    io_timeout: Duration,
}

/// A call that waits so long in an outage, while nobody moves the clock, would wait for ever.
const LONGEST_OUTAGE: Duration = Duration::from_secs(20);

/// Who waits for an answer.
#[derive(Clone, Copy)]
enum Asking {
    /// A call for a lock, by its number.
    Call(u64),
    /// Any other caller.
    Caller,
    /// Nobody: it comes while a caller does something else.
    Nobody,
}

impl FakeEngine {
    pub(super) fn new(world: Arc<World>, io_timeout: Duration) -> Self {
        FakeEngine { world, io_timeout }
    }

    fn memory(&self) -> &MemoryEngine {
        &self.world.memory
    }

    /// Sends a request, and waits for its answer. What is asked is done at once, and the answer is late.
    fn request<T>(
        &self,
        name: Option<&str>,
        deadline: &Deadline,
        asking: Asking,
        ask: impl FnOnce(&MemoryEngine) -> T,
    ) -> Result<T, Failed> {
        let unavailable = |cause: &str| Error::unavailable(name, ENDPOINT, cause);
        if self.world.is_out() {
            return Err(Failed::unsent(unavailable("the test says so")));
        }
        let answer = ask(self.memory());
        self.world.waits.look_again();
        let delay = self.world.delay();
        if delay.is_zero() {
            return Ok(answer);
        }
        let most = cut(Duration::MAX, self.io_timeout, deadline);
        match asking {
            Asking::Call(number) => self.world.await_answer(Some(number), delay.min(most)),
            Asking::Caller => self.world.await_answer(None, delay.min(most)),
            Asking::Nobody => {}
        }
        if delay >= most {
            return Err(Failed::sent(unavailable(
                "its answer was late, because the test says so",
            )));
        }
        Ok(answer)
    }

    /// The same, of a caller that needn't know what may have been done.
    fn caller<T>(
        &self,
        name: Option<&str>,
        deadline: &Deadline,
        ask: impl FnOnce(&MemoryEngine) -> Result<T>,
    ) -> Result<T> {
        let answer = self.request(name, deadline, Asking::Caller, ask);
        answer.map_err(|failed| failed.error)?
    }
}

impl Engine for FakeEngine {
    fn endpoint(&self) -> &str {
        ENDPOINT
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        Box::new(FakeWait {
            engine: self.clone(),
            number: self.world.next_number(),
            epoch: self.world.epoch(),
            is_queued: false,
        })
    }

    fn change(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let asking = match change {
            // As on a server: nothing is sent.
            Change::GiveAway => return Ok(Outcome::DONE),
            // A call for a lock that gives up: its time is over already.
            Change::Release(release) if release.ending == Ending::Unknown => Asking::Nobody,
            Change::Adopt { .. } => Asking::Call(self.world.next_number()),
            _ => Asking::Caller,
        };
        let name = Some(request.key().name());
        let changed = self.request(name, deadline, asking, |memory| {
            memory.change(request, change, &Deadline::NEVER)
        });
        changed.map_err(|failed| failed.error)?
    }

    fn capabilities(&self) -> Capabilities {
        self.memory().capabilities()
    }

    fn tasks(&self, key: &Key, call: TaskCall<'_>, deadline: &Deadline) -> Result<TaskAnswer> {
        self.caller(Some(key.name()), deadline, |memory| {
            memory.tasks(key, call, &Deadline::NEVER)
        })
    }

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.memory().tell_revocations(to);
    }

    fn diagnose(&self, _of: (&Namespace, &Options), _deadline: &Deadline) -> Result<Vec<Finding>> {
        Ok(vec![Finding::fine("engine", "a fake, for tests")])
    }

    /// The test moves its own world, not that of a child.
    fn after_fork(&self) -> Option<Arc<dyn Engine>> {
        Some(Arc::new(FakeEngine::new(World::new(), self.io_timeout)))
    }

    fn load(&self, key: &Key, deadline: &Deadline) -> Result<Stored> {
        self.caller(Some(key.name()), deadline, |memory| {
            memory.load(key, &Deadline::NEVER)
        })
    }

    /// It hears also in an outage, but whoever looks then sees nothing.
    fn watch(&self, key: &Key) -> Result<Box<dyn Watch>> {
        self.memory().watch(key)
    }

    fn remove(&self, key: &Key, deadline: &Deadline) -> Result<()> {
        self.caller(Some(key.name()), deadline, |memory| {
            memory.remove(key, &Deadline::NEVER)
        })
    }

    fn value_key(&self, key: &Key) -> String {
        self.memory().value_key(key)
    }

    fn free_permits(&self, key: &Key, of: u32, deadline: &Deadline) -> Result<u32> {
        self.caller(Some(key.name()), deadline, |memory| {
            memory.free_permits(key, of, &Deadline::NEVER)
        })
    }

    fn inspect(&self, key: &Key, deadline: &Deadline) -> Result<Inspection> {
        self.caller(Some(key.name()), deadline, |memory| {
            memory.inspect(key, &Deadline::NEVER)
        })
    }

    fn list(&self, of: (&Namespace, &str), cursor: Cursor, deadline: &Deadline) -> Result<Page> {
        self.caller(None, deadline, |memory| {
            memory.list(of, cursor, &Deadline::NEVER)
        })
    }

    fn break_lock(&self, key: &Key, deadline: &Deadline) -> Result<Vec<Holder>> {
        self.caller(Some(key.name()), deadline, |memory| {
            memory.break_lock(key, &Deadline::NEVER)
        })
    }
}

/// How a call waits: until something has changed for it. It sends no heartbeats.
struct FakeWait {
    engine: FakeEngine,
    number: u64,
    /// That of the world when it asked last.
    epoch: u64,
    /// Whether it was told that it waits in the queue: then it hears of its grant, and doesn't ask for it.
    is_queued: bool,
}

impl Wait for FakeWait {
    fn ask(
        &mut self,
        request: Request<'_>,
        pace: Option<&mut Pace<'_>>,
        deadline: &Deadline,
    ) -> Result<Answer, Failed> {
        self.epoch = self.engine.world.epoch();
        let asking = match std::mem::take(&mut self.is_queued) {
            true => Asking::Nobody,
            false => Asking::Call(self.number),
        };
        let name = Some(request.key().name());
        let answer = self.engine.request(name, deadline, asking, |memory| {
            memory.ask(request, pace.is_some())
        })?;
        let answer = answer.map_err(Failed::sent)?;
        self.is_queued = matches!(
            answer,
            Answer::Taken {
                is_queued: true,
                ..
            }
        );
        Ok(answer)
    }

    fn wait(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> Option<Grant> {
        let world = &self.engine.world;
        // Attempts that are counted are made although no time passes: else they would never end.
        let pause = pace.counted.then(|| time::now() + pace.next_pause());
        let is_out = world.is_out();
        let by = pause.or_else(|| is_out.then(|| time::now() + LONGEST_OUTAGE));
        let woken = world.clone();
        let look_again = move || woken.waits.look_again();
        let cancel = pace.until.cancel();
        let _registered = cancel.map(|cancel| cancel.on_set(Arc::new(look_again)));
        let waiting = Waiting::Turn {
            claim: request.claim.clone(),
            owner: request.owner.clone(),
            until: pace.until.clone(),
            epoch: self.epoch,
        };
        let is_due = |own: &Waiting| world.is_due(own);
        let is_over = !world.waits.await_due(self.number, waiting, is_due, by);
        assert!(
            !(is_over && is_out && pause.is_none()),
            "a call for lock {:?} has waited for {LONGEST_OUTAGE:?} in the outage of a `Fake`: no thread has moved \
             the clock by `advance`, or ended the outage by `outage(false)`",
            request.key().name()
        );
        None
    }
}
