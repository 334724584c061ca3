//! The torture program, and the checker that judges what it has written down.

mod breaks;
pub mod checker;
mod command;
mod delays;
mod driver;
mod failovers;
mod faults;
pub mod history;
pub mod kinds;
mod looks;
mod member_faults;
mod names;
mod own_mounts;
mod program;
mod register;
mod server_faults;
mod servers;
mod summary;
mod topology;
mod watcher;
mod worker;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use driver::Outcome;
use fastrand::Rng;
use kinds::Class;
use topology::Topology;

const SECONDS: u64 = 60;
/// Where nothing else is asked for, one way to have several servers, by the seed, gets so many besides.
const SECONDS_OF_SEVERAL: u64 = 8;
/// The same for a directory.
const SECONDS_OF_FILE: u64 = 8;
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
    own_mounts::end_with_parent();
    if !is_wanted() {
        return ExitCode::SUCCESS;
    }
    if let Ok(dir) = env::var("TORTURE_JUDGE") {
        return exit(show(&driver::judged(Path::new(&dir))));
    }
    if let Some(mut again) = own_mounts::again() {
        let status = again.status().expect("run this program again");
        return exit(status.success());
    }
    let seconds = number("TORTURE_SECONDS").unwrap_or(SECONDS);
    let seed = number("TORTURE_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("TORTURE_SEED={seed} TORTURE_SECONDS={seconds}");
    let passed = phases(seconds, seed)
        .into_iter()
        .map(|(topology, class, seconds)| {
            phase(topology, class, seed, Duration::from_secs(seconds))
        })
        // All are run, whatever the first ones show.
        .filter(|passed| !passed)
        .count()
        == 0;
    exit(passed)
}

/// What a variable says.
fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().expect(name))
}

fn exit(passed: bool) -> ExitCode {
    if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// What is run, and for how many seconds each.
fn phases(seconds: u64, seed: u64) -> Vec<(Topology, Class, u64)> {
    let topology = Topology::chosen();
    let of = |class, seconds| (topology.unwrap_or(Topology::Single), class, seconds);
    if topology == Some(Topology::File) {
        // There is no server that may forget.
        return vec![of(Class::Safe, seconds)];
    }
    let mut phases = match env::var("TORTURE_CLASS").as_deref() {
        Ok("safe") => vec![of(Class::Safe, seconds)],
        Ok("unsafe") => vec![of(Class::Unsafe, seconds)],
        _ => vec![
            of(Class::Safe, seconds - seconds / 4),
            of(Class::Unsafe, seconds / 4),
        ],
    };
    let is_chosen = |what| env::var_os(format!("TORTURE_{what}")).is_some();
    if !["TOPOLOGY", "CLASS", "FAULTS", "SECONDS"]
        .into_iter()
        .any(is_chosen)
    {
        let mut several = [Topology::Replicas, Topology::Sentinel, Topology::Cluster];
        Rng::with_seed(seed).shuffle(&mut several);
        phases.push((several[0], Class::Safe, SECONDS_OF_SEVERAL));
        phases.push((Topology::File, Class::Safe, SECONDS_OF_FILE));
    }
    phases
}

/// Whether the arguments, which are those of libtest, name this program.
fn is_wanted() -> bool {
    let args: Vec<_> = env::args().skip(1).collect();
    let mut names = args.iter().filter(|arg| !arg.starts_with('-'));
    let skipped = skipped().count();
    let is_named = names.clone().any(|name| "torture".contains(name.as_str()));
    !args.iter().any(|arg| arg == "--list") && (names.nth(skipped).is_none() || is_named)
}

/// What is to be left out, by the arguments of libtest.
fn skipped() -> impl Iterator<Item = String> {
    let (args, values) = (env::args(), env::args().skip(1));
    args.zip(values)
        .filter_map(|(arg, value)| (arg == "--skip").then_some(value))
}

fn phase(topology: Topology, class: Class, seed: u64, time: Duration) -> bool {
    let dir = tempfile::Builder::new()
        .prefix("torture-")
        .tempdir()
        .expect("make a directory")
        // It is removed when all is well.
        .keep();
    println!(
        "\n{} faults for {time:?}, servers: {}, in {}",
        class.name(),
        topology.name(),
        dir.display()
    );
    if show(&driver::run((topology, class), &dir, seed, time)) {
        // What can't be removed is left to the system.
        let _ = fs::remove_dir_all(&dir);
        return true;
    }
    println!(
        "TORTURE_SEED={seed}; TORTURE_JUDGE={} judges it again",
        dir.display()
    );
    false
}

/// Says whether it passed.
fn show(outcome: &Outcome) -> bool {
    let Outcome {
        violations,
        summary,
    } = outcome;
    println!("{summary}| violations | {} |", violations.len());
    let mut counts = BTreeMap::<_, usize>::new();
    for violation in violations {
        *counts.entry(violation.rule).or_default() += 1;
    }
    for (rule, count) in counts {
        println!("| violations of {rule} | {count} |");
    }
    let mut shown = BTreeMap::<_, usize>::new();
    for violation in violations {
        let count = shown.entry(violation.rule).or_default();
        *count += 1;
        if *count <= SHOWN {
            println!("{violation}");
        }
    }
    violations.is_empty()
}
