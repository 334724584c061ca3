//! The program `crosslock`: runs commands under a lock, and shows who holds locks and who waits for them.
//!
//! Each verb is a module with its arguments and its work. What they share: `args` has the options that stand before the
//! verb, `time` reads and writes times, `status` has the exit statuses, `output` what is said to people and programs.

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, Command};

use crate::args::Globals;
use crate::output::Words;
use crate::status::{Failure, Outcome};

mod args;
mod bench;
mod break_lock;
mod doctor;
mod documents;
mod free;
mod ls;
mod output;
#[cfg(target_os = "linux")]
mod run;
mod show;
mod status;
mod table;
mod time;
mod watch;

/// A verb: its arguments, and its work.
struct Verb(fn() -> Command, fn(&Globals, &ArgMatches) -> Outcome);

/// In the order in which the help lists them.
const VERBS: &[Verb] = &[
    // It needs signals and clocks that only Linux has.
    #[cfg(target_os = "linux")]
    Verb(run::command, run::run),
    Verb(free::wait_command, free::wait),
    Verb(free::test_command, free::test),
    Verb(ls::command, ls::run),
    Verb(show::command, show::run),
    Verb(break_lock::command, break_lock::run),
    Verb(watch::command, watch::run),
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

/// What the program executes itself for: no verb of users, and quicker without what verbs need.
#[cfg(target_os = "linux")]
fn inner_verb() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    match args.next()?.to_str()? {
        run::child::VERB => Some(run::child::run(args)),
        run::watchdog::process::VERB => Some(run::watchdog::process::run(args)),
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

/// Help and version are no failures; what clap refuses is wrong usage, and it repeats the arguments.
fn told_by_clap(error: &clap::Error) -> ExitCode {
    if let ErrorKind::DisplayHelp | ErrorKind::DisplayVersion = error.kind() {
        // Nothing can be told to somebody who has closed the output.
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
    if error.kind() == ErrorKind::UnknownArgument && is_given("run") && !args.contains(&"--".into())
    {
        text += "\nput `--` before the command: crosslock run NAME -- COMMAND [ARG]...\n";
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
