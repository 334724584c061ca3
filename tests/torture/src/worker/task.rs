//! What a thread asks for, and how.

use std::time::Duration;

use crosslock::{LockGuard, Locker, MutexGuard, Result};
use fastrand::Rng;

use crate::history::Mode;
use crate::names::{COUNTER, LONG, MOST_PERMITS, PERMITS, SHARED, SHORT};

/// What a thread asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Lock(&'static str),
    Read,
    Write,
    /// The lock of a number.
    Count,
    Permits(u32),
}

/// How it asks.
#[derive(Clone, Copy, Debug)]
pub(super) enum How {
    Lock,
    Try,
    Timed(Duration),
}

/// What it gets.
pub(super) enum Guard {
    Lock(LockGuard),
    Value(MutexGuard<u64>),
}

impl Task {
    pub(super) const ALL: [Task; 7] = [
        Task::Lock(SHORT),
        Task::Lock(LONG),
        Task::Read,
        Task::Write,
        Task::Count,
        Task::Permits(1),
        Task::Permits(MOST_PERMITS - 1),
    ];

    pub(super) fn any(rng: &mut Rng) -> Self {
        Self::ALL[rng.usize(..Self::ALL.len())]
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Task::Lock(name) => name,
            Task::Read | Task::Write => SHARED,
            Task::Count => COUNTER,
            Task::Permits(_) => PERMITS,
        }
    }

    pub(super) fn mode(self) -> Mode {
        match self {
            Task::Read => Mode::Read,
            Task::Permits(count) => Mode::Permits(count),
            _ => Mode::Exclusive,
        }
    }

    pub(super) fn call(self, locker: &Locker, how: How) -> Result<Option<Guard>> {
        if let Task::Count = self {
            let number = locker.mutex(COUNTER, 0u64)?;
            let timed = |timeout| number.try_lock_for(timeout);
            let guard = how.of(|| number.lock(), || number.try_lock(), timed)?;
            return Ok(guard.map(Guard::Value));
        }
        let guard = match self {
            Task::Lock(name) => how.of(
                || locker.lock(name),
                || locker.try_lock(name),
                |timeout| locker.try_lock_for(name, timeout),
            ),
            Task::Read => how.of(
                || locker.read(SHARED),
                || locker.try_read(SHARED),
                |timeout| locker.try_read_for(SHARED, timeout),
            ),
            Task::Write => how.of(
                || locker.write(SHARED),
                || locker.try_write(SHARED),
                |timeout| locker.try_write_for(SHARED, timeout),
            ),
            Task::Permits(count) => {
                let permits = locker.semaphore(PERMITS, MOST_PERMITS)?;
                how.of(
                    || permits.acquire_many(count),
                    || permits.try_acquire_many(count),
                    |timeout| permits.try_acquire_many_for(count, timeout),
                )
            }
            Task::Count => unreachable!("it is had otherwise"),
        };
        Ok(guard?.map(Guard::Lock))
    }
}

impl How {
    pub(super) fn any(rng: &mut Rng, ttl: Duration) -> Self {
        match rng.u8(0..4) {
            0 => How::Try,
            1 => How::Timed(ttl.mul_f64(rng.f64())),
            _ => How::Lock,
        }
    }

    fn of<T>(
        self,
        lock: impl FnOnce() -> Result<T>,
        try_lock: impl FnOnce() -> Result<Option<T>>,
        timed: impl FnOnce(Duration) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        match self {
            How::Lock => lock().map(Some),
            How::Try => try_lock(),
            How::Timed(timeout) => timed(timeout),
        }
    }
}

impl Guard {
    pub(super) fn lease(&self) -> &LockGuard {
        match self {
            Guard::Lock(guard) => guard,
            Guard::Value(guard) => MutexGuard::lease(guard),
        }
    }
}
