//! What a thread asks for, and how.

use std::time::Duration;

use crosslock::{Leadership, LockGuard, Locker, MutexGuard, Result};
use fastrand::Rng;

use crate::history::Mode;
use crate::names::{BOTH, COUNTER, HASTY, LONG, MOST_PERMITS, PATIENT, PERMITS, SHARED};

/// What a thread asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Lock(&'static str),
    /// To lead by the lock of that name.
    Lead(&'static str),
    Read,
    Write,
    /// Two locks, in either order.
    Several([&'static str; 2]),
    /// The lock of a number.
    Count,
    Permits(u32),
    /// Whatever another process passed on.
    Adopted,
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
    Lead(Leadership),
    Value(MutexGuard<u64>),
}

impl Task {
    /// More than half of them are exclusive locks, of which there was nothing else at first.
    pub(super) fn any(rng: &mut Rng, thread: u32) -> Self {
        match rng.u8(0..40) {
            _ if thread == 3 => Task::Lock(LONG),
            0..12 => Task::Lock(PATIENT),
            12..21 => Task::Lock(HASTY),
            21..24 => Task::Lead(HASTY),
            24..29 => Task::Read,
            29..32 => Task::Write,
            32 => Task::Several([BOTH, SHARED]),
            33 if rng.bool() => Task::Several([SHARED, BOTH]),
            33 => Task::Lock(BOTH),
            34..37 => Task::Count,
            _ => Task::Permits(rng.u32(1..MOST_PERMITS)),
        }
    }

    /// As a history has it.
    pub(super) fn name(self) -> String {
        match self {
            Task::Lock(name) | Task::Lead(name) => name.to_owned(),
            Task::Read | Task::Write => SHARED.to_owned(),
            Task::Several(_) => format!("{BOTH} {SHARED}"),
            Task::Count => COUNTER.to_owned(),
            Task::Permits(_) => PERMITS.to_owned(),
            Task::Adopted => String::new(),
        }
    }

    pub(super) fn mode(self) -> Mode {
        match self {
            Task::Read => Mode::Read,
            Task::Permits(count) => Mode::Permits(count),
            _ => Mode::Exclusive,
        }
    }

    pub(super) fn how(self, rng: &mut Rng, ttl: Duration) -> How {
        let longest = u64::try_from(ttl.as_millis()).expect("it is short");
        let timed = How::Timed(Duration::from_millis(rng.u64(1..=longest)));
        match (self, rng.u8(0..6)) {
            (Task::Lock(PATIENT), _) => How::Lock,
            (Task::Lock(HASTY) | Task::Lead(_), 0 | 1) => How::Try,
            (Task::Lock(HASTY) | Task::Lead(_), _) => timed,
            (_, 0 | 1) => timed,
            (Task::Lock(LONG), _) => How::Lock,
            (_, 2) => How::Try,
            _ => How::Lock,
        }
    }

    pub(super) fn call(self, locker: &Locker, how: How) -> Result<Option<Guard>> {
        if let Task::Count = self {
            let number = locker.mutex(COUNTER, 0u64)?;
            let timed = |timeout| number.try_lock_for(timeout);
            let guard = how.of(|| number.lock(), || number.try_lock(), timed)?;
            return Ok(guard.map(Guard::Value));
        }
        if let Task::Lead(name) = self {
            let election = locker.election(name)?;
            let timed = |timeout| election.try_campaign_for(timeout);
            let leads = how.of(|| election.campaign(), || election.try_campaign(), timed)?;
            return Ok(leads.map(Guard::Lead));
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
            Task::Several(names) => how.of(
                || locker.lock_all(&names),
                || locker.try_lock_all(&names),
                |timeout| locker.try_lock_all_for(&names, timeout),
            ),
            Task::Permits(count) => permits(locker, count, how),
            Task::Lead(_) | Task::Count | Task::Adopted => unreachable!("it is had otherwise"),
        };
        Ok(guard?.map(Guard::Lock))
    }
}

fn permits(locker: &Locker, count: u32, how: How) -> Result<Option<LockGuard>> {
    let permits = locker.semaphore(PERMITS, MOST_PERMITS)?;
    if count == 1 {
        let timed = |timeout| permits.try_acquire_for(timeout);
        return how.of(|| permits.acquire(), || permits.try_acquire(), timed);
    }
    how.of(
        || permits.acquire_many(count),
        || permits.try_acquire_many(count),
        |timeout| permits.try_acquire_many_for(count, timeout),
    )
}

impl How {
    /// As a history has it.
    pub(super) fn name(self) -> &'static str {
        match self {
            How::Lock => "lock",
            How::Try => "try",
            How::Timed(_) => "timed",
        }
    }

    /// Zero when there is none.
    pub(super) fn timeout(self) -> Duration {
        match self {
            How::Timed(timeout) => timeout,
            _ => Duration::ZERO,
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
            Guard::Lead(leadership) => leadership,
            Guard::Value(guard) => MutexGuard::lease(guard),
        }
    }
}
