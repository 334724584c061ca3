//! `__watch`: the process of the watchdog. Users don't call it.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;
use std::time::Duration;

use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use super::{LENGTH, Message};
use crate::run::group::{Group, processes};
use crate::status::FAILED;

/// The inner verb's name on the command line.
pub(crate) const VERB: &str = "__watch";

/// The exit status of a watchdog that killed the command. Only its parent sees it.
pub(crate) const HAS_KILLED: i32 = 3;

/// A process that survives SIGKILL for so long sleeps in the kernel, for instance on a disk that doesn't answer.
const DIES_WITHIN: Duration = Duration::from_secs(60);

/// The state of the watchdog.
#[derive(Debug)]
struct Watch {
    /// The process that runs the command.
    parent: i32,
    /// The group of the command, once the parent has sent it.
    group: Option<Group>,
    timer: BootTimer,
}

/// The next step of the watchdog.
enum Next {
    GoOn,
    Kill,
    End,
}

pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let parent = args.next().and_then(|arg| arg.to_str()?.parse().ok());
    // Only SIGKILL and SIGSTOP reach it: it must survive the signals that end the other processes.
    let blocked = SigSet::all().thread_block();
    let (Some(parent), Ok(()), Ok(timer)) = (parent, blocked, BootTimer::new()) else {
        return FAILED.into();
    };
    let mut watch = Watch {
        parent,
        group: None,
        timer,
    };
    loop {
        match watch.next() {
            Ok(Next::GoOn) => {}
            Ok(Next::End) => return ExitCode::SUCCESS,
            // A watchdog that can't receive messages is useless, and no command runs without one.
            Ok(Next::Kill) | Err(_) => {
                watch.kill();
                return ExitCode::from(HAS_KILLED.unsigned_abs().to_le_bytes()[0]);
            }
        }
    }
}

impl Watch {
    fn next(&mut self) -> io::Result<Next> {
        let stdin = io::stdin();
        let (is_told, is_time) = {
            let mut fds = [
                PollFd::new(&stdin, PollFlags::IN),
                PollFd::new(&self.timer, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => return Ok(Next::GoOn),
                polled => polled?,
            };
            (!fds[0].revents().is_empty(), !fds[1].revents().is_empty())
        };
        // Messages come first: one of them may extend the time.
        if is_told {
            return self.hear();
        }
        Ok(if is_time && self.timer.is_over() {
            Next::Kill
        } else {
            Next::GoOn
        })
    }

    /// Reads a message. If the stream has ended, the parent has ended.
    fn hear(&mut self) -> io::Result<Next> {
        let (mut bytes, mut length) = ([0; LENGTH], 0);
        while length < LENGTH {
            // Unbuffered, so that poll(2) sees the rest.
            match rustix::io::read(io::stdin(), &mut bytes[length..])? {
                0 => return Ok(Next::Kill),
                read => length += read,
            }
        }
        match Message::from_bytes(bytes) {
            Some(Message::Group(group)) => self.group = Some(group),
            Some(Message::Until(until)) => self.timer.set(until)?,
            Some(Message::Over) => return Ok(Next::End),
            None => return Ok(Next::Kill),
        }
        Ok(Next::GoOn)
    }

    /// When this returns, no process of the command runs. Until then the watchdog keeps the locks.
    fn kill(&self) {
        let Some(group) = self.group else {
            return self.kill_children();
        };
        group.signal(Signal::KILL);
        group.wait_until_dead(DIES_WITHIN);
    }

    /// The parent was stopped before it could send the group of the command.
    fn kill_children(&self) {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let all = processes().unwrap_or_default();
        let children = all
            .iter()
            .filter(|one| one.parent == self.parent && one.pid != own);
        for pid in children.filter_map(|one| Pid::from_raw(one.pid)) {
            let _ = kill_process(pid, Signal::KILL);
            Group(pid).signal(Signal::KILL);
            Group(pid).wait_until_dead(DIES_WITHIN);
        }
    }
}

/// The time since boot, including the time in which the machine slept.
pub(crate) fn since_boot() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

/// A timer that becomes readable at its time. It uses the clock of the leases, which runs while the machine sleeps.
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

    /// Sets a time since boot; `None`: never.
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

    /// Whether its time has come.
    pub(crate) fn is_over(&self) -> bool {
        self.until.is_some_and(|until| until <= since_boot())
    }
}

impl AsFd for BootTimer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
