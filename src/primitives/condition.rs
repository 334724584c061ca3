//! What takes the place of a condition variable: a guard waits until somebody stores a value that fits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Serialize, de::DeserializeOwned};

use super::value::{ENDED, ValueGuard, to_json};
use super::watched::Watched;
use crate::base::{Deadline, Result, sys::time};

/// What `std` has in `Condvar`.
impl<T: Serialize + DeserializeOwned, L> ValueGuard<T, L> {
    /// Waits with the lock released for as long as `condition` returns `true` for the value, as
    /// [`Condvar::wait_while`](std::sync::Condvar::wait_while) does.
    ///
    /// There is no condition variable and no `notify`: storing a value wakes all waiting threads. The call evaluates
    /// `condition` with the lock held. While it returns `true`, the call stores the value if it was changed, releases
    /// the lock, blocks until another value is stored, and takes the lock again, behind the threads that already wait
    /// for it. It returns the guard with the lock held and `condition` false.
    ///
    /// # Guarantees
    ///
    /// If any process stores a value after `condition` was evaluated, this call wakes up. All waiting threads wake, and
    /// take the lock one after the other.
    ///
    /// # What breaks them
    ///
    /// - On Redis and `file:`, a value that a program without this library stores wakes nobody. Waiting threads find it
    ///   when they read the value again, every 30 s.
    /// - The same happens when a message is lost, because its process was killed just then, or because the Redis user
    ///   may not publish on the channel with the name of the value's key.
    /// - If two values are stored in quick succession, `condition` may see only the second.
    ///
    /// # Round trips
    ///
    /// Starting to wait takes three: the release, the start of the watch, and a look at the value. After that the call
    /// sends nothing until a value is stored, except that it reads the value every 30 s. Each stored value costs a
    /// waiting thread one message and the lock, and one look more if the thread goes on waiting. It costs the thread
    /// that stores it nothing more; on Redis the script runs one more command.
    ///
    /// # Differences from `std::sync::Condvar`
    ///
    /// - Storing notifies, and it notifies all. There is no `notify_one`.
    /// - `condition` is called only when the value may have changed. There are no spurious wake-ups.
    /// - A guard can be lost, and every call returns a [`Result`](crate::Result).
    ///
    /// # Errors
    ///
    /// After an error the lock is released.
    ///
    /// - The errors of [`unlock`](Self::unlock), and of [`Mutex::lock`](crate::Mutex::lock) when the call takes the
    ///   lock again. After [`Error::Lost`](crate::Error::Lost), what `condition` changed may be stored or not.
    /// - [`Error::Unavailable`](crate::Error::Unavailable) when the engine can't be reached for
    ///   [`outage_timeout`](crate::LockerBuilder::outage_timeout) during the wait.
    /// - [`Error::Cancelled`](crate::Error::Cancelled) when the locker is closed, or its token is cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// use crosslock::MutexGuard;
    ///
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let jobs = locker.mutex("wait-while", Vec::<u32>::new())?;
    /// let theirs = jobs.clone(); // in another process
    /// let other = std::thread::spawn(move || theirs.update(|jobs| jobs.push(7)));
    ///
    /// let mut guard = MutexGuard::wait_while(jobs.lock()?, |jobs| jobs.is_empty())?;
    /// assert_eq!(guard.pop(), Some(7));
    /// MutexGuard::unlock(guard)?;
    /// # other.join().unwrap()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn wait_while(this: Self, condition: impl FnMut(&mut T) -> bool) -> Result<Self> {
        let (guard, _) = wait(this, &Deadline::NEVER, condition)?;
        Ok(guard)
    }

    /// Waits as [`wait_while`](Self::wait_while) does, for as long as `timeout`.
    ///
    /// Returns the guard with the lock held, and whether the timeout ended while `condition` still returned `true`. If
    /// another thread holds the lock when the timeout ends, the call waits for it and so takes longer, as in `std`.
    ///
    /// # Errors
    ///
    /// The errors of [`wait_while`](Self::wait_while).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// use crosslock::MutexGuard;
    ///
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let ready = locker.mutex("wait-while-for", false)?;
    /// let short = Duration::from_millis(20);
    /// let (guard, timed_out) = MutexGuard::wait_while_for(ready.lock()?, short, |ready| !*ready)?;
    /// assert!(timed_out && !*guard);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn wait_while_for(
        this: Self,
        timeout: Duration,
        condition: impl FnMut(&mut T) -> bool,
    ) -> Result<(Self, bool)> {
        let until = Deadline::after_by(&*this.lock.locker.core().clock, timeout);
        wait(this, &until, condition)
    }

    /// Waits as [`wait_while_for`](Self::wait_while_for) does, until a point in time.
    ///
    /// # Errors
    ///
    /// The errors of [`wait_while`](Self::wait_while).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// use crosslock::MutexGuard;
    ///
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let ready = locker.mutex("wait-while-until", true)?;
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// let waited = MutexGuard::wait_while_until(ready.lock()?, deadline, |ready| !*ready)?;
    /// assert!(!waited.1, "it was ready");
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn wait_while_until(
        this: Self,
        deadline: Instant,
        condition: impl FnMut(&mut T) -> bool,
    ) -> Result<(Self, bool)> {
        let left = deadline.saturating_duration_since(time::now());
        ValueGuard::wait_while_for(this, left, condition)
    }
}

fn wait<T: Serialize + DeserializeOwned, L>(
    mut this: ValueGuard<T, L>,
    until: &Deadline,
    mut condition: impl FnMut(&mut T) -> bool,
) -> Result<(ValueGuard<T, L>, bool)> {
    let lock = this.lock.clone();
    let mut watched = None;
    loop {
        let waits = holds(&mut this, &mut condition)?;
        if !waits || until.is_over() {
            return Ok((this, waits));
        }
        let is_own = this.changed;
        let seen = release(this)?;
        let watched = match &mut watched {
            Some(watched) => watched,
            None => watched.insert(Watched::new(lock.locker.calls(), &lock.claim.key)?),
        };
        watched.await_other(seen.as_deref(), is_own, until)?;
        this = ValueGuard::new(lock.lock_again()?, &lock);
    }
}

/// Whether the condition holds. A closure that doesn't change the value doesn't have it stored.
fn holds<T: Serialize + DeserializeOwned, L>(
    this: &mut ValueGuard<T, L>,
    condition: &mut impl FnMut(&mut T) -> bool,
) -> Result<bool> {
    let name = ValueGuard::lease(this).name().to_owned();
    let value = &mut this.held.as_mut().expect(ENDED).1;
    let before = to_json(&name, value)?;
    let holds = condition(value);
    this.changed |= before != to_json(&name, value)?;
    Ok(holds)
}

/// Gives what is stored from then on, as far as this guard knows.
fn release<T: Serialize + DeserializeOwned, L>(
    mut this: ValueGuard<T, L>,
) -> Result<Option<Arc<[u8]>>> {
    let (lease, value) = this.held.as_ref().expect(ENDED);
    let seen = match this.changed {
        true => Some(to_json(lease.name(), value)?),
        false => lease.value(),
    };
    this.end()?;
    Ok(seen)
}
