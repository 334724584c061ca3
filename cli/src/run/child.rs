//! The command: how it is started, what it is doing, and how it has ended.

use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::options::Options;
use crate::exec::{self, Ties};
use crate::group::Group;
use crate::output::Words;
use crate::status::Status;
use crate::watchdog::OWN_PROGRAM;

/// The command, as the leader of a process group of its own.
///
/// Until it is reaped, its number is no other process's, and the group's neither.
#[derive(Debug)]
pub(crate) struct Child {
    process: std::process::Child,
    pid: Pid,
    pub(crate) group: Group,
}

/// How a command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(u8),
    Signal(i32),
}

impl Child {
    /// Starts it, unless `until`, a time since boot, is over. It has `inherited` open, and then goes on without this process;
    /// else it dies with it.
    ///
    /// The kernel kills it when the thread that calls this ends: it has to be the main thread.
    pub(crate) fn start(
        options: &Options,
        token: u64,
        until: Option<Duration>,
        inherited: &[File],
        words: Words,
    ) -> io::Result<Self> {
        for file in inherited {
            fcntl_setfd(file, FdFlags::empty())?;
        }
        let parent = (!options.inherit).then(std::process::id);
        let ties = Ties {
            parent,
            until,
            words,
        };
        let process = Command::new(OWN_PROGRAM)
            .arg0("crosslock")
            .arg(exec::VERB)
            .args(ties.args())
            .args(&options.command)
            .env("CROSSLOCK_NAME", options.name())
            .env("CROSSLOCK_TOKEN", token.to_string())
            .process_group(0)
            .spawn();
        for file in inherited {
            fcntl_setfd(file, FdFlags::CLOEXEC)?;
        }
        let process = process?;
        let pid = Pid::from_child(&process);
        let group = Group(pid);
        Ok(Child {
            process,
            pid,
            group,
        })
    }

    /// Whether it has ended. It stays a zombie.
    pub(crate) fn has_ended(&self) -> io::Result<bool> {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(self.pid), look)?.is_some())
    }

    /// The signal that has stopped it, told once.
    pub(crate) fn take_stop(&self) -> io::Result<Option<i32>> {
        let look = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let status = match waitid(WaitId::Pid(self.pid), look) {
            // A zombie can't stop.
            Err(rustix::io::Errno::CHILD) => None,
            status => status?,
        };
        Ok(status.and_then(|status| status.stopping_signal()))
    }

    /// Reaps it, once it has ended.
    pub(crate) fn reap(mut self) -> io::Result<Exit> {
        self.process.wait().map(Exit::of)
    }
}

impl Exit {
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code.to_le_bytes()[0]),
            (None, signal) => Exit::Signal(signal.unwrap_or_default()),
        }
    }

    /// As shells tell it.
    pub(crate) fn status(self) -> Status {
        match self {
            Exit::Code(code) => Status(code),
            Exit::Signal(signal) => Status::of_signal(signal),
        }
    }
}
