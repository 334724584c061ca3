//! `bench`: measures the cost of locks at a URL, next to the lowest possible cost.
//!
//! It measures the same as `benches/uncontended` and `benches/hand_off`, in a few seconds and at the place of the
//! user's locks. It uses its own names, and removes them.

use std::time::Duration;

use clap::{ArgMatches, Command};

use self::place::Place;
use self::report::Report;
use crate::args::{self, Globals};
use crate::output;
use crate::status::{Failure, OK, Outcome};

#[cfg(target_os = "linux")]
pub(crate) mod cleaner;
mod floor;
mod measure;
mod place;
mod report;

const LENGTH: Duration = Duration::from_secs(6);
const LONGEST: Duration = Duration::from_secs(10);

/// The numbers of lockers that want the same lock.
const CROWDS: [usize; 2] = [2, 8];

pub(crate) fn command() -> Command {
    let length = args::time("for", "Time to measure, at most 10s [default: 6s]");
    Command::new("bench")
        .about("Measure the cost of locks at this URL, next to the lowest possible cost")
        .arg(length)
}

pub(crate) fn run(globals: &Globals, matches: &ArgMatches) -> Outcome {
    let length = args::duration(matches, "for").unwrap_or(LENGTH);
    if length > LONGEST {
        return Err(Failure::usage("--for is 10s at most"));
    }
    let report = Report::new(globals.words.json);
    if !output::print(&report.machine())? {
        return Ok(OK);
    }
    let place = Place::of(globals)?;
    #[cfg(target_os = "linux")]
    let cleaner = cleaner::Cleaner::start(&place, globals.url())?;
    let outcome = measure(&place, length / 3, report);
    #[cfg(target_os = "linux")]
    cleaner.finish();
    #[cfg(not(target_os = "linux"))]
    place.clean();
    outcome
}

fn measure(place: &Place, length: Duration, report: Report) -> Outcome {
    let uncontended = measure::uncontended(place, length)?;
    if !output::print(&report.uncontended(&uncontended))? {
        return Ok(OK);
    }
    for crowd in CROWDS {
        let contended = measure::contended(place, crowd, length)?;
        if !output::print(&report.contended(&contended))? {
            return Ok(OK);
        }
    }
    Ok(OK)
}
