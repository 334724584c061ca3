//! A lease while it is held: what a guard and its renewer share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::{fmt, time::Duration};

use crate::base::sys::channel::{Receiver, Sender, bounded};
use crate::base::{
    BootInstant, Cancel, Claim, Clock, Deadline, ErrorChain, Key, LostReason, Observers, Owner,
    limits::LONGEST_KEEP, sys::sync::Mutex,
};
use crate::engine::{Change, Engine, Outcome, Request};
use crate::lease::{Lease, Plan, renewer::Tend};

mod telling;

use telling::tell_lost;

/// Tells a holder that its lock is lost: the message of [`LockGuard::lost`](crate::LockGuard::lost).
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # fn main() -> crosslock::Result<()> {
/// let ttl = Duration::from_millis(100);
/// let locker = crosslock::Locker::builder("memory:").ttl(ttl).renew(false).build()?;
/// let guard = locker.lock("lost-message-example")?;
/// let lost = guard.lost().recv().expect("one message");
/// assert_eq!(lost.name, "lost-message-example");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// The lock's name.
    pub name: String,
    /// How that was noticed.
    pub reason: LostReason,
}

/// A lease while it is held: the guard owns it, its renewer has a `Weak` to it. With the lease goes `T`, the right to
/// hold the name in this process.
///
/// The lease moves out when the guard ends; then there is nothing left to tend.
pub(crate) struct LeaseMonitor<T> {
    engine: Arc<dyn Engine>,
    clock: Arc<dyn Clock>,
    plan: Plan,
    observer: Observers,
    /// Renewals end here.
    stop: BootInstant,
    state: Mutex<State<T>>,
    /// Made when somebody asks for it: most guards are never asked.
    lost: OnceLock<Receiver<Lost>>,
    /// Set when the guard ends, for a renewal that is on the wire.
    ended: Cancel,
    /// The number of the thread that has the guard, as far as that is known: see `guard::held_by_thread`.
    thread: AtomicU64,
}

#[derive(Debug)]
struct State<T> {
    /// `None`: released, or about to be.
    lease: Option<Lease>,
    /// The right to hold the name in this process: given up with the guard, or when the lease is lost.
    turn: Option<T>,
    /// Since when renewals fail.
    failing: Option<BootInstant>,
    /// For good: a lease that was lost is never valid again.
    lost: Option<LostReason>,
    /// Whether the loss may be told: the turn is given up.
    told: bool,
    /// Whether its locker was closed, and not its guard released it.
    closed: bool,
    /// The other end of the receiver, once there is one. Dropped after its one message, so that every clone of the
    /// receiver learns of it.
    tell: Option<Sender<Lost>>,
}

impl<T> State<T> {
    /// Closed already when the lease has ended.
    fn make_lost(&mut self) -> Receiver<Lost> {
        let (tell, lost) = bounded(1);
        match (&self.lease, self.lost) {
            (Some(lease), Some(reason)) if self.told => tell_lost(&tell, &lease.claim.key, reason),
            (Some(_), _) => self.tell = Some(tell),
            (None, _) => {}
        }
        lost
    }
}

/// What a renewer has to do next.
enum Step {
    Nothing,
    Wait(Duration),
    Renew {
        claim: Claim,
        owner: Owner,
        granted: u64,
        remaining: Duration,
    },
    Expire,
}

impl<T: Send> LeaseMonitor<T> {
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        clock: Arc<dyn Clock>,
        plan: Plan,
        observer: Observers,
        lease: Lease,
        turn: Option<T>,
    ) -> Self {
        let stop = plan
            .max_hold
            .map_or(BootInstant::MAX, |max_hold| lease.held_since.plus(max_hold));
        let state = State {
            lease: Some(lease),
            turn,
            failing: None,
            lost: None,
            told: false,
            closed: false,
            tell: None,
        };
        let (state, ended) = (Mutex::new(state), Cancel::default());
        LeaseMonitor {
            engine,
            clock,
            plan,
            observer,
            stop,
            state,
            lost: OnceLock::new(),
            ended,
            thread: AtomicU64::default(),
        }
    }

    pub(crate) fn lost(&self) -> &Receiver<Lost> {
        if let Some(lost) = self.lost.get() {
            return lost;
        }
        // Whoever makes it has the lock, so that the others wait there: a simulation knows of locks alone.
        let mut state = self.state.lock();
        self.lost.get_or_init(|| state.make_lost())
    }

    /// How much longer the lease is valid; a lease found to have run out is lost for good.
    pub(crate) fn remaining(&self) -> Duration {
        self.remaining_at(self.clock.now())
    }

    /// The same, for a time that was now a moment ago.
    pub(crate) fn remaining_at(&self, now: BootInstant) -> Duration {
        let remaining = {
            let state = self.state.lock();
            match &state.lease {
                Some(lease) if state.lost.is_none() => lease.remaining(now),
                _ => return Duration::ZERO,
            }
        };
        if remaining.is_zero() {
            self.lose(LostReason::Expired);
        }
        remaining
    }

    /// Has the lock stay taken for so long since its holder got it, also when it is released before.
    pub(crate) fn keep_for(&self, least: Duration) {
        if let Some(lease) = &mut self.state.lock().lease {
            lease.kept_until = lease.held_since.plus(least.min(LONGEST_KEEP));
        }
    }

    pub(crate) fn lost_reason(&self) -> Option<LostReason> {
        self.state.lock().lost
    }

    /// Whether it is a lease of one of these names at that endpoint.
    pub(crate) fn has_one_of(&self, keys: &[Key], endpoint: &str) -> bool {
        let state = self.state.lock();
        let lease = state.lease.as_ref().filter(|_| state.lost.is_none());
        self.engine.endpoint() == endpoint
            && lease.is_some_and(|lease| lease.claim.keys().iter().any(|key| keys.contains(key)))
    }

    /// The thread that has the guard; zero if none is known.
    pub(crate) fn thread(&self) -> u64 {
        self.thread.load(Ordering::Relaxed)
    }

    pub(crate) fn set_thread(&self, number: u64) {
        self.thread.store(number, Ordering::Relaxed);
    }

    /// The proof of ownership, while there is a lease: its owner, and the token that the engine granted.
    pub(crate) fn proof(&self) -> Option<(Owner, u64)> {
        let state = self.state.lock();
        let lease = state.lease.as_ref()?;
        Some((lease.owner.clone(), lease.granted_token()))
    }

    /// Whether the lease is of the owner with that text, and has such a token.
    pub(crate) fn is_of(&self, owner: &str, below: u64) -> bool {
        let state = self.state.lock();
        let lease = state.lease.as_ref();
        lease.is_some_and(|lease| lease.owner.as_str() == owner && lease.token.number < below)
    }

    /// The value that came with the lease.
    #[cfg(feature = "value")]
    pub(crate) fn value(&self) -> Option<crate::base::claim::Stored> {
        self.state.lock().lease.as_ref()?.value.clone()
    }

    /// Ends all renewing, and gives the lease, and the turn if it still has it, to whoever releases it.
    pub(crate) fn end(&self) -> Option<(Lease, Option<T>)> {
        self.ended.set();
        let mut state = self.state.lock();
        state.tell = None;
        Some((state.lease.take()?, state.turn.take()))
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_set()
    }

    /// When the lease has to be renewed next: never again when that is after the end of renewals.
    fn due(&self, lease: &Lease) -> BootInstant {
        if lease.due < self.stop {
            lease.due
        } else {
            BootInstant::MAX
        }
    }

    fn step(&self) -> Step {
        let state = self.state.lock();
        let (Some(lease), None) = (&state.lease, state.lost) else {
            return Step::Nothing;
        };
        let now = self.clock.now();
        if !lease.is_valid(now) {
            return Step::Expire;
        }
        let due = if now < self.stop {
            self.due(lease)
        } else {
            BootInstant::MAX
        };
        if now < due {
            return Step::Wait(due.min(lease.valid_until).since(now));
        }
        let (claim, owner) = (lease.claim.clone(), lease.owner.clone());
        Step::Renew {
            claim,
            owner,
            granted: lease.granted_token(),
            remaining: lease.remaining(now),
        }
    }

    /// Asks once, for at most half of the time that is left, so that a second try fits in.
    fn renew(&self, request: Request<'_>, remaining: Duration) {
        let claim = request.claim;
        let deadline = Deadline::after_by(&*self.clock, remaining / 2).or(&self.ended);
        // Read before sending: the server's lease starts no earlier than this.
        let t0 = self.clock.now();
        let answer = self.engine.change(request, Change::Renew, &deadline);
        if answer.is_ok() {
            self.tell_answer(&claim.key);
        }
        match answer {
            Ok(Outcome::Done(done)) => self.renewed(&claim.key, t0, done.since.unwrap_or(t0)),
            Ok(Outcome::Gone(gone)) => self.lose(gone.reason()),
            Err(e) => {
                let is_first = self.postpone();
                self.tell_failure(&claim.key, is_first, &e);
                // Once for each outage: there are many tries, and many locks.
                let level = if is_first {
                    log::Level::Warn
                } else {
                    log::Level::Debug
                };
                if !self.ended.is_set() {
                    log::log!(
                        level,
                        "a renewal failed and will be retried: {}",
                        ErrorChain(&e)
                    );
                }
            }
        }
    }

    fn renewed(&self, key: &Key, asked: BootInstant, since: BootInstant) {
        if let Some(token) = self.extend(asked, since) {
            self.observer.renewed(key, token);
        }
    }

    /// Gives the token of the lease, if it goes on. It was renewed by a question of the time `asked`, and began anew at
    /// `since`, or later.
    fn extend(&self, asked: BootInstant, since: BootInstant) -> Option<u64> {
        let (due, valid_until) = (self.plan.due(asked), self.plan.valid_until(since));
        let mut state = self.state.lock();
        let now = self.clock.now();
        // What was lost meanwhile stays lost: its holder may have been told.
        let lost = state.lost.is_some();
        let lease = state.lease.as_mut().filter(|_| !lost)?;
        if lease.is_valid(now) {
            lease.due = due;
            // One that doesn't end by itself was only looked at.
            if lease.valid_until != BootInstant::MAX {
                lease.valid_until = valid_until;
            }
            return Some(lease.token.number);
        }
        drop(state);
        // Nobody has looked since it ran out. Another may have had the lock before the renewal reached the server, and
        // a late copy of this owner's acquire may have taken it once more.
        self.lose(LostReason::Expired);
        None
    }

    /// The old deadline stays: the renewal may have been applied or not. Says whether it is the first that failed.
    fn postpone(&self) -> bool {
        let now = self.clock.now();
        let mut state = self.state.lock();
        if let Some(lease) = &mut state.lease {
            lease.due = now.plus(self.plan.pause(lease.remaining(now)));
        }
        let is_first = state.failing.is_none();
        state.failing.get_or_insert(now);
        is_first
    }
}

impl<T: Send> Tend for LeaseMonitor<T> {
    fn first_look(&self, now: BootInstant) -> Duration {
        let state = self.state.lock();
        let look = state
            .lease
            .as_ref()
            .map_or(now, |lease| self.due(lease).min(lease.valid_until));
        look.since(now)
    }

    fn tend(&self) -> Option<Duration> {
        match self.step() {
            Step::Nothing => None,
            Step::Wait(duration) => Some(duration),
            Step::Expire => {
                self.lose(LostReason::Expired);
                None
            }
            Step::Renew {
                claim,
                owner,
                granted,
                remaining,
            } => {
                let request = Request {
                    claim: &claim,
                    owner: &owner,
                    ttl: self.plan.ttl,
                    granted: Some(granted),
                };
                self.renew(request, remaining);
                Some(Duration::ZERO)
            }
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for LeaseMonitor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseMonitor")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
