//! A second process, which kills the command if this one can't, because it was killed or stopped for too long.
//!
//! This process sends it the time until which the command may run. When that time comes without a later one, or when
//! this process is gone, the watchdog kills the process group of the command. On `file:` it has a copy of the holder's
//! FIFO open, so the lock isn't free before the command is dead.

pub(crate) mod process;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Pid;

use super::group::Group;
use super::{own_program, spawn_with};

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
        let mut command = own_program(process::VERB);
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

pub(crate) const LENGTH: usize = 9;

fn has_killed(watchdog: ExitStatus) -> bool {
    watchdog.code() == Some(process::HAS_KILLED)
}

/// A message to the watchdog: nine bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The process group of the command.
    Group(Group),
    /// The time since boot until which the command may run; `None`: forever.
    Until(Option<Duration>),
    /// The command has ended.
    Over,
}

impl Message {
    pub(crate) fn to_bytes(self) -> [u8; LENGTH] {
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

    pub(crate) fn from_bytes(bytes: [u8; LENGTH]) -> Option<Self> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let pid = Pid::from_raw(4711).expect("it is one");
        for message in [
            Message::Group(Group(pid)),
            Message::Until(None),
            Message::Until(Some(Duration::from_nanos(1_234_567_890_123))),
            Message::Over,
        ] {
            assert_eq!(Message::from_bytes(message.to_bytes()), Some(message));
        }
        assert_eq!(Message::from_bytes([b'x'; LENGTH]), None);
    }
}
