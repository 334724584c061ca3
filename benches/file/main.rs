//! Locks in a directory: what they cost, how fast they go from process to process, and who gets them.
//!
//! ```text
//! cargo bench --bench file [-- [SECTION] [--seconds SECONDS] [--rounds ROUNDS] [--old PROGRAM]]
//! ```
//!
//! Each SECTION (all, if none is named) compares `file:` with a private `redis-server` by its unix socket, and with a loop of flock(2)
//! that opens the file, locks, unlocks and closes, as flock(1) does. PROGRAM is this bench, built from another commit: its
//! `file:` is measured beside the one of this build, and named `old`. All are measured in turns in one run, in an order that changes
//! each time, in processes that are new each time; figures are medians of the rounds. Read the ratios, not the times. That no two
//! held the lock at once, and that tokens increase, is checked of every round.
//!
//! - `alone`: one process, nobody else: microseconds from asking for a lock to asking for the next. Pinned to one CPU.
//! - `fair`: 4 and 16 processes lock, hold for 1 ms and unlock in a loop for SECONDS (5). `ratio` is against 1000 locks a second;
//!   `held` is what a sleep of 1 ms came to. `fair` is how often the least served process had the lock, against the most served.
//! - `hand-off`: two processes that work for 0.2 ms while they hold. `gap` is from the last moment of one holder to the first of
//!   the other; `changes` is how many of all acquisitions were after the other process. On one CPU, so that it is a warm one; and
//!   each process on a CPU of its own, which has been idle when the lock comes.
//! - `timed`: a process that locks in a loop, and beside it one that calls `try_lock_for` with 1.5 s twelve times. `works`: the first one keeps
//!   its processor while it holds.
//! - `count`: 4 processes that add one to a number in a file under the lock, as the example `counter` does. `shares` are those of the
//!   processes, in percent.

mod alone;
mod contest;
mod count;
mod fair;
mod hand_off;
mod locks;
#[path = "../support/mod.rs"]
mod support;
mod timed;

use std::path::PathBuf;
use std::time::Duration;

use locks::Locks;

/// What the command line asks for.
struct Wanted {
    section: Option<String>,
    seconds: Duration,
    rounds: usize,
    old: Option<PathBuf>,
}

impl Wanted {
    fn from_args() -> Self {
        let mut wanted = Wanted {
            section: None,
            seconds: Duration::from_secs(5),
            rounds: 5,
            old: None,
        };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let mut value = || args.next().unwrap_or_else(|| panic!("{arg} needs a value"));
            match arg.as_str() {
                "--seconds" => {
                    let seconds = value().parse().expect("seconds");
                    wanted.seconds = Duration::from_secs_f64(seconds);
                }
                "--rounds" => wanted.rounds = value().parse().expect("a number"),
                "--old" => wanted.old = Some(value().into()),
                // Cargo says so.
                "--bench" => {}
                _ => wanted.section = Some(arg),
            }
        }
        wanted
    }
}

type Section = fn(&Locks, &Wanted);

const SECTIONS: [(&str, Section); 5] = [
    ("alone", alone::run),
    ("fair", fair::run),
    ("hand-off", hand_off::run),
    ("timed", timed::run),
    ("count", count::run),
];

fn main() {
    if support::serve() {
        return;
    }
    let wanted = Wanted::from_args();
    let locks = Locks::start(wanted.old.as_deref());
    for (name, run) in SECTIONS {
        if wanted.section.as_deref().is_none_or(|only| only == name) {
            println!("\n== {name}");
            run(&locks, &wanted);
        }
    }
}
