//! `watch`: shows which processes take, await and release locks.
//!
//! It polls, and compares each look with the previous one. It can't see what happens between two looks.

use std::io::{self, stdout};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{collections::BTreeMap, sync::Arc};

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
        .help("Watch only this lock [default: all taken locks]");
    Command::new("watch")
        .about("Watch holders and waiters, live or as one line per event in a pipe")
        .args([
            name,
            args::time("interval", "Time between two looks [default: 250ms]"),
            args::time("for", "End after DUR"),
        ])
}

/// What to watch, and how long.
struct Watch {
    locker: Locker,
    /// `None`: all locks.
    name: Option<String>,
    namespace: String,
    interval: Duration,
    until: Option<Instant>,
    json: bool,
}

/// The taken locks, by name.
type View = BTreeMap<String, Inspection>;

pub(crate) fn run(globals: &Globals, matches: &ArgMatches) -> Outcome {
    let interval = args::duration(matches, "interval").unwrap_or(INTERVAL);
    if interval.is_zero() {
        let why = "--interval can't be 0: use 10ms or more";
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
    /// Looks repeatedly, and prints what `show` returns for each look. `show` gets the time at which the look began,
    /// and the locks or the reason why they can't be reached. If the first look fails, so does this call.
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

    /// The time of the next look. A look at many locks takes long, so at least half of the time the server is left
    /// alone.
    fn next(&self, began: Instant) -> Instant {
        let now = Instant::now();
        let interval = self.interval.max((now - began) * 2);
        let times = [began.checked_add(interval), self.until];
        times.into_iter().flatten().min().unwrap_or(now)
    }
}

/// Looks at one lock, or at all of them.
fn look(locker: &Locker, name: Option<&str>) -> Result<View, Failure> {
    let mut locks = match name {
        Some(name) => vec![locker.inspect(name)?],
        None => ls::taken(locker, "")?,
    };
    locks.retain(ls::is_taken);
    let locks = locks.into_iter();
    Ok(locks.map(|seen| (seen.name.clone(), seen)).collect())
}

/// A signal that arrives just before a pause is noticed after this time at the latest.
pub(crate) const LONGEST: Duration = Duration::from_millis(100);

/// Notices the signals that end the program. They cut a pause short, and so does the end of the reader.
pub(crate) struct Signals(Arc<AtomicUsize>);

impl Signals {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let heard = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let number = usize::try_from(signal).unwrap_or(0);
            signal_hook::flag::register_usize(signal, heard.clone(), number)
                .map_err(|e| Failure::broken("can't handle signals", &e))?;
        }
        Ok(Signals(heard))
    }

    /// The exit status, once a signal has arrived. An interrupt is the usual way to stop, so it is no failure.
    fn status(&self) -> Option<Status> {
        const INTERRUPT: usize = SIGINT as usize;
        match self.0.load(Ordering::SeqCst) {
            0 => None,
            INTERRUPT => Some(OK),
            number => Some(Status::of_signal(number.try_into().unwrap_or_default())),
        }
    }

    /// Pauses until `then`. Returns a status if the program has to end before.
    pub(crate) fn pause_until(&self, then: Instant) -> Option<Status> {
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

/// Whether the reader of standard output is gone, or goes within `time`. A signal ends the wait early.
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
            // Treated as if nothing had happened, but the caller's loop must not spin.
            log::debug!("poll: {}", io::Error::from(e));
            std::thread::sleep(time);
            false
        }
    }
}
