//! The command: how it is started, what it is doing, and how it has ended.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getppid, set_parent_process_death_signal, waitid,
};

use super::group::Group;
use super::options::Options;
use super::watchdog::OWN_PROGRAM;
use super::watchdog::process::since_boot;
use crate::output::Words;
use crate::status::{CANT_EXECUTE, FAILED, LOST, NOT_FOUND, Status};

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
            .arg(VERB)
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

/// The verb's name on the command line.
pub(crate) const VERB: &str = "__exec";

/// How the command is tied to its parent, and how a failure is told: the first three arguments, before the command's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ties {
    /// The process with which it is to die; `None` if it goes on alone.
    pub(crate) parent: Option<u32>,
    /// Until when the command may run, as a time since boot; `None`: for ever.
    pub(crate) until: Option<Duration>,
    pub(crate) words: Words,
}

impl Ties {
    pub(crate) fn args(self) -> [String; 3] {
        let parent = self.parent.unwrap_or(0).to_string();
        let until = self.until.map_or(u128::MAX, |until| until.as_nanos());
        [parent, until.to_string(), self.words.to_arg().to_owned()]
    }
}

/// `__exec`: what this program is between its fork and the command, which it becomes. Users don't call it. Returns only if that
/// fails.
///
/// It has the kernel kill it, and so the command, when its parent ends. std offers no place between fork and exec without
/// unsafe code, so the program executes itself first.
pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let mut text = || Some(args.next()?.to_string_lossy().into_owned());
    let (parent, until, words) = (text(), text(), text());
    let until = until.and_then(|until| until.parse::<u128>().ok());
    let (Some(parent), Some(until), Some(words), Some(program)) =
        (parent, until, words, args.next())
    else {
        return FAILED.into();
    };
    let words = Words::from_arg(&words);
    if parent != "0" && !dies_with(&parent) {
        return FAILED.into();
    }
    // The parent may have been stopped since it took the lock. From here on the watchdog finds this process.
    if until <= since_boot().as_nanos() {
        tell_lost(words);
        return LOST.into();
    }
    let error = Command::new(&program).args(args).exec();
    words.say(
        "failed",
        &[("reason", cant(&program, &error).as_str().into())],
        &cant(&program, &error),
    );
    status_of(&error).into()
}

/// Whether this process will be killed when `parent` is gone. It may be gone already.
fn dies_with(parent: &str) -> bool {
    set_parent_process_death_signal(Some(Signal::KILL)).is_ok()
        && getppid().is_some_and(|now| now.as_raw_nonzero().to_string() == parent)
}

fn tell_lost(words: Words) {
    let name = std::env::var("CROSSLOCK_NAME").unwrap_or_default();
    let why = "the lock is lost: its lease was over before the command was started";
    let facts = [("name", name.as_str().into()), ("reason", why.into())];
    words.say("lost", &facts, &format!("{name}: {why}"));
}

fn cant(program: &OsString, error: &io::Error) -> String {
    format!("can't run {}: {error}", program.to_string_lossy())
}

/// As env(1) has it.
fn status_of(error: &io::Error) -> Status {
    match error.kind() {
        ErrorKind::NotFound => NOT_FOUND,
        _ => CANT_EXECUTE,
    }
}
