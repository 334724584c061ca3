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
    /// There is no second object, and nothing to notify: whoever stores a value wakes those that wait. The call
    /// evaluates `condition` with the lock held. While it returns `true`, the call stores the value if it was changed,
    /// releases the lock, blocks until another value is stored, and takes the lock again, behind those that already
    /// wait for it. It returns the guard with the lock held and `condition` false.
    ///
    /// # Guarantees
    ///
    /// No value that is stored after `condition` was evaluated is missed, in whatever process. All that wait are woken,
    /// and take the lock one after the other.
    ///
    /// # What breaks them
    ///
    /// - A value that another program than this library stores wakes nobody. It is found at the next look: every 30 s.
    /// - The same holds for a value whose message is lost: because its process was killed just then, or because the
    ///   Redis user may not publish on the channel that is called as the value's key.
    /// - Values in between can be missed: if two are stored one after the other, `condition` may see the second only.
    ///
    /// # Round trips
    ///
    /// To wait costs the release, and one that begins to watch, with a look at the value. While nothing changes nothing
    /// is sent, but for that look every 30 s. A change costs its storer nothing more, on Redis one command within the
    /// script; and each waiter one message and the lock.
    ///
    /// # Differences from `std::sync::Condvar`
    ///
    /// - Storing notifies, and it notifies all. There is no `notify_one`.
    /// - `condition` is called only when it may have changed: a spurious wake-up isn't seen.
    /// - A guard can be lost, and every call returns a [`Result`](crate::Result).
    ///
    /// # Errors
    ///
    /// After an error the lock is released.
    ///
    /// - Those of [`unlock`](Self::unlock), and of [`Mutex::lock`](crate::Mutex::lock), when it takes the lock again.
    ///   [`Error::Lost`](crate::Error::Lost) can be of either lock: what `condition` changed may be stored or not.
    /// - [`Error::Unavailable`](crate::Error::Unavailable) when the engine can't be reached for
    ///   [`outage_timeout`](crate::LockerBuilder::outage_timeout) while it waits.
    /// - [`Error::Cancelled`](crate::Error::Cancelled) when the locker is closed, or its token is set.
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
    /// Returns the guard, with the lock held, and whether the time was over while `condition` still returned `true`.
    /// The lock may be taken when the time is over: then the call takes longer, as that of `std` does.
    ///
    /// # Errors
    ///
    /// Those of [`wait_while`](Self::wait_while).
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
    /// Those of [`wait_while`](Self::wait_while).
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
