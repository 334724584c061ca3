//! Locks for the tests of programs that lock: on a memory of their own, by a clock that the test moves.
//!
//! It uses `locker` and all below. What always holds here: nothing becomes due while nobody moves the clock; when the
//! clock has moved, everything that was due has been done.

mod clock;
mod engine;
mod world;

use std::{sync::Arc, time::Duration};

use engine::FakeEngine;
use world::World;

use crate::base::{
    Clock, ForkLocal, Key, LostReason, Namespace, Options, Result, limits::LONGEST_KEEP, sys::time,
};
use crate::core::Core;
use crate::locker::{Locker, builder::LockerBuilder};

/// Opens lockers for a test, with their own memory, a clock that the test moves, and a network that fails when the test
/// wants it to. It needs no server, and never sleeps.
///
/// Pass a [`Locker`] to your code, and open it with [`locker`](Self::locker) or [`builder`](Self::builder) in its
/// tests. Several lockers of one fake behave like several processes. Clones are the same fake.
///
/// # Time
///
/// The clock moves only with [`advance`](Self::advance), and with requests that [`delay`](Self::delay) makes slow.
/// Everything uses it: leases and their renewal, [`at_least_for`](crate::LockGuard::at_least_for),
/// [`max_hold`](crate::LockerBuilder::max_hold), how long a lock is held, timeouts of calls, and
/// [`outage_timeout`](crate::LockerBuilder::outage_timeout). Therefore:
///
/// - A lock stays held while the clock stands, even without renewal.
/// - A call that waits, timed or not, waits until another thread releases the lock or moves the clock. In a test with
///   one thread it would wait for ever: use `try_lock` there.
/// - The time of [`hand_over`](crate::LockerBuilder::hand_over) doesn't end while the clock stands. So threads of one
///   locker hand a lock over to each other, up to 1024 times, before another locker gets it.
/// - [`try_lock_until`](Locker::try_lock_until) uses the time left until its `Instant` as a timeout.
///
/// Only the pauses between counted [`attempts`](crate::LockerBuilder::attempts) pass without `advance`.
///
/// # Other differences from a server
///
/// No waiter counts as dead. `advance` renews leases, not a thread. A child of `fork` shares nothing with its parent's
/// fake.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use crosslock::{LostReason, testing::Fake};
///
/// # fn main() -> crosslock::Result<()> {
/// let fake = Fake::new();
/// let locker = fake.locker();
/// let guard = locker.lock("job")?;
///
/// // It is renewed for as long as the server answers.
/// fake.advance(Duration::from_secs(3600));
/// assert!(guard.is_held());
///
/// fake.set_outage(true);
/// fake.advance(Duration::from_secs(10));
/// assert_eq!(guard.lost().recv().expect("one message").reason, LostReason::Expired);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Fake {
    world: Arc<World>,
    namespace: Namespace,
}

impl Fake {
    /// Makes a fake in which no lock is taken and the network works.
    ///
    /// # Examples
    ///
    /// ```
    /// # use crosslock::testing::Fake;
    /// let (one, other) = (Fake::new().locker(), Fake::new().locker());
    /// let _guard = one.lock("fake-example")?;
    /// assert!(other.try_lock("fake-example")?.is_some());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Fake {
            world: World::new(),
            namespace: Namespace::default(),
        }
    }

    /// Opens a locker with the default options.
    ///
    /// # Examples
    ///
    /// ```
    /// # use crosslock::testing::Fake;
    /// let locker = Fake::new().locker();
    /// assert!(locker.try_lock("locker-example")?.is_some());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    #[must_use]
    pub fn locker(&self) -> Locker {
        Locker::new(self.namespace.clone(), self.open(Options::default()))
    }

    /// Returns a builder, to set options. Its [`build`](LockerBuilder::build) opens a locker of this fake.
    ///
    /// # Errors
    ///
    /// `build` gives [`Error::InvalidOption`](crate::Error::InvalidOption) for a value out of its range.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use crosslock::testing::Fake;
    /// let fake = Fake::new();
    /// let locker = fake.builder().ttl(Duration::from_secs(30)).renew(false).build()?;
    /// let guard = locker.lock("builder-example")?;
    /// fake.advance(Duration::from_secs(30));
    /// assert!(!guard.is_held());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn builder(&self) -> LockerBuilder {
        let fake = self.clone();
        let opener = Arc::new(move |options| fake.open(options));
        LockerBuilder::opened_by(opener).namespace(self.namespace.as_str())
    }

    /// Returns a clone for another namespace than `crosslock`. It applies to the clone's lockers, and to calls with a
    /// name, such as [`lose`](Self::lose).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](crate::Error::InvalidOption) when `namespace` isn't up to 64 of `A-Z a-z 0-9 . _ -`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use crosslock::testing::Fake;
    /// let fake = Fake::new();
    /// let deploy = fake.locker().with_namespace("deploy")?;
    /// let guard = deploy.lock("namespace-example")?;
    /// fake.with_namespace("deploy")?.lose("namespace-example");
    /// assert!(!guard.is_held());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn with_namespace(&self, namespace: &str) -> Result<Self> {
        Ok(Fake {
            namespace: Namespace::new(namespace)?,
            ..self.clone()
        })
    }

    /// Moves the clock, and returns when everything that became due is done.
    ///
    /// The clock moves in steps, from one due time to the next. At each step:
    ///
    /// - Leases are renewed. If that fails for a ttl, they are lost, and [`lost`](crate::LockGuard::lost) gets its
    ///   message.
    /// - Leases that aren't renewed end, and so does the time of `at_least_for`.
    /// - Waiting calls of other threads get a free lock, or end with their timeout. `advance` continues when a call has
    ///   its guard, and doesn't wait for what that thread does next.
    /// - Releases that an outage delayed are done, if the outage is over.
    ///
    /// `advance` can't see a thread that isn't waiting yet: call [`await_waiters`](Self::await_waiters) first. More
    /// than 100 years count as 100.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::{thread, time::Duration};
    /// # use crosslock::testing::Fake;
    /// # fn main() -> crosslock::Result<()> {
    /// let (fake, minute) = (Fake::new(), Duration::from_secs(60));
    /// let guard = fake.locker().lock("advance-example")?;
    /// let other = fake.locker();
    /// let waiter = thread::spawn(move || other.try_lock_for("advance-example", minute));
    /// fake.await_waiters("advance-example", 1);
    /// fake.advance(minute);
    /// assert!(waiter.join().expect("no panic")?.is_none());
    /// guard.check()
    /// # }
    /// ```
    pub fn advance(&self, duration: Duration) {
        self.world.advance(duration.min(LONGEST_KEEP));
    }

    /// Returns how far the clock has moved since the fake was made.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use crosslock::testing::Fake;
    /// let fake = Fake::new();
    /// fake.advance(Duration::from_secs(7));
    /// assert_eq!(fake.elapsed(), Duration::from_secs(7));
    /// ```
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.world.clock.elapsed()
    }

    /// Removes a lock from the server, as a restart without its data does. The next waiter gets it.
    ///
    /// When the call returns, the guards of the name are lost with [`LostReason::NotOwner`]. The next holder doesn't
    /// find the lock abandoned.
    ///
    /// # Examples
    ///
    /// ```
    /// # use crosslock::{LostReason, testing::Fake};
    /// # fn main() -> crosslock::Result<()> {
    /// let fake = Fake::new();
    /// let guard = fake.locker().lock("lose-example")?;
    /// fake.lose("lose-example");
    /// assert_eq!(guard.lost().recv().expect("one message").reason, LostReason::NotOwner);
    /// # Ok(())
    /// # }
    /// ```
    pub fn lose(&self, name: &str) {
        self.forget(name, false, LostReason::NotOwner);
    }

    /// Ends a lock as if its holder had crashed and its lease were over. The next waiter gets it.
    ///
    /// When the call returns, the guards of the name are lost with [`LostReason::Expired`]. The next exclusive holder
    /// sees [`was_abandoned`](crate::LockGuard::was_abandoned), even if the lock was free.
    ///
    /// # Examples
    ///
    /// ```
    /// # use crosslock::testing::Fake;
    /// # fn main() -> crosslock::Result<()> {
    /// let fake = Fake::new();
    /// fake.abandon("abandon-example");
    /// assert!(fake.locker().lock("abandon-example")?.was_abandoned());
    /// # Ok(())
    /// # }
    /// ```
    pub fn abandon(&self, name: &str) {
        self.forget(name, true, LostReason::Expired);
    }

    /// Begins or ends an outage, in which each request fails with [`Error::Unavailable`](crate::Error::Unavailable).
    ///
    /// Waiting calls, and calls that begin in the outage, try again when the clock moves and when the outage ends. They
    /// give up after their timeout or [`outage_timeout`](crate::LockerBuilder::outage_timeout). `try_lock` fails at
    /// once. The call that ends the outage also does the delayed releases. If a locker is gone by then, its lock is
    /// free after its ttl.
    ///
    /// A call that waits in an outage panics if no thread moves the clock for 20 s: a test with one thread would hang.
    ///
    /// # Examples
    ///
    /// ```
    /// # use crosslock::{Error, testing::Fake};
    /// # fn main() -> crosslock::Result<()> {
    /// let fake = Fake::new();
    /// let locker = fake.locker();
    /// fake.set_outage(true);
    /// assert!(matches!(locker.try_lock("outage-example"), Err(Error::Unavailable { .. })));
    /// fake.set_outage(false);
    /// assert!(locker.try_lock("outage-example")?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_outage(&self, is_out: bool) {
        self.world.set_outage(is_out);
    }

    /// Delays the answer to each request by this time of the clock. Zero ends the delay.
    ///
    /// The server executes a request at once, so a call that gets its lock has less of its lease left. If the delay
    /// reaches [`io_timeout`](crate::LockerBuilder::io_timeout), or the rest of the call's timeout, the request fails
    /// with [`Error::Unavailable`](crate::Error::Unavailable) although the server has executed it.
    ///
    /// A thread that sends a request moves the clock as [`advance`](Self::advance) does. A renewal doesn't move the
    /// clock, and fails if the delay is half of the rest of its lease or more. A waiter hears at once that it has the
    /// lock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use crosslock::testing::Fake;
    /// # fn main() -> crosslock::Result<()> {
    /// let fake = Fake::new();
    /// let locker = fake.builder().ttl(Duration::from_secs(10)).build()?;
    /// fake.delay(Duration::from_secs(1));
    /// let guard = locker.lock("delay-example")?;
    /// assert!(guard.remaining() < Duration::from_secs(9));
    /// # Ok(())
    /// # }
    /// ```
    pub fn delay(&self, delay: Duration) {
        self.world.set_delay(delay);
    }

    /// Blocks until at least `count` threads wait for a lock.
    ///
    /// This takes no time of the fake's clock.
    ///
    /// # Panics
    ///
    /// If fewer threads wait after 20 s.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::thread;
    /// # use crosslock::testing::Fake;
    /// let fake = Fake::new();
    /// let guard = fake.locker().lock("waiters-example")?;
    /// let other = fake.locker();
    /// let waiter = thread::spawn(move || other.lock("waiters-example").map(drop));
    /// fake.await_waiters("waiters-example", 1);
    /// guard.unlock()?;
    /// waiter.join().expect("no panic")?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    #[track_caller]
    pub fn await_waiters(&self, name: &str, count: usize) {
        const LONGEST: Duration = Duration::from_secs(20);
        let begun = time::now();
        loop {
            let waiting = self.key(name).map_or(0, |key| self.world.waiting(&key));
            if waiting >= count {
                return;
            }
            assert!(
                time::since(begun) < LONGEST,
                "{waiting} threads wait for lock {name:?}, and not {count}"
            );
            time::sleep(Duration::from_micros(200));
        }
    }

    fn open(&self, options: Options) -> Arc<ForkLocal<Core>> {
        let engine = FakeEngine::new(self.world.clone(), options.io_timeout);
        let clock: Arc<dyn Clock> = Arc::new(self.world.clock.clone());
        let core = ForkLocal::new(Core::new(Arc::new(engine), options, clock));
        self.world.add(core.get());
        Arc::new(core)
    }

    /// `None` for a text that can't be a name: nobody holds it.
    fn key(&self, name: &str) -> Option<Key> {
        Key::new(&self.namespace, name).ok()
    }

    fn forget(&self, name: &str, is_abandoned: bool, reason: LostReason) {
        if let Some(key) = self.key(name) {
            self.world.forget(&key, is_abandoned, reason);
        }
    }
}

impl Default for Fake {
    fn default() -> Self {
        Fake::new()
    }
}

#[cfg(test)]
mod tests;
