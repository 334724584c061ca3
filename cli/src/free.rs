//! `test` and `wait`: find out whether a lock is free, without taking it.

use std::thread;
use std::time::{Duration, Instant};

use clap::{ArgMatches, Command};
use crosslock::{Error, LockState, Locker};

use crate::args::{self, Globals};
use crate::status::{NO, OK, Outcome, TAKEN};

pub(crate) fn test_command() -> Command {
    Command::new("test")
        .about("Exit with 0 if a lock is free, and with 1 if it is taken")
        .arg(args::name())
}

pub(crate) fn test(globals: &Globals, matches: &ArgMatches) -> Outcome {
    let name = args::text(matches, "name").unwrap_or_default();
    let seen = globals.locker()?.inspect(name)?;
    Ok(if seen.state == LockState::Free {
        OK
    } else {
        NO
    })
}

/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(100);
/// An outage that lasts longer than this ends the wait.
const UNAVAILABLE_FOR: Duration = Duration::from_secs(10);

pub(crate) fn wait_command() -> Command {
    let wait = args::time("wait", "Wait at most DUR, then exit with 75").short('w');
    Command::new("wait")
        .about("Wait until a lock is free, without taking it")
        .args([args::name(), wait])
}

pub(crate) fn wait(globals: &Globals, matches: &ArgMatches) -> Outcome {
    let name = args::text(matches, "name").unwrap_or_default();
    let most = args::duration(matches, "wait");
    let start = Instant::now();
    let mut locker: Option<Locker> = None;
    let (mut last_answer, mut is_known) = (start, false);
    loop {
        // Opening can fail as a question can, so it is repeated until it succeeds.
        let opened = locker.take().map_or_else(|| globals.builder().build(), Ok);
        let seen = opened.and_then(|opened| locker.insert(opened).inspect(name));
        let left = most.map_or(PAUSE, |most| most.saturating_sub(start.elapsed()));
        match seen {
            Ok(seen) if seen.state == LockState::Free => return Ok(OK),
            Ok(_) => (last_answer, is_known) = (Instant::now(), true),
            // No answer so far: the lock may be free or taken.
            Err(e) if left.is_zero() && !is_known => return Err(e.into()),
            // A call that takes the lock gives up after the same time.
            Err(Error::Unavailable { .. }) if last_answer.elapsed() < UNAVAILABLE_FOR => {}
            Err(e) => return Err(e.into()),
        }
        if left.is_zero() {
            return Ok(TAKEN);
        }
        thread::sleep(left.min(PAUSE));
    }
}
