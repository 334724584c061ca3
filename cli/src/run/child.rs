//! The command: how it is started, watched and reaped.

use std::io::{self, ErrorKind};
use std::process::{Command, ExitCode, ExitStatus};
use std::{ffi::OsString, fs::File, os::unix::process::CommandExt, time::Duration};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getppid, set_parent_process_death_signal, waitid,
};

use super::{group::Group, options::Options, own_program, spawn_with, watchdog::since_boot};
use crate::output::Words;
use crate::status::{CANT_EXECUTE, FAILED, LOST, NOT_FOUND};

/// The command, as the leader of a process group of its own.
///
/// Until it is reaped, no other process or group can get its number.
#[derive(Debug)]
pub(crate) struct Child {
    process: std::process::Child,
    pid: Pid,
    pub(crate) group: Group,
}

impl Child {
    /// Starts it, unless the time since boot has passed `until`. With `--inherit` it inherits the files `inherited`,
    /// and outlives this process. Otherwise the kernel kills it when the calling thread ends: call this on the main
    /// thread.
    pub(crate) fn start(
        options: &Options,
        token: u64,
        until: Option<Duration>,
        inherited: &[File],
        words: Words,
    ) -> io::Result<Self> {
        let parent = match options.inherit {
            true => NONE.to_owned(),
            false => std::process::id().to_string(),
        };
        let until = until.map_or(u128::MAX, |until| until.as_nanos());
        let mut command = own_program(VERB);
        command
            .args([parent, until.to_string(), words.json.to_string()])
            .args(&options.command)
            .env("CROSSLOCK_NAME", options.name())
            .env("CROSSLOCK_TOKEN", token.to_string());
        let process = spawn_with(inherited, &mut command)?;
        let pid = Pid::from_child(&process);
        Ok(Child {
            process,
            pid,
            group: Group(pid),
        })
    }

    /// Whether it has ended. It stays a zombie.
    pub(crate) fn has_ended(&self) -> io::Result<bool> {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(self.pid), look)?.is_some())
    }

    /// The signal that stopped it. Each stop is returned once.
    pub(crate) fn take_stop(&self) -> io::Result<Option<i32>> {
        let look = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let status = match waitid(WaitId::Pid(self.pid), look) {
            // A zombie can't stop.
            Err(rustix::io::Errno::CHILD) => None,
            status => status?,
        };
        Ok(status.and_then(|status| status.stopping_signal()))
    }

    /// Reaps it after its end.
    pub(crate) fn reap(mut self) -> io::Result<ExitStatus> {
        self.process.wait()
    }
}

/// The inner verb's name on the command line.
pub(crate) const VERB: &str = "__exec";

/// Stands for the parent of a command that outlives it.
const NONE: &str = "0";

/// `__exec`: executes the command in the place of this process, and returns only if that fails. Users don't call it.
///
/// Before that it asks the kernel to kill this process when its parent ends. std can't run code between fork and exec
/// without `unsafe`, so the program executes itself first.
pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let mut text = || Some(args.next()?.to_string_lossy().into_owned());
    let (parent, until, json) = (text(), text(), text());
    let until = until.and_then(|until| until.parse::<u128>().ok());
    let (Some(parent), Some(until), Some(json), Some(program)) = (parent, until, json, args.next())
    else {
        return FAILED.into();
    };
    let (json, quiet) = (json == "true", false);
    let words = Words { json, quiet };
    if parent != NONE && !dies_with(&parent) {
        return FAILED.into();
    }
    // The parent may have been stopped since it took the lock. From now on the watchdog can find this process.
    if until <= since_boot().as_nanos() {
        tell_lost(words);
        return LOST.into();
    }
    let error = Command::new(&program).args(args).exec();
    let program = program.to_string_lossy();
    words.say_why("failed", &format!("can't run {program}: {error}"));
    // The same statuses as those of env(1).
    match error.kind() {
        ErrorKind::NotFound => NOT_FOUND.into(),
        _ => CANT_EXECUTE.into(),
    }
}

/// Asks the kernel to kill this process when `parent` ends. Returns `false` if the parent has already ended.
fn dies_with(parent: &str) -> bool {
    set_parent_process_death_signal(Some(Signal::KILL)).is_ok()
        && getppid().is_some_and(|now| now.as_raw_nonzero().to_string() == parent)
}

fn tell_lost(words: Words) {
    let name = std::env::var("CROSSLOCK_NAME").unwrap_or_default();
    let why = "the lock was lost before the command started";
    let facts = [("name", name.as_str().into()), ("reason", why.into())];
    words.say("lost", &facts, &format!("{name}: {why}"));
}
