//! The torture program, and the checker that judges what it has written down.

pub mod checker;
mod command;
mod driver;
mod faults;
pub mod history;
mod program;
mod servers;
mod worker;

pub use command::run as run_command;
pub use servers::Topology;
pub use worker::run as run_worker;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use checker::{Violation, judge};
use history::Event;

/// How long a run fires faults where nothing else is asked for.
const SECONDS: u64 = 4;
const SHOWN: usize = 5;

/// Runs faults against locks there, and judges what was written down. `program` is that of workers and of commands.
pub fn torture(topology: Topology, program: &Path) {
    // Each run wants the whole machine.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (seconds, seed) = (
        number("TORTURE_SECONDS", || SECONDS),
        number("TORTURE_SEED", || fastrand::u64(..)),
    );
    let dir = tempfile::Builder::new().prefix("torture-").tempdir();
    // It is removed when all is well.
    let dir = dir.expect("make a directory").keep();
    println!("TORTURE_SEED={seed}, in {}", dir.display());
    let time = Duration::from_secs(seconds);
    let events = driver::run(topology, &dir, program, seed, time);
    assert!(show(&events), "rules were broken");
    // What can't be removed is left to the system.
    let _ = fs::remove_dir_all(&dir);
}

fn number(name: &str, default: impl FnOnce() -> u64) -> u64 {
    let text = env::var(name).ok();
    text.map_or_else(default, |text| text.parse().expect(name))
}

fn show(events: &[Event]) -> bool {
    let violations = judge(events);
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
