//! `run`: takes a lock, runs a command, and gives its exit status.
//!
//! The lock is released when the command has ended. A command whose lock is lost is stopped: see `timing` for when, and
//! `supervise` for how.

pub(crate) mod child;
mod group;
mod options;
mod signals;
mod supervise;
mod take;
mod terminal;
mod timing;
pub(crate) mod watchdog;

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::time::Instant;

use clap::ArgMatches;
use crosslock::{CancelToken, LockGuard, Locker, LockerBuilder};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::Signal;

use self::options::Options;
pub(crate) use self::options::command;
use self::signals::Listener;
use self::supervise::Supervisor;
use crate::args::{self, Globals};
use crate::output::Words;
use crate::status::{Failure, LOST, Outcome, Status};

pub(crate) fn run(globals: &Globals, matches: &ArgMatches) -> Outcome {
    let options = Options::of(matches)?;
    let token = CancelToken::new();
    let cancel = token.clone();
    let listener = Listener::start(move || cancel.cancel());
    let listener = listener.map_err(|e| Failure::broken("signals can't be heard", &e))?;
    let words = globals.words;
    if globals.is_default && args::has_other_user() {
        args::tell_private(words);
    }
    let builder = builder(globals, &options)?;
    let start = Instant::now();
    let opened = take::open(&builder, options.wait, &token);
    let options = options.after(start.elapsed());
    let taken = opened.and_then(|locker| {
        let guard = take::take(&locker.with_cancel(&token), &options, words)?;
        Ok((locker, guard))
    });
    // A signal that came while the lock was granted ends the wait too: the lock is released.
    if let Some(signal) = listener.end_of_wait() {
        return Ok(Status::of_signal(signal.as_raw()));
    }
    match taken? {
        (_, Some(guard)) => under_lock(guard, &options, words, listener),
        (locker, None) => {
            tell_taken(&locker, &options, words);
            Ok(options.taken)
        }
    }
}

fn builder(globals: &Globals, options: &Options) -> Result<LockerBuilder, Failure> {
    if globals.is_in_memory() {
        let why = "locks in memory: exclude nobody outside of one process: use file: or redis://";
        return Err(Failure::usage(why));
    }
    let timing = &options.timing;
    let builder = globals.builder().ttl(timing.ttl);
    let builder = builder.renew_every(timing.renew_every());
    Ok(match &options.label {
        Some(label) => builder.label(label),
        None => builder,
    })
}

fn under_lock(guard: LockGuard, options: &Options, words: Words, listener: Listener) -> Outcome {
    if let Some(least) = options.at_least {
        guard.at_least_for(least);
    }
    let facts = [
        ("name", options.name().into()),
        ("token", guard.fencing_token().into()),
    ];
    words.note("acquired", &facts);
    let status = Supervisor::start(&guard, options, words, listener)?.until_over()?;
    if status == LOST && !options.inherit {
        // That was told, and there is nothing to release; or the command ended so, and dropping the guard releases.
        return Ok(status);
    }
    release(guard, options, words);
    Ok(status)
}

/// What goes wrong here changes nothing of what the command has done.
fn release(guard: LockGuard, options: &Options, words: Words) {
    if options.inherit {
        // Whoever has inherited the lock keeps it; unlocking would take it away.
        return std::mem::forget(guard);
    }
    if let Err(e) = guard.unlock() {
        words.say_why("release_failed", &Failure::from(e).text);
    }
}

fn tell_taken(locker: &Locker, options: &Options, words: Words) {
    if options.is_skipped || words.quiet {
        return;
    }
    let seen = options.names.iter().find_map(|name| {
        let seen = locker.inspect(name).ok()?;
        (!seen.holders.is_empty()).then_some(seen)
    });
    let name = options.name();
    let text = match &seen {
        Some(seen) => format!("{name} is taken: {}", take::holders(seen)),
        None => format!("{name} is taken"),
    };
    let lock = serde_json::to_value(&seen).unwrap_or_default();
    words.say("taken", &[("name", name.into()), ("lock", lock)], &text);
}

/// This program, also if its file was replaced meanwhile: one of its inner verbs, as the leader of a process
/// group of its own, so that what signals and terminals do to the group of this process doesn't reach it.
pub(crate) fn own_program(verb: &str) -> Command {
    let mut program = Command::new("/proc/self/exe");
    program.arg0("crosslock").arg(verb).process_group(0);
    program
}

/// Starts a process that has these files open, and so keeps what is locked by them.
fn spawn_with(files: &[File], command: &mut Command) -> io::Result<Child> {
    for file in files {
        fcntl_setfd(file, FdFlags::empty())?;
    }
    let process = command.spawn();
    for file in files {
        fcntl_setfd(file, FdFlags::CLOEXEC)?;
    }
    process
}

/// How people know a signal.
fn signal_name(signal: Signal) -> String {
    nix::sys::signal::Signal::try_from(signal.as_raw())
        .map_or_else(|_| signal.as_raw().to_string(), |signal| signal.to_string())
}
