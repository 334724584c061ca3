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

/// What the program can do: the arguments of a verb, and its work.
struct Verb {
    command: fn() -> Command,
    run: fn(&Globals, &ArgMatches) -> Outcome,
}

/// In the order in which the help lists them.
const VERBS: &[Verb] = &[
    // It needs signals and clocks that only Linux has.
    #[cfg(target_os = "linux")]
    Verb {
        command: run::command,
        run: run::run,
    },
    Verb {
        command: free::wait_command,
        run: free::wait,
    },
    Verb {
        command: free::test_command,
        run: free::test,
    },
    Verb {
        command: ls::command,
        run: ls::run,
    },
    Verb {
        command: show::command,
        run: show::run,
    },
    Verb {
        command: break_lock::command,
        run: break_lock::run,
    },
    Verb {
        command: watch::command,
        run: watch::run,
    },
    Verb {
        command: doctor::command,
        run: doctor::run,
    },
    Verb {
        command: bench::command,
        run: bench::run,
    },
    Verb {
        command: documents::completions_command,
        run: documents::completions,
    },
    Verb {
        command: documents::man_command,
        run: documents::man,
    },
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
    let globals = Globals::of(&matches);
    match dispatch(&globals, &matches) {
        Ok(status) => status.into(),
        Err(failure) => {
            output::failure(&globals, &failure);
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
    args::command().subcommands(VERBS.iter().map(|verb| (verb.command)()))
}

fn dispatch(globals: &Globals, matches: &ArgMatches) -> Outcome {
    globals.set_up_log();
    globals.check()?;
    let (name, matches) = matches.subcommand().unwrap_or(("", matches));
    let verb = VERBS
        .iter()
        .find(|verb| (verb.command)().get_name() == name);
    let verb = verb.ok_or_else(|| Failure::usage("a verb is missing: see crosslock --help"))?;
    (verb.run)(globals, matches)
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
        let failure = Failure::usage(text.trim_start_matches("error: ").trim_end());
        output::told(Words::of(true, is_given("-q")), &failure);
    } else {
        text.lines()
            .for_each(|line| output::line(&output::visible(line)));
    }
    status::USAGE.into()
}
