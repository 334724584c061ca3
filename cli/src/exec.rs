//! `__exec`: what this program is between its fork and the command. Users don't call it.
//!
//! It has the kernel kill it, and so the command that it becomes, when its parent ends. std offers no place between fork
//! and exec without unsafe code, so the program executes itself first.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::boot_timer::since_boot;
use crate::output::Words;
use crate::status::{CANT_EXECUTE, FAILED, LOST, NOT_FOUND, Status};

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

/// Becomes the command. Returns only if that fails.
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
