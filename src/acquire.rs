//! The one loop in which every wait for a lock takes place.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::clock::{BootInstant, Deadline};
use crate::engine::{Acquired, Failed, Request};
use crate::error::{Error, Result};
use crate::farewell::Farewell;
use crate::guard::{LockGuard, RELEASE};
use crate::lease::{Lease, Owner, valid_until};
use crate::locker::Core;
use crate::name::Key;

/// How long, and how often, to try.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    deadline: Deadline,
    attempts: Option<u32>,
}

/// After a deadline: what the attempt that is on the wire may still take.
const GRACE: Duration = Duration::from_millis(40);

impl Patience {
    pub(crate) fn once() -> Self {
        Patience {
            deadline: Deadline::NEVER,
            attempts: Some(1),
        }
    }

    pub(crate) fn new(deadline: Deadline, attempts: Option<u32>) -> Self {
        Patience { deadline, attempts }
    }

    fn is_timed(&self) -> bool {
        !self.deadline.is_never()
    }

    fn is_over(&self, attempts: u64) -> bool {
        self.attempts.is_some_and(|most| attempts >= most.into()) || self.deadline.is_over()
    }
}

/// Takes a lock, or gives `None` when it is still taken at the end of `patience`.
pub(crate) fn acquire(
    core: &Arc<Core>,
    key: Key,
    patience: &Patience,
) -> Result<Option<LockGuard>> {
    let owner = Owner::new();
    let renewer = core.renewer(&key, owner.process())?;
    let mut attempt = Attempt {
        core,
        key: &key,
        owner: &owner,
        patience,
        unclear: false,
        failing: None,
    };
    match attempt.run() {
        Ok(Some((lease, granted))) => {
            Ok(Some(LockGuard::new(core.clone(), lease, granted, renewer)))
        }
        outcome => {
            attempt.give_up();
            if let Some(renewer) = renewer {
                core.renewers.give_back(renewer);
            }
            outcome.map(|_| None)
        }
    }
}

/// One caller, from its first attempt to its last.
struct Attempt<'a> {
    core: &'a Core,
    key: &'a Key,
    owner: &'a Owner,
    patience: &'a Patience,
    /// Whether an attempt may have taken the lock without our knowing.
    unclear: bool,
    /// Since when, and how, the engine can't be reached.
    failing: Option<(Instant, Error)>,
}

impl Attempt<'_> {
    /// Every attempt has the same owner, so that one whose answer was lost is found again.
    fn run(&mut self) -> Result<Option<(Lease, BootInstant)>> {
        let mut waits = self.core.options.backoff.waits();
        for attempts in 1_u64.. {
            // Read before sending: the server's lease starts no earlier than this.
            let t0 = self.core.clock.now();
            let began = Instant::now();
            let bound = match self.ask(began)? {
                Some(Acquired::Granted(token)) => {
                    let (key, owner) = (self.key.clone(), self.owner.clone());
                    let valid_until = self.core.lease_end(valid_until(t0, self.core.options.ttl));
                    let lease = Lease {
                        key,
                        owner,
                        token,
                        valid_until,
                    };
                    if lease.is_valid(self.core.clock.now()) {
                        return Ok(Some((lease, t0)));
                    }
                    // Asked again at once, the same owner gets a new lease.
                    self.unclear = true;
                    self.fail(began, self.too_slow());
                    Duration::ZERO
                }
                Some(Acquired::Taken { remaining }) => {
                    // The server's clock counts whole milliseconds.
                    remaining.map_or(Duration::MAX, |left| left + Duration::from_millis(1))
                }
                None => Duration::MAX,
            };
            if self.patience.is_over(attempts) || self.has_failed_for_too_long() {
                break;
            }
            let wait = waits.next().unwrap_or(Duration::ZERO);
            let wait = wait.min(bound).min(self.patience.deadline.remaining());
            self.core.engine.wait(self.key, wait);
        }
        match self.failing.take() {
            Some((_, error)) => Err(error),
            None => Ok(None),
        }
    }

    /// `None` when the engine can't be reached, which may pass.
    fn ask(&mut self, began: Instant) -> Result<Option<Acquired>> {
        let deadline = self.patience.deadline.plus(GRACE);
        let deadline = match &self.failing {
            Some((since, _)) => {
                let left = self
                    .core
                    .options
                    .unavailable_for
                    .saturating_sub(since.elapsed());
                deadline.within(left.max(GRACE))
            }
            None => deadline,
        };
        match self.core.engine.acquire(self.request(), &deadline) {
            Ok(answer) => {
                if let Acquired::Taken { .. } = answer {
                    self.failing = None;
                }
                Ok(Some(answer))
            }
            Err(Failed { error, sent }) => {
                self.unclear |= sent;
                if !matches!(error, Error::Unavailable { .. }) {
                    return Err(error);
                }
                self.fail(began, error);
                Ok(None)
            }
        }
    }

    /// An outage begins with the first attempt that fails.
    fn fail(&mut self, began: Instant, error: Error) {
        let since = self.failing.take().map_or(began, |(since, _)| since);
        self.failing = Some((since, error));
    }

    fn too_slow(&self) -> Error {
        let cause = "its answers take as long as the ttl";
        Error::unavailable(Some(self.key.name()), self.core.engine.place(), cause)
    }

    fn has_failed_for_too_long(&self) -> bool {
        let unavailable_for = self.core.options.unavailable_for;
        self.failing
            .as_ref()
            .is_some_and(|(since, _)| since.elapsed() >= unavailable_for)
    }

    /// Releases what an attempt may have taken, or leaves that to a thread when there is no time. An attempt
    /// that is still on its way to the server, and takes the lock after this, leaves it taken for its ttl.
    fn give_up(&self) {
        if !self.unclear {
            return;
        }
        if !self.patience.is_timed() {
            let deadline = Deadline::after(RELEASE);
            if self
                .core
                .engine
                .release(self.request(), None, &deadline)
                .is_ok()
            {
                return;
            }
        }
        let (key, owner, ttl) = (self.key.clone(), self.owner.clone(), self.core.options.ttl);
        self.core.farewells.leave(Farewell {
            key,
            owner,
            ttl,
            last_used: None,
        });
    }

    fn request(&self) -> Request<'_> {
        Request {
            key: self.key,
            owner: self.owner,
            ttl: self.core.options.ttl,
        }
    }
}
