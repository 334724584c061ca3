//! A second process, which kills the command if this one can't, because it was killed or stopped for too long.
//!
//! This process sends it the time until which the command may run. When that time comes without a later one, or when
//! this process is gone, the watchdog kills the process group of the command. On `file:` it has a copy of the holder's
//! FIFO open, so the lock isn't free before the command is dead.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, ExitCode, ExitStatus, Stdio};
use std::{ffi::OsString, fs::File, os::unix::net::UnixStream, time::Duration};

use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use super::group::{Group, processes};
use super::{own_program, spawn_with};
use crate::status::FAILED;

/// The process of the watchdog, seen from its parent.
#[derive(Debug)]
pub(crate) struct Watchdog {
    process: Child,
    control: UnixStream,
    /// The last messages, for a watchdog that replaces this one.
    group: Option<Group>,
    until: Option<Duration>,
}

impl Watchdog {
    /// Starts a watchdog that has `files` open, and so keeps their locks. It kills the command at `until`, a time since
    /// boot, unless it gets another time.
    pub(crate) fn start(files: &[File], until: Option<Duration>) -> io::Result<Self> {
        let (control, theirs) = UnixStream::pair()?;
        let mut command = own_program(VERB);
        command
            .arg(std::process::id().to_string())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut watchdog = Watchdog {
            process: spawn_with(files, &mut command)?,
            control,
            group: None,
            until: None,
        };
        watchdog.allow_until(until)?;
        Ok(watchdog)
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    /// Starts a watchdog with the same orders, to replace one that has failed.
    pub(crate) fn replaced(&self, files: &[File]) -> io::Result<Self> {
        let mut other = Watchdog::start(files, self.until)?;
        if let Some(group) = self.group {
            other.watch(group)?;
        }
        Ok(other)
    }

    /// Sends it the process group of the command.
    pub(crate) fn watch(&mut self, group: Group) -> io::Result<()> {
        self.group = Some(group);
        self.tell(Message::Group(group))
    }

    /// Sends it the time since boot until which the command may run; `None`: forever.
    pub(crate) fn allow_until(&mut self, until: Option<Duration>) -> io::Result<()> {
        if until == self.until {
            return Ok(());
        }
        self.until = until;
        self.tell(Message::Until(until))
    }

    /// Sends it the end of the command, and waits until it ends. Returns whether it had killed the command.
    pub(crate) fn dismiss(mut self) -> bool {
        // If it has ended meanwhile, its status shows why.
        let _ = self.tell(Message::Over);
        self.process.wait().is_ok_and(has_killed)
    }

    /// Returns `None` while it runs; then `true` if it killed the command, `false` if it was killed itself.
    pub(crate) fn has_ended(&mut self) -> Option<bool> {
        self.process.try_wait().ok()?.map(has_killed)
    }

    fn tell(&mut self, message: Message) -> io::Result<()> {
        self.control.write_all(&message.to_bytes())
    }
}

fn has_killed(watchdog: ExitStatus) -> bool {
    watchdog.code() == Some(HAS_KILLED)
}

/// The bytes of a message.
const LENGTH: usize = 9;

/// A message to the watchdog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    /// The process group of the command.
    Group(Group),
    /// The time since boot until which the command may run; `None`: forever.
    Until(Option<Duration>),
    /// The command has ended.
    Over,
}

impl Message {
    fn to_bytes(self) -> [u8; LENGTH] {
        let (kind, number) = match self {
            Message::Group(Group(pid)) => {
                (b'g', u64::from(pid.as_raw_nonzero().get().unsigned_abs()))
            }
            Message::Until(None) => (b'u', u64::MAX),
            // This holds 584 years.
            Message::Until(Some(until)) => (b'u', until.as_nanos().try_into().unwrap_or(u64::MAX)),
            Message::Over => (b'o', 0),
        };
        let mut bytes = [kind; LENGTH];
        bytes[1..].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; LENGTH]) -> Option<Self> {
        let (kind, number) = bytes.split_first()?;
        let number = u64::from_le_bytes(number.try_into().ok()?);
        match kind {
            b'g' => {
                let pid = Pid::from_raw(number.try_into().ok()?)?;
                Some(Message::Group(Group(pid)))
            }
            b'u' => Some(Message::Until(
                (number != u64::MAX).then(|| Duration::from_nanos(number)),
            )),
            b'o' => Some(Message::Over),
            _ => None,
        }
    }
}

/// The inner verb's name on the command line.
pub(crate) const VERB: &str = "__watch";

/// The exit status of a watchdog that killed the command. Only its parent sees it.
const HAS_KILLED: i32 = 3;

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

/// `__watch`: the process of the watchdog. Users don't call it.
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
struct BootTimer {
    timer: OwnedFd,
    until: Option<Duration>,
}

impl BootTimer {
    fn new() -> io::Result<Self> {
        Ok(BootTimer {
            timer: timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)?,
            until: None,
        })
    }

    /// Sets a time since boot; `None`: never.
    fn set(&mut self, until: Option<Duration>) -> io::Result<()> {
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
    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| until <= since_boot())
    }
}

impl AsFd for BootTimer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
