//! `run` and `elect`: take a lock or win an election, run a command, and exit with its status.
//!
//! To lead is to hold the lock of the election's name. The lock is released when the command ends. If the lock is lost,
//! the command is stopped: `timing` says when, `supervise` how.

pub(crate) mod child;
mod group;
mod options;
mod signals;
mod supervise;
mod take;
mod terminal;
mod timing;
pub(crate) mod watchdog;

use std::process::{Child, Command};
use std::{fs::File, io, os::unix::process::CommandExt as _, time::Instant};

use clap::ArgMatches;
use crosslock::{CancelToken, Locker, LockerBuilder};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::Signal;

pub(crate) use self::options::{command, elect_command};
use self::{options::Options, signals::Listener, supervise::Supervisor, take::Held};
use crate::args::{self, Globals};
use crate::status::{Failure, LOST, Outcome, Status};
use crate::{output::Words, show};

pub(crate) fn run(globals: &Globals, matches: &ArgMatches) -> Outcome {
    supervised(globals, Options::of(options::RUN, matches)?)
}

pub(crate) fn elect(globals: &Globals, matches: &ArgMatches) -> Outcome {
    supervised(globals, Options::of(options::ELECT, matches)?)
}

fn supervised(globals: &Globals, mut options: Options) -> Outcome {
    let token = CancelToken::new();
    let cancel = token.clone();
    let listener = Listener::start(move || cancel.cancel());
    let listener = listener.map_err(|e| Failure::broken("can't handle signals", &e))?;
    let words = globals.words;
    if globals.is_default && args::has_other_user() {
        args::tell_private(words);
    }
    let builder = builder(globals, &options)?;
    let start = Instant::now();
    let opened = take::open(&builder, options.wait, &token);
    options.wait = options
        .wait
        .map(|wait| wait.saturating_sub(start.elapsed()));
    let taken = opened.and_then(|locker| {
        let held = take::take(&locker.with_cancel(&token), &options, words)?;
        Ok((locker, held))
    });
    // A signal that arrived while the lock was granted ends the wait too, and releases the lock.
    if let Some(signal) = listener.end_of_wait() {
        return Ok(Status::of_signal(signal.as_raw()));
    }
    match taken? {
        (_, Some(held)) => under_lock(held, &options, words, listener),
        (locker, None) => {
            tell_taken(&locker, &options, words);
            Ok(options.taken)
        }
    }
}

fn builder(globals: &Globals, options: &Options) -> Result<LockerBuilder, Failure> {
    if globals.is_in_memory() {
        let why = "memory: locks exclude no other process: use file: or redis://";
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

fn under_lock(held: Held, options: &Options, words: Words, listener: Listener) -> Outcome {
    let guard = match &held {
        Held::Lock(guard) => guard,
        Held::Leadership(leadership) => leadership,
    };
    if let Some(least) = options.at_least {
        guard.at_least_for(least);
    }
    let facts = [
        ("name", options.name().into()),
        ("token", guard.fencing_token().into()),
    ];
    words.note("acquired", &facts);
    let status = Supervisor::start(guard, options, words, listener)?.until_over()?;
    if status == LOST && !options.inherit {
        // The loss was reported, and nothing is left to release. If the command exited with this status, the drop
        // releases.
        return Ok(status);
    }
    release(held, options, words);
    Ok(status)
}

/// A failure here doesn't change the exit status: the command has done its work.
fn release(held: Held, options: &Options, words: Words) {
    if options.inherit {
        // Children of the command may have inherited the lock: unlocking would take it from them.
        return std::mem::forget(held);
    }
    let released = match held {
        Held::Lock(guard) => guard.unlock(),
        Held::Leadership(leadership) => leadership.resign(),
    };
    if let Err(e) = released {
        words.say_why("release_failed", &Failure::from(e).text);
    }
}

fn tell_taken(locker: &Locker, options: &Options, words: Words) {
    if options.is_skipped || words.quiet {
        return;
    }
    let seen = take::first_taken(locker, &options.names);
    let name = options.name();
    let text = match &seen {
        Some(seen) => format!("{name} is taken: {}", show::held(seen)),
        None => format!("{name} is taken"),
    };
    let lock = serde_json::to_value(&seen).unwrap_or_default();
    words.say("taken", &[("name", name.into()), ("lock", lock)], &text);
}

/// This program with an inner verb, even if its file was replaced meanwhile. It leads its own process group, so signals
/// and terminals that reach the group of this process don't reach it.
pub(crate) fn own_program(verb: &str) -> Command {
    let mut program = Command::new("/proc/self/exe");
    program.arg0("crosslock").arg(verb).process_group(0);
    program
}

/// Starts a process that inherits these files, and so keeps their locks.
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

/// The name of a signal.
fn signal_name(signal: Signal) -> String {
    nix::sys::signal::Signal::try_from(signal.as_raw())
        .map_or_else(|_| signal.as_raw().to_string(), |signal| signal.to_string())
}
