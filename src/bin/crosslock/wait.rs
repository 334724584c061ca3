//! `wait`: waits until a lock is free, without taking it.

use std::thread;
use std::time::{Duration, Instant};

use clap::{Arg, ArgMatches, Command};
use crosslock::LockState;

use crate::args::{self, Globals};
use crate::duration;
use crate::status::{OK, Outcome, TAKEN};

/// How often one looks.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) fn command() -> Command {
    let wait = Arg::new("wait")
        .short('w')
        .long("wait")
        .value_name("DUR")
        .value_parser(duration::parse)
        .help("Wait for so long at most, and exit with 75 then");
    Command::new("wait")
        .about("Wait until a lock is free, without taking it")
        .args([args::name(), wait])
}

pub(crate) fn run(globals: &Globals, matches: &ArgMatches) -> Outcome {
    let name = args::text(matches, "name").unwrap_or_default();
    let most = matches.get_one::<Duration>("wait");
    let deadline = most.and_then(|most| Instant::now().checked_add(*most));
    let locker = globals.locker()?;
    while locker.inspect(name)?.state != LockState::Free {
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Ok(TAKEN);
        }
        thread::sleep(PAUSE);
    }
    Ok(OK)
}
