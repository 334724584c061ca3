//! `watch`: who takes locks, who waits for them, who releases them.
//!
//! It looks again and again, and tells what has changed. What happens between two looks isn't seen.

use std::time::{Duration, Instant};

use clap::{Arg, ArgMatches, Command};
use crosslock::Locker;

use crate::args::{self, Globals};
use crate::status::{Failure, Outcome};
use crate::{duration, output};

mod changes;
mod lines;
mod pause;
mod rate;
mod screen;
mod view;

const INTERVAL: Duration = Duration::from_millis(250);

pub(crate) fn command() -> Command {
    let name = Arg::new("name")
        .value_name("NAME")
        .help("Only this lock [default: all that are taken]");
    let time = |name: &'static str| {
        let time = Arg::new(name).long(name).value_name("DUR");
        time.value_parser(duration::parse)
    };
    Command::new("watch")
        .about("Watch who has locks and who waits: live on a terminal, a line an event in a pipe")
        .args([
            name,
            time("interval").help("How often to look [default: 250ms]"),
            time("for").help("End after so long"),
        ])
}

/// What is watched, and for how long.
struct Watch {
    locker: Locker,
    /// `None`: all locks.
    name: Option<String>,
    namespace: String,
    interval: Duration,
    until: Option<Instant>,
    json: bool,
}

pub(crate) fn run(globals: &Globals, matches: &ArgMatches) -> Outcome {
    let interval = matches.get_one::<Duration>("interval");
    let interval = interval.copied().unwrap_or(INTERVAL);
    if interval.is_zero() {
        return Err(Failure::usage(
            "--interval 0 would never pause: use 10ms or more",
        ));
    }
    let length = matches.get_one::<Duration>("for");
    let watch = Watch {
        locker: globals.locker()?,
        name: args::text(matches, "name").map(str::to_owned),
        namespace: globals.namespace().to_owned(),
        interval,
        until: length.and_then(|length| Instant::now().checked_add(*length)),
        json: globals.json,
    };
    if globals.json || !output::is_terminal() {
        lines::run(&watch)
    } else {
        screen::run(&watch)
    }
}

impl Watch {
    /// When to look again after a look that began then. Of many locks a look takes long: half of the time nothing is asked.
    fn next(&self, began: Instant) -> Instant {
        let now = Instant::now();
        let interval = self.interval.max((now - began) * 2);
        let next = began.checked_add(interval);
        [next, self.until]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(now)
    }

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| until <= Instant::now())
    }
}
