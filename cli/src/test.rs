//! `test`: says by its exit status whether a lock is free.

use clap::{ArgMatches, Command};
use crosslock::LockState;

use crate::args::{self, Globals};
use crate::status::{NO, OK, Outcome};

pub(crate) fn command() -> Command {
    Command::new("test")
        .about("Exit with 0 if a lock is free, with 1 if it is taken")
        .arg(args::name())
}

pub(crate) fn run(globals: &Globals, matches: &ArgMatches) -> Outcome {
    let name = args::text(matches, "name").unwrap_or_default();
    let seen = globals.locker()?.inspect(name)?;
    Ok(if seen.state == LockState::Free {
        OK
    } else {
        NO
    })
}
