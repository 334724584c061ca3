//! A timer on the clock on which leases count: it runs on while the machine sleeps.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

/// The time since boot, with all the time in which the machine slept.
pub(crate) fn since_boot() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

/// Becomes readable when its time has come.
#[derive(Debug)]
pub(crate) struct BootTimer {
    timer: OwnedFd,
    until: Option<Duration>,
}

impl BootTimer {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(BootTimer {
            timer: timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)?,
            until: None,
        })
    }

    /// As a time since boot; `None`: never.
    pub(crate) fn set(&mut self, until: Option<Duration>) -> io::Result<()> {
        // Zero would mean never.
        let at = until.map_or(Duration::ZERO, |until| until.max(Duration::from_nanos(1)));
        let it_value = Timespec::try_from(at).map_err(io::Error::other)?;
        let it_interval = Timespec::default();
        let when = Itimerspec {
            it_interval,
            it_value,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &when)?;
        self.until = until;
        Ok(())
    }

    /// Whether the time has come that it was set to last.
    pub(crate) fn is_over(&self) -> bool {
        self.until.is_some_and(|until| until <= since_boot())
    }
}

impl AsFd for BootTimer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
