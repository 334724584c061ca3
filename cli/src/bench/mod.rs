//! `bench`: measures the cost of locks at a URL, next to the lowest possible cost.
//!
//! It measures the same as `benches/uncontended` and `benches/hand_off`, in a few seconds and at the place of the
//! user's locks. It uses its own names, and removes them.

use std::{fs, thread, time::Duration};

use clap::{ArgMatches, Command};
use serde_json::{Value, json};

use self::measure::{Contended, Times, Uncontended, micros};
use self::place::Place;
use crate::args::{self, Globals};
use crate::output;
use crate::status::{Failure, OK, Outcome};

#[cfg(target_os = "linux")]
pub(crate) mod cleaner;
mod measure;
mod place;

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
        return Err(Failure::usage("--for must be at most 10s"));
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

/// Prints the measurements as columns or JSON.
#[derive(Clone, Copy)]
struct Report {
    json: bool,
}

impl Report {
    fn new(json: bool) -> Self {
        Report { json }
    }

    /// The load of the machine before the bench.
    fn machine(self) -> String {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let load = fs::read_to_string("/proc/loadavg").ok();
        let load = load.and_then(|text| text.split(' ').next().map(str::to_owned));
        if self.json {
            let load: Option<f64> = load.and_then(|load| load.parse().ok());
            return line(
                &json!({"measure": "machine", "cpus": cpus, "load": load, "optimised": !cfg!(debug_assertions)}),
            );
        }
        let load = load.map_or(String::new(), |load| format!(", load {load}"));
        let build = if cfg!(debug_assertions) {
            ", an unoptimized build"
        } else {
            ""
        };
        format!("{cpus} CPUs{load}{build}: compare ratios, not times\n")
    }

    fn uncontended(self, found: &Uncontended) -> String {
        let floor = found.floor.as_ref();
        let ratio = floor
            .ok()
            .map(|(_, times)| micros(found.ours.percentile(50)) / micros(times.percentile(50)));
        if self.json {
            return uncontended_json(found, ratio);
        }
        let mut text = format!(
            "\n{:<34} {:>10} {:>10} {:>6}\n",
            "without contention", "p50", "p99", "ratio"
        );
        match floor {
            Ok((words, times)) => text += &row(&format!("floor: {words}"), times, None),
            Err(why) => text += &format!("no floor: {why}\n"),
        }
        text + &row("lock, unlock", &found.ours, ratio)
    }

    fn contended(self, found: &Contended) -> String {
        let ratio = found.acquisitions / found.most.max(f64::MIN_POSITIVE);
        let [p50, p99] = [50, 99].map(|percent| found.gaps.percentile(percent));
        if self.json {
            return line(&json!({
                "measure": "contended",
                "lockers": found.crowd,
                "per_second": rounded(found.acquisitions),
                "most_per_second": rounded(found.most),
                "ratio": rounded(ratio),
                "gap_p50_us": rounded(micros(p50)),
                "gap_p99_us": rounded(micros(p99)),
                "fairness": rounded(found.fairness),
            }));
        }
        format!(
            "\n{} threads compete, and hold the lock for 1 ms\n\
             acquisitions   {:.0}/s of {:.0}/s possible: {ratio:.2}\n\
             hand-off       p50 {}, p99 {}\n\
             fairness       {:.2}: least served against most served\n",
            found.crowd,
            found.acquisitions,
            found.most,
            time(p50),
            time(p99),
            found.fairness,
        )
    }
}

fn uncontended_json(found: &Uncontended, ratio: Option<f64>) -> String {
    let of = |subject: &str, times: &Times| {
        json!({
            "measure": "uncontended",
            "subject": subject,
            "p50_us": rounded(micros(times.percentile(50))),
            "p99_us": rounded(micros(times.percentile(99))),
            "cycles": times.len(),
        })
    };
    let mut ours = of("lock, unlock", &found.ours);
    ours["ratio"] = json!(ratio.map(rounded));
    let floor = match &found.floor {
        Ok((words, times)) => line(&of(&format!("floor: {words}"), times)),
        Err(_) => String::new(),
    };
    floor + &line(&ours)
}

fn row(subject: &str, times: &Times, ratio: Option<f64>) -> String {
    let [p50, p99] = [50, 99].map(|percent| time(times.percentile(percent)));
    let ratio = ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
    let row = format!("{subject:<34} {p50:>10} {p99:>10} {ratio:>6}");
    row.trim_end().to_owned() + "\n"
}

fn time(time: Duration) -> String {
    let micros = micros(time);
    match micros {
        ..1.0 => format!("{:.0} ns", micros * 1e3),
        ..1e3 => format!("{micros:.1} us"),
        _ => format!("{:.2} ms", micros / 1e3),
    }
}

/// Three digits behind the point are more than what was measured.
fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

fn line(value: &Value) -> String {
    value.to_string() + "\n"
}
