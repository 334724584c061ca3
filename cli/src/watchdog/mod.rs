//! A second process that kills the command when this one can't: killed itself, or stopped for too long.
//!
//! It hears until when the command may run, and kills the command's process group when that time has come and nobody
//! has told it a later one, or when this process is gone. On `file:` it has a copy of the holder's FIFO open, so that the lock
//! isn't free before the command is dead.

pub(crate) mod message;
pub(crate) mod process;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::Pid;

use self::message::Message;
use crate::group::Group;

/// This program, also if its file was replaced meanwhile.
pub(crate) const OWN_PROGRAM: &str = "/proc/self/exe";

/// The watchdog's process, as this one sees it.
#[derive(Debug)]
pub(crate) struct Watchdog {
    process: Child,
    control: UnixStream,
    /// What it was told last, for another that has to take its place.
    group: Option<Group>,
    until: Option<Duration>,
}

/// What a watchdog has done when it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Nothing: the command was over before.
    Idle,
    /// Its time had come.
    HasKilled,
    /// It was killed itself.
    Failed,
}

impl Watchdog {
    /// Starts one that has `files` open, and so keeps what is locked by them. It ends the command at `until`, a time since
    /// boot, if nobody tells it another.
    pub(crate) fn start(files: &[File], until: Option<Duration>) -> io::Result<Self> {
        let (control, theirs) = UnixStream::pair()?;
        for file in files {
            fcntl_setfd(file, FdFlags::empty())?;
        }
        let process = Command::new(OWN_PROGRAM)
            .arg0("crosslock")
            .args([process::VERB, &std::process::id().to_string()])
            // It says nothing, and is no part of what signals and terminals do to this process's group.
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        for file in files {
            fcntl_setfd(file, FdFlags::CLOEXEC)?;
        }
        let mut watchdog = Watchdog {
            process: process?,
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

    /// Another with the same orders, in the place of one that has failed.
    pub(crate) fn replaced(&self, files: &[File]) -> io::Result<Self> {
        let mut other = Watchdog::start(files, self.until)?;
        if let Some(group) = self.group {
            other.watch(group)?;
        }
        Ok(other)
    }

    /// Tells it which group is the command's.
    pub(crate) fn watch(&mut self, group: Group) -> io::Result<()> {
        self.group = Some(group);
        self.tell(Message::Group(group))
    }

    /// Tells it until when the command may run, as a time since boot; `None`: for ever.
    pub(crate) fn allow_until(&mut self, until: Option<Duration>) -> io::Result<()> {
        if until == self.until {
            return Ok(());
        }
        self.until = until;
        self.tell(Message::Until(until))
    }

    /// Tells it that the command is over, and waits for its end.
    pub(crate) fn dismiss(mut self) -> Ended {
        // If it has ended meanwhile, its status tells why.
        let _ = self.tell(Message::Over);
        match self.process.wait() {
            Ok(status) => Self::ended(status),
            Err(_) => Ended::Failed,
        }
    }

    /// `None` while it runs.
    pub(crate) fn has_ended(&mut self) -> Option<Ended> {
        self.process.try_wait().ok()?.map(Self::ended)
    }

    fn ended(status: std::process::ExitStatus) -> Ended {
        match status.code() {
            Some(0) => Ended::Idle,
            Some(process::HAS_KILLED) => Ended::HasKilled,
            _ => Ended::Failed,
        }
    }

    fn tell(&mut self, message: Message) -> io::Result<()> {
        self.control.write_all(&message.to_bytes())
    }
}
