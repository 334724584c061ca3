//! The torture program, and the checker that judges what it has written down.

mod breaks;
pub mod checker;
mod clock;
mod command;
mod delays;
mod driver;
mod faults;
pub mod history;
pub mod kinds;
mod names;
mod program;
mod register;
mod server_faults;
mod servers;
mod summary;
mod watcher;
mod worker;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use driver::Outcome;
use kinds::Class;

const SECONDS: u64 = 60;
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
    if !is_wanted() {
        return ExitCode::SUCCESS;
    }
    if let Ok(dir) = env::var("TORTURE_JUDGE") {
        return exit(show(&driver::judged(Path::new(&dir))));
    }
    let number = |name| env::var(name).ok().map(|text| text.parse().expect(name));
    let seconds = number("TORTURE_SECONDS").unwrap_or(SECONDS);
    let seed = number("TORTURE_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("TORTURE_SEED={seed} TORTURE_SECONDS={seconds}");
    let class = env::var("TORTURE_CLASS");
    let phases = match class.as_deref() {
        Ok("safe") => vec![(Class::Safe, seconds)],
        Ok("unsafe") => vec![(Class::Unsafe, seconds)],
        _ => vec![
            (Class::Safe, seconds - seconds / 4),
            (Class::Unsafe, seconds / 4),
        ],
    };
    let passed = phases
        .into_iter()
        .map(|(class, seconds)| phase(class, seed, Duration::from_secs(seconds)))
        // Both are run, whatever the first one shows.
        .filter(|passed| !passed)
        .count()
        == 0;
    exit(passed)
}

fn exit(passed: bool) -> ExitCode {
    if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Whether the arguments, which are those of libtest, name this program.
fn is_wanted() -> bool {
    let args: Vec<_> = env::args().skip(1).collect();
    let names: Vec<_> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let is_named = names.iter().any(|name| "torture".contains(name.as_str()));
    !args.iter().any(|arg| arg == "--list") && (names.is_empty() || is_named)
}

fn phase(class: Class, seed: u64, time: Duration) -> bool {
    let dir = tempfile::Builder::new()
        .prefix("torture-")
        .tempdir()
        .expect("make a directory")
        // It is removed when all is well.
        .keep();
    println!(
        "\n{} faults for {time:?}, in {}",
        class.name(),
        dir.display()
    );
    if show(&driver::run(class, &dir, seed, time)) {
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
