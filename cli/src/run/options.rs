//! The arguments of `run` and `elect`.

use std::{env, ffi::OsString, str::FromStr, time::Duration};

use clap::{Arg, ArgMatches, Command, value_parser};
use nix::sys::signal::Signal as NixSignal;
use rustix::process::Signal;

use super::timing::Timing;
use crate::args::{self, flag, option, time};
use crate::status::{Failure, OK, Status, TAKEN};

/// The arguments, parsed.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) names: Vec<String>,
    pub(crate) mode: Mode,
    /// The longest wait; `None`: no limit.
    pub(crate) wait: Option<Duration>,
    /// The exit status if the lock is taken.
    pub(crate) taken: Status,
    /// Whether nothing is reported if the lock is taken.
    pub(crate) is_skipped: bool,
    pub(crate) timing: Timing,
    pub(crate) at_least: Option<Duration>,
    pub(crate) max_run: Option<Duration>,
    pub(crate) signal: Signal,
    pub(crate) label: Option<String>,
    pub(crate) inherit: bool,
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
}

/// How the lock is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Exclusive,
    Shared,
    Permits {
        count: u32,
        of: u32,
    },
    /// As the leader of an election, who publishes a text.
    Leading(Option<String>),
}

pub(crate) const RUN: &str = "run";
pub(crate) const ELECT: &str = "elect";

pub(crate) fn command() -> Command {
    running(RUN, "NAME...", names())
        .about("Run a command under a lock, and exit with its status")
        .args(sharing())
}

pub(crate) fn elect_command() -> Command {
    let publish = option("publish", "TEXT", "Text that `leader` shows");
    running(ELECT, "NAME", args::name().help("Name of the election"))
        .about("Run a command as the leader of an election, and exit with its status")
        .arg(publish)
}

/// What both verbs have in common.
fn running(verb: &'static str, named: &str, names: Arg) -> Command {
    let usage = format!("crosslock {verb} [OPTIONS] {named}");
    Command::new(verb)
        .override_usage(format!(
            "{usage} -- COMMAND [ARG]...\n       {usage} -c STRING"
        ))
        .args([names, command_and_args(), shell()])
        .args(waiting())
        .args(holding())
        .args(stopping())
        .after_help(AFTER)
}

const AFTER: &str = "DUR is a time: 500ms, 10s, 5m, 1h; a number alone is seconds.

Exit status: that of the command, or 128+N if signal N ended it. Otherwise:
   64  the arguments are wrong
   69  the server or directory can't be reached
   70  another failure
   75  the lock is taken
   76  the lock was lost and the command was stopped
   77  access is denied
  124  --max-run stopped the command
  126  the command can't be executed
  127  the command wasn't found";

fn names() -> Arg {
    args::name()
        .num_args(1..)
        .help("Name of the lock; several names are taken together or not at all")
}

fn command_and_args() -> Arg {
    Arg::new("command")
        .value_name("COMMAND")
        .num_args(1..)
        .last(true)
        .value_parser(value_parser!(OsString))
        .help("The command and its arguments")
}

fn shell() -> Arg {
    option(
        "shell",
        "STRING",
        "Run STRING with the shell ($SHELL, else /bin/sh)",
    )
    .short('c')
    .long("command")
    .conflicts_with("command")
    .value_parser(value_parser!(OsString))
}

fn waiting() -> [Arg; 4] {
    [
        flag("nonblock", "Don't wait: exit with 75 if the lock is taken")
            .short('n')
            .conflicts_with("wait"),
        time("wait", "Wait at most DUR, then exit with 75").short('w'),
        option(
            "conflict-exit-code",
            "CODE",
            "Exit status if the lock is taken [default: 75]",
        )
        .short('E')
        .value_parser(value_parser!(u8)),
        flag("skip", "Exit with 0 and print nothing if the lock is taken")
            .conflicts_with("conflict-exit-code"),
    ]
}

fn sharing() -> [Arg; 3] {
    [
        flag(
            "shared",
            "Share the lock with other commands that use --shared",
        )
        .conflicts_with("permit"),
        option(
            "permit",
            "COUNT/OF",
            "Take COUNT of OF permits: with 1/3, at most three commands run at a time",
        )
        .short('p')
        .value_parser(permits),
        flag(
            "inherit",
            "With file:, let the command and its children inherit the lock, as flock(1) does",
        )
        .conflicts_with("at-least"),
    ]
}

fn holding() -> [Arg; 3] {
    [
        time(
            "ttl",
            "Time until the lock is free after a crash of this machine [default: 20s, more with a long --kill-after]",
        ),
        time(
            "at-least",
            "Keep the lock for at least DUR, even if the command ends earlier",
        ),
        option(
            "label",
            "TEXT",
            "Text that other users see beside your host and process",
        ),
    ]
}

fn stopping() -> [Arg; 3] {
    [
        time("max-run", "Stop the command after DUR, and exit with 124"),
        time("kill-after", "Time between --signal and SIGKILL")
            .short('k')
            .default_value("5s"),
        option("signal", "SIG", "Signal that asks the command to stop")
            .short('s')
            .default_value("TERM")
            .value_parser(signal),
    ]
}

/// `1/3`.
fn permits(text: &str) -> Result<Mode, String> {
    const USE: &str = "write permits as COUNT/OF, such as 1/3";
    let (count, of) = text.split_once('/').ok_or(USE)?;
    let number = |text: &str| text.parse::<u32>().map_err(|_| USE);
    let (count, of) = (number(count)?, number(of)?);
    Ok(Mode::Permits { count, of })
}

/// `TERM`, `SIGTERM` or `15`.
fn signal(text: &str) -> Result<Signal, String> {
    let upper = text.to_ascii_uppercase();
    let name = format!("SIG{}", upper.strip_prefix("SIG").unwrap_or(&upper));
    let named = || NixSignal::from_str(&name).ok().map(|signal| signal as i32);
    let number = upper.parse().ok().or_else(named);
    let signal = number.and_then(Signal::from_named_raw);
    signal.ok_or_else(|| {
        "unknown signal: use a name such as TERM; to share the lock, use --shared".to_owned()
    })
}

impl Options {
    pub(crate) fn of(verb: &str, matches: &ArgMatches) -> Result<Self, Failure> {
        let time = |name| args::duration(matches, name);
        let names = matches.get_many::<String>("name").into_iter().flatten();
        let names: Vec<_> = names.cloned().collect();
        let command = program(matches);
        if command.is_empty() {
            return Err(without_command(verb, &names));
        }
        let timing = Timing::new(time("ttl"), time("kill-after").unwrap_or_default());
        let is_skipped = matches.get_flag("skip");
        let own_status = matches.get_one::<u8>("conflict-exit-code");
        Ok(Options {
            mode: mode(verb, matches, names.len())?,
            names,
            wait: match matches.get_flag("nonblock") {
                true => Some(Duration::ZERO),
                false => time("wait"),
            },
            taken: match own_status {
                _ if is_skipped => OK,
                own => own.map_or(TAKEN, |code| Status(*code)),
            },
            is_skipped,
            timing: timing.map_err(Failure::usage)?,
            at_least: time("at-least"),
            max_run: time("max-run"),
            signal: matches.get_one("signal").copied().unwrap_or(Signal::TERM),
            label: args::text(matches, "label").map(str::to_owned),
            inherit: has(matches, "inherit"),
            command,
        })
    }

    /// The names, as the command and people see them.
    pub(crate) fn name(&self) -> String {
        self.names.join(" ")
    }
}

/// Whether a flag is given that `elect` doesn't have.
fn has(matches: &ArgMatches, flag: &str) -> bool {
    matches!(matches.try_get_one(flag), Ok(Some(true)))
}

fn mode(verb: &str, matches: &ArgMatches, names: usize) -> Result<Mode, Failure> {
    if verb == ELECT {
        let publish = args::text(matches, "publish");
        return Ok(Mode::Leading(publish.map(str::to_owned)));
    }
    let permits = matches.get_one::<Mode>("permit").cloned();
    let shared = has(matches, "shared").then_some(Mode::Shared);
    match permits.or(shared) {
        Some(_) if names > 1 => Err(Failure::usage(
            "--shared and -p can't be used with several names",
        )),
        mode => Ok(mode.unwrap_or(Mode::Exclusive)),
    }
}

/// The user may have forgotten `--`: then names are the command.
fn without_command(verb: &str, names: &[String]) -> Failure {
    let name = names.first().map_or("NAME", String::as_str);
    let command = match names.get(1..) {
        Some(words @ [_, ..]) => words.join(" "),
        _ => "COMMAND".to_owned(),
    };
    Failure::usage(format!(
        "the command is missing: put `--` before the command: crosslock {verb} {name} -- {command}"
    ))
}

fn program(matches: &ArgMatches) -> Vec<OsString> {
    if let Some(text) = matches.get_one::<OsString>("shell") {
        let shell = env::var_os("SHELL").filter(|shell| !shell.is_empty());
        let shell = shell.unwrap_or_else(|| "/bin/sh".into());
        return vec![shell, "-c".into(), text.clone()];
    }
    let command = matches.get_many::<OsString>("command");
    command.into_iter().flatten().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Options, String> {
        let args = [RUN].iter().chain(args);
        let matches = command().try_get_matches_from(args);
        let matches = matches.map_err(|e| e.to_string())?;
        Options::of(RUN, &matches).map_err(|failure| failure.text)
    }

    #[test]
    fn permits_and_signals_have_several_forms() {
        let args = ["a", "-p", "2/3", "-s", "int", "-k", "2", "--", "x"];
        let options = parse(&args).expect("valid");
        assert_eq!(options.timing.kill_after, Duration::from_secs(2));
        assert_eq!(options.mode, Mode::Permits { count: 2, of: 3 });
        assert_eq!(options.signal, Signal::INT);
        for (text, expected) in [("SIGUSR1", Signal::USR1), ("9", Signal::KILL)] {
            assert_eq!(signal(text), Ok(expected));
        }
        assert!(signal("TERMINATE").is_err());
        assert!(permits("3").is_err());
    }
}
