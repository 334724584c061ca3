//! The program `crosslock`: runs commands under a lock or as a leader, and shows the holders and waiters of locks.
//!
//! Each verb is a module with its arguments and its work. All verbs use these: `args` has the common options, `time`
//! parses and formats times, `status` has the exit statuses, `output` writes for people and programs, `table` aligns
//! columns.
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "what only `run` uses, which is for Linux")
)]

use std::process::ExitCode;

use clap::{ArgMatches, Command, error::ErrorKind};

use crate::status::{Failure, Outcome};
use crate::{args::Globals, output::Words};

mod args;
mod bench;
mod break_lock;
mod doctor;
mod documents;
mod free;
mod leader;
mod ls;
mod output;
#[cfg(target_os = "linux")]
mod run;
mod show;
mod status;
mod table;
mod tasks;
mod time;
mod watch;

/// A verb: its arguments, and its work.
struct Verb(fn() -> Command, fn(&Globals, &ArgMatches) -> Outcome);

/// In the order in which the help lists them.
const VERBS: &[Verb] = &[
    // It needs signals and clocks that exist on Linux alone.
    #[cfg(target_os = "linux")]
    Verb(run::command, run::run),
    #[cfg(target_os = "linux")]
    Verb(run::elect_command, run::elect),
    Verb(leader::command, leader::run),
    Verb(free::wait_command, free::wait),
    Verb(free::test_command, free::test),
    Verb(ls::command, ls::run),
    Verb(show::command, show::run),
    Verb(break_lock::command, break_lock::run),
    Verb(watch::command, watch::run),
    Verb(tasks::command, tasks::run),
    Verb(doctor::command, doctor::run),
    Verb(bench::command, bench::run),
    Verb(documents::completions_command, documents::completions),
    Verb(documents::man_command, documents::man),
];

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(status) = inner_verb() {
        return status;
    }
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        Err(e) => return told_by_clap(&e),
    };
    let words = Words::of(&matches);
    match dispatch(words, &matches) {
        Ok(status) => status.into(),
        Err(failure) => {
            words.failed(&failure);
            failure.status.into()
        }
    }
}

/// The verbs for which the program executes itself. Users don't call them. They start faster without the parser of
/// arguments.
#[cfg(target_os = "linux")]
fn inner_verb() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    match args.next()?.to_str()? {
        run::child::VERB => Some(run::child::run(args)),
        run::watchdog::VERB => Some(run::watchdog::run(args)),
        bench::cleaner::VERB => Some(bench::cleaner::run(args)),
        _ => None,
    }
}

/// The whole program's arguments.
fn command() -> Command {
    args::command().subcommands(VERBS.iter().map(|Verb(command, _)| command()))
}

fn dispatch(words: Words, matches: &ArgMatches) -> Outcome {
    if matches.get_flag("verbose") {
        output::log_to_stderr();
    }
    let globals = Globals::of(words, matches)?;
    let (name, matches) = matches.subcommand().unwrap_or(("", matches));
    let mut verbs = VERBS.iter();
    let verb = verbs.find(|Verb(command, _)| command().get_name() == name);
    let Verb(_, run) =
        verb.ok_or_else(|| Failure::usage("a verb is missing: see crosslock --help"))?;
    run(&globals, matches)
}

/// Help and version aren't failures. Everything else is wrong usage; clap's text repeats the arguments, so it is
/// escaped.
fn told_by_clap(error: &clap::Error) -> ExitCode {
    if let ErrorKind::DisplayHelp | ErrorKind::DisplayVersion = error.kind() {
        // If the output is closed, there is nobody to tell.
        let _ = error.print();
        return status::OK.into();
    }
    let mut text = error.to_string();
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let is_given = |arg: &str| {
        args.iter()
            .take_while(|one| *one != "--")
            .any(|one| one == arg)
    };
    let verb = ["run", "elect"].into_iter().find(|verb| is_given(verb));
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    if let Some(verb) = verb.filter(|_| is_unknown && !args.contains(&"--".into())) {
        let usage = format!("crosslock {verb} NAME -- COMMAND [ARG]...");
        text += &format!("\nput `--` before the command: {usage}\n");
    }
    if is_given("--json") {
        let (json, quiet) = (true, is_given("-q"));
        let reason = text.trim_start_matches("error: ").trim_end();
        Words { json, quiet }.failed(&Failure::usage(reason));
    } else {
        let lines = text.lines().map(output::visible);
        lines.for_each(|line| output::line(&line));
    }
    status::USAGE.into()
}
