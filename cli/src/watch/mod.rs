//! `watch`: who takes locks, who waits for them, who releases them.
//!
//! It looks again and again, and tells what has changed. What happens between two looks isn't seen.

use std::collections::BTreeMap;
use std::io::{self, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::{Arg, ArgMatches, Command};
use crosslock::{Inspection, Locker};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::args::{self, Globals};
use crate::status::{Failure, OK, Outcome, Status, UNAVAILABLE};
use crate::{ls, output};

mod events;
mod screen;

const INTERVAL: Duration = Duration::from_millis(250);

pub(crate) fn command() -> Command {
    let name = Arg::new("name")
        .value_name("NAME")
        .help("Only this lock [default: all that are taken]");
    Command::new("watch")
        .about("Watch who has locks and who waits: live on a terminal, a line an event in a pipe")
        .args([
            name,
            args::time("interval", "How often to look [default: 250ms]"),
            args::time("for", "End after so long"),
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

/// The locks that were taken, by name.
type View = BTreeMap<String, Inspection>;

pub(crate) fn run(globals: &Globals, matches: &ArgMatches) -> Outcome {
    let interval = args::duration(matches, "interval").unwrap_or(INTERVAL);
    if interval.is_zero() {
        let why = "--interval 0 would never pause: use 10ms or more";
        return Err(Failure::usage(why));
    }
    let length = args::duration(matches, "for");
    let watch = Watch {
        locker: globals.locker()?,
        name: args::text(matches, "name").map(str::to_owned),
        namespace: globals.namespace().to_owned(),
        interval,
        until: length.and_then(|length| Instant::now().checked_add(length)),
        json: globals.words.json,
    };
    match watch.json || !output::is_terminal() {
        true => events::run(&watch),
        false => screen::run(&watch),
    }
}

impl Watch {
    /// Looks again and again, and prints what `show` makes of each look: of when it began, and what it has found, or why the
    /// place can't be reached. If that fails at once, it ends.
    fn each_look(&self, mut show: impl FnMut(Instant, Result<View, String>) -> String) -> Outcome {
        let signals = Signals::listen()?;
        let mut began = Instant::now();
        let mut seen = Ok(self.look()?);
        loop {
            let text = show(began, seen);
            if !text.is_empty() && !output::print(&text)? {
                return Ok(OK);
            }
            if let Some(status) = signals.pause_until(self.next(began)) {
                return Ok(status);
            }
            if self.until.is_some_and(|until| until <= Instant::now()) {
                return Ok(OK);
            }
            began = Instant::now();
            seen = match self.look() {
                Err(failure) if failure.status != UNAVAILABLE => return Err(failure),
                seen => seen.map_err(|failure| failure.text),
            };
        }
    }

    fn look(&self) -> Result<View, Failure> {
        look(&self.locker, self.name.as_deref())
    }

    /// When to look again after a look that began then. Of many locks a look takes long: half of the time nothing is asked.
    fn next(&self, began: Instant) -> Instant {
        let now = Instant::now();
        let interval = self.interval.max((now - began) * 2);
        let times = [began.checked_add(interval), self.until];
        times.into_iter().flatten().min().unwrap_or(now)
    }
}

/// One lock, or all of them.
fn look(locker: &Locker, name: Option<&str>) -> Result<View, Failure> {
    let mut locks = match name {
        Some(name) => vec![locker.inspect(name)?],
        None => ls::taken(locker, "")?,
    };
    locks.retain(ls::is_taken);
    let locks = locks.into_iter();
    Ok(locks.map(|seen| (seen.name.clone(), seen)).collect())
}

/// A signal that comes just before a pause is seen this much later.
const LONGEST: Duration = Duration::from_millis(100);

/// Hears of signals that end the program. They, and the end of whoever reads, cut a pause short.
struct Signals(Arc<AtomicUsize>);

impl Signals {
    fn listen() -> Result<Self, Failure> {
        let heard = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let number = usize::try_from(signal).unwrap_or(0);
            signal_hook::flag::register_usize(signal, heard.clone(), number)
                .map_err(|e| Failure::broken("signals can't be heard", &e))?;
        }
        Ok(Signals(heard))
    }

    /// With which status to end, once it is time to. An interrupt is how one stops watching.
    fn status(&self) -> Option<Status> {
        const INTERRUPT: usize = SIGINT as usize;
        match self.0.load(Ordering::SeqCst) {
            0 => None,
            INTERRUPT => Some(OK),
            number => Some(Status::of_signal(number.try_into().unwrap_or_default())),
        }
    }

    /// Pauses until then, or until it is time to end.
    fn pause_until(&self, then: Instant) -> Option<Status> {
        loop {
            if let Some(status) = self.status() {
                return Some(status);
            }
            let left = then.saturating_duration_since(Instant::now());
            if nobody_reads_within(left.min(LONGEST)) {
                return Some(OK);
            }
            if left <= LONGEST && self.status().is_none() {
                return None;
            }
        }
    }
}

/// Whether the reader of standard output goes, or has gone, within that time. A signal ends it earlier.
fn nobody_reads_within(time: Duration) -> bool {
    let out = stdout();
    let mut events = [PollFd::new(&out, PollFlags::empty())];
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: time.subsec_nanos().into(),
    };
    match poll(&mut events, Some(&timeout)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => false,
        Ok(_) => true,
        Err(e) => {
            // What can't be asked is as if nothing had happened, but must not become a loop without pauses.
            log::debug!("poll: {}", io::Error::from(e));
            std::thread::sleep(time);
            false
        }
    }
}
