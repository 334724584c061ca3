//! A place where threads of several processes meet.
//!
//! | key | holds |
//! |---|---|
//! | the value of the name | the number of the meeting, the tokens of those that have come to it, and of those that met last |
//! | the name `<name>:here`, held to read | the lease of each that waits, by which the others know that it lives |
//!
//! Whoever comes as the last looks whether the leases of the others last, with the lock of the name held: those that
//! are gone leave the list, and the others go on waiting. So is whoever gives up: it leaves the list with the lock
//! held, unless the meeting was complete before.

use std::{sync::Arc, time::Duration};

use super::value::{ValueGuard, ValueLock};
use super::watched::Watched;
use crate::base::{Claim, Deadline, Error, Mode, Result};
use crate::engine::Engine;
use crate::{guard::LockGuard, locker::Locker};

impl Locker {
    /// Makes a barrier for `n` threads, of this process or of others. Does no I/O.
    ///
    /// All barriers with the same name are one barrier: pass the same `n` everywhere.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidOption`] when `n` isn't 1 to 1,000.
    /// - [`Error::InvalidName`] when `name` isn't 1 to 507 bytes long: the name `<name>:here` is used as well.
    /// - [`Error::Unsupported`] on a quorum of Redis servers, which has no values.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let barrier = locker.barrier("barrier", 2)?;
    /// let theirs = barrier.clone(); // in another process
    /// let other = std::thread::spawn(move || theirs.wait());
    /// let here = barrier.wait()?;
    /// let there = other.join().unwrap()?;
    /// assert!(here.is_leader() != there.is_leader());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn barrier(&self, name: &str, n: usize) -> Result<Barrier> {
        if !(1..=MOST).contains(&n) {
            return Err(Error::InvalidOption {
                option: "n",
                reason: format!("{n} is out of range: use 1 to {MOST} threads"),
            });
        }
        let state = ValueLock::new(self, name, Mode::Exclusive, &State::default())?;
        Ok(Barrier {
            state: Arc::new(state),
            presence: self.claim(&format!("{name}:here"), Mode::Shared)?,
            n,
        })
    }
}

/// So many holders an engine shows.
const MOST: usize = 1_000;

/// Lets threads of several processes wait until a number of them has arrived.
///
/// [`Locker::barrier`] makes one. Making and cloning it costs no I/O. It can be used again and again.
///
/// # Guarantees
///
/// When `n` threads have called `wait`, all `n` calls return. Exactly one of them is the
/// [leader](BarrierWaitResult::is_leader): the last to arrive. Later calls belong to the next round.
///
/// If a process dies while its thread waits, that thread stops counting when its ttl is over, or at once on `file:` and
/// `memory:`. Another thread must then arrive in its place. A thread whose timeout ends stops counting too, unless the
/// round was complete by then. Its call then returns as if it had not timed out.
///
/// # What breaks them
///
/// - A thread that dies just before the last one arrives counts until its ttl is over.
/// - A thread is paused right after its round is complete, until its ttl is over and the next round is complete too.
///   Its call then waits for one more round.
/// - Programs pass different values of `n` for one name. A thread completes the round when it finds as many arrivals as
///   its own `n`.
/// - A server that loses its data starts again with an empty round. A waiting thread arrives again once another thread
///   arrives, or once it notices that its own lease is lost.
///
/// # Round trips
///
/// A thread that has to wait takes six: one each for a lease, the lock and its release, and three to start the wait.
/// The last thread takes four: it checks the leases of the others, and doesn't wait. Each arrival sends one message to
/// every waiting thread, which then reads the value. At the end, each thread takes one more to release its lease.
///
/// # Differences from `std::sync::Barrier`
///
/// - `n` is at least 1.
/// - Every call returns a [`Result`], and there is a [`wait_for`](Self::wait_for).
/// - A participant can die.
///
/// # Examples
///
/// ```
/// # let locker = crosslock::Locker::open("memory:")?;
/// let barrier = locker.barrier("round", 1)?;
/// for round in 0..3 {
///     if barrier.wait()?.is_leader() {
///         println!("round {round} begins");
///     }
/// }
/// # Ok::<(), crosslock::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Barrier {
    state: Arc<ValueLock<State>>,
    /// What each holds that waits.
    presence: Claim,
    n: usize,
}

/// Tells whether a thread was the last to arrive at a [`Barrier`].
///
/// # Examples
///
/// ```
/// # let locker = crosslock::Locker::open("memory:")?;
/// assert!(locker.barrier("barrier-leader", 1)?.wait()?.is_leader());
/// # Ok::<(), crosslock::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult {
    is_leader: bool,
}

impl BarrierWaitResult {
    /// Returns `true` for the last thread to arrive: one thread in each round.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// if locker.barrier("barrier-is-leader", 1)?.wait()?.is_leader() {
    ///     println!("this one cleans up");
    /// }
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn is_leader(&self) -> bool {
        self.is_leader
    }
}

/// What is stored: the number of the meeting, the tokens of those that have come to it, and of those that met last.
type State = (u64, Vec<u64>, Vec<u64>);

/// One that has come, and waits.
struct Waiting {
    presence: LockGuard,
    meeting: u64,
}

impl Waiting {
    /// Whether it was there when its meeting became complete. It wasn't if it was stopped for longer than its ttl. If
    /// the server has lost its data, the number of the meeting is another one, too.
    fn has_met(&self, (meeting, _, met): &State) -> bool {
        let is_later = *meeting > self.meeting + 1;
        met.contains(&self.presence.fencing_token()) || is_later && self.presence.is_held()
    }
}

enum Arrived {
    Last,
    Waits(Box<Waiting>),
}

/// How a wait for the others has ended.
enum Ended {
    Complete,
    /// Its own lease is lost: it comes anew.
    Lost,
    TimedOut,
}

impl Barrier {
    /// Blocks until `n` threads have arrived.
    ///
    /// # Errors
    ///
    /// - The errors of [`Mutex::lock`](crate::Mutex::lock) and [`MutexGuard::unlock`](crate::ValueGuard::unlock).
    /// - [`Error::Unavailable`] also when the engine can't be reached for
    ///   [`outage_timeout`](crate::LockerBuilder::outage_timeout) during the wait. After an error this thread doesn't
    ///   count any more, unless the round was complete before.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// locker.barrier("barrier-wait", 1)?.wait()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn wait(&self) -> Result<BarrierWaitResult> {
        let waited = self.wait_until(&Deadline::NEVER)?;
        waited.ok_or_else(|| Error::cancelled(self.state.claim.key.name()))
    }

    /// Blocks until `n` threads have arrived, for at most `timeout`.
    ///
    /// Returns `None` if the timeout ends first. This thread then doesn't count any more: the call takes two more round
    /// trips to leave the round.
    ///
    /// # Errors
    ///
    /// The errors of [`wait`](Self::wait).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let barrier = locker.barrier("barrier-wait-for", 2)?;
    /// assert_eq!(barrier.wait_for(Duration::from_millis(20))?, None);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn wait_for(&self, timeout: Duration) -> Result<Option<BarrierWaitResult>> {
        let clock = &self.state.locker.core().clock;
        self.wait_until(&Deadline::after_by(&**clock, timeout))
    }

    fn wait_until(&self, until: &Deadline) -> Result<Option<BarrierWaitResult>> {
        let result = |is_leader| Ok(Some(BarrierWaitResult { is_leader }));
        loop {
            let waiting = match self.arrive(until)? {
                None => return Ok(None),
                Some(Arrived::Last) => return result(true),
                Some(Arrived::Waits(waiting)) => waiting,
            };
            let ended = self.await_others(&waiting, until);
            // The others know that it lives until it has left.
            if matches!(ended, Ok(Ended::Complete)) || self.leave(&waiting)? {
                return result(false);
            }
            match ended? {
                Ended::TimedOut => return Ok(None),
                Ended::Lost | Ended::Complete => {}
            }
        }
    }

    /// Comes to the meeting. `None`: the time is over.
    fn arrive(&self, until: &Deadline) -> Result<Option<Arrived>> {
        let calls = self.state.locker.calls();
        let Some(presence) = calls.wait_until(&self.presence, until.clone())? else {
            return Ok(None);
        };
        // To come takes two questions: where the first outlasts the time, the second still has its own.
        let by = match until.is_over() {
            true => Deadline::after(Duration::ZERO),
            false => until.clone(),
        };
        let Some(mut state) = self.lock(&by)? else {
            return Ok(None);
        };
        let (meeting, here, met) = &mut *state;
        here.push(presence.fencing_token());
        if here.len() >= self.n {
            let alive = self.alive()?;
            here.retain(|token| alive.contains(token));
        }
        if here.len() >= self.n {
            (*meeting, *met) = (*meeting + 1, std::mem::take(here));
            ValueGuard::unlock(state)?;
            return Ok(Some(Arrived::Last));
        }
        let meeting = *meeting;
        ValueGuard::unlock(state)?;
        let waiting = Waiting { presence, meeting };
        Ok(Some(Arrived::Waits(Box::new(waiting))))
    }

    fn await_others(&self, waiting: &Waiting, until: &Deadline) -> Result<Ended> {
        let calls = self.state.locker.calls();
        let mut watched = Watched::new(calls, &self.state.claim.key)?;
        loop {
            let found = watched.find(&until.within(waiting.presence.remaining()), |stored| {
                let state = self.state.parse(stored.as_deref())?;
                Ok((state.0 != waiting.meeting).then(|| waiting.has_met(&state)))
            })?;
            if let Some(has_met) = found {
                return Ok(if has_met {
                    Ended::Complete
                } else {
                    Ended::Lost
                });
            } else if !waiting.presence.is_held() {
                return Ok(Ended::Lost);
            } else if until.is_over() {
                return Ok(Ended::TimedOut);
            }
        }
    }

    /// Leaves the meeting, unless it is complete: says whether it is.
    fn leave(&self, waiting: &Waiting) -> Result<bool> {
        let by = Deadline::after(self.state.locker.core().options.ttl);
        let Some(mut state) = self.lock(&by)? else {
            let (name, engine) = (
                self.state.claim.key.name(),
                &self.state.locker.core().engine,
            );
            let cause = "the lock of the barrier stays taken";
            return Err(Error::unavailable(Some(name), engine.endpoint(), cause));
        };
        if state.0 != waiting.meeting {
            return Ok(waiting.has_met(&state));
        }
        let own = waiting.presence.fencing_token();
        state.1.retain(|token| *token != own);
        ValueGuard::unlock(state)?;
        Ok(false)
    }

    fn lock(&self, until: &Deadline) -> Result<Option<ValueGuard<State, Barrier>>> {
        let held = self.state.lock_until(until)?;
        Ok(held.map(|held| ValueGuard::new(held, &self.state)))
    }

    /// The tokens of those that have leases.
    fn alive(&self) -> Result<Vec<u64>> {
        let key = &self.presence.key;
        let inspect = |engine: &dyn Engine, by: &Deadline| engine.inspect(key, by);
        let seen = self.state.locker.calls().ask(key.name(), inspect)?;
        Ok(seen.holders.iter().filter_map(|one| one.token).collect())
    }
}
