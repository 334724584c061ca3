//! The torture program, and the checker that judges what it has written down.

pub mod checker;
mod command;
mod driver;
mod faults;
pub mod history;
mod names;
mod program;
mod servers;
mod summary;
mod topology;
mod worker;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use checker::{Violation, judge};
use history::Event;
use summary::Summary;
use topology::Topology;

/// How long a run fires faults where nothing else is asked for.
const SECONDS: u64 = 4;
/// So many violations of each rule are shown.
const SHOWN: usize = 5;

pub fn main() -> ExitCode {
    if command::is_command() {
        command::run();
        return ExitCode::SUCCESS;
    }
    if worker::is_worker() {
        worker::run();
        return ExitCode::SUCCESS;
    }
    if let Ok(dir) = env::var("TORTURE_JUDGE") {
        return exit(show(&history::read(Path::new(&dir)).expect("read history")));
    }
    let (time, seed) = (
        Duration::from_secs(number("TORTURE_SECONDS", || SECONDS)),
        seed(),
    );
    let failed: Vec<_> = topologies()
        .into_iter()
        // All are run, whatever the first ones show.
        .filter(|topology| !torture(*topology, time, seed))
        .map(Topology::name)
        .collect();
    if !failed.is_empty() {
        println!("failed: {}", failed.join(", "));
    }
    exit(failed.is_empty())
}

fn seed() -> u64 {
    number("TORTURE_SEED", || fastrand::u64(..))
}

/// What a variable says.
fn number(name: &str, default: impl FnOnce() -> u64) -> u64 {
    let text = env::var(name).ok();
    text.map_or_else(default, |text| text.parse().expect(name))
}

fn exit(passed: bool) -> ExitCode {
    if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The one that `TORTURE_TOPOLOGY` names; else all that the arguments, which are those of libtest, want.
fn topologies() -> Vec<Topology> {
    let args: Vec<_> = env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--list") {
        return Vec::new();
    }
    let is_value = |at: usize| at > 0 && args[at - 1] == "--skip";
    let (skipped, wanted): (Vec<_>, Vec<_>) = (0..args.len())
        .filter(|at| !args[*at].starts_with('-'))
        .partition(|at| is_value(*at));
    let is_named = |topology: &Topology, by: &[usize]| {
        let name = format!("torture::{}", topology.name());
        by.iter().any(|at| name.contains(&args[*at]))
    };
    let is_wanted = |topology: &Topology| {
        (wanted.is_empty() || is_named(topology, &wanted)) && !is_named(topology, &skipped)
    };
    let chosen = Topology::chosen().map_or(Topology::ALL.to_vec(), |one| vec![one]);
    chosen.into_iter().filter(is_wanted).collect()
}

/// Says whether no rule was broken.
fn torture(topology: Topology, time: Duration, seed: u64) -> bool {
    let dir = tempfile::Builder::new()
        .prefix("torture-")
        .tempdir()
        .expect("make a directory")
        // It is removed when all is well.
        .keep();
    println!(
        "\nTORTURE_TOPOLOGY={} TORTURE_SEED={seed}, in {}",
        topology.name(),
        dir.display()
    );
    if show(&driver::run(topology, &dir, seed, time)) {
        // What can't be removed is left to the system.
        let _ = fs::remove_dir_all(&dir);
        return true;
    }
    println!("TORTURE_JUDGE={} judges it again", dir.display());
    false
}

/// Judges a history, and says whether no rule was broken.
fn show(events: &[Event]) -> bool {
    let violations = judge(events);
    print!("{}", Summary::of(events));
    println!("| violations | {} |", violations.len());
    let mut by_rule = BTreeMap::<_, Vec<&Violation>>::new();
    for violation in &violations {
        by_rule.entry(violation.rule).or_default().push(violation);
    }
    for (rule, found) in &by_rule {
        println!("| violations of {rule} | {} |", found.len());
    }
    for violation in by_rule.values().flat_map(|found| found.iter().take(SHOWN)) {
        println!("{violation}");
    }
    violations.is_empty()
}
