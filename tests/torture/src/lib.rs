//! The torture program, and the checker that judges what it has written down.

pub mod checker;
mod driver;
mod faults;
pub mod history;
mod servers;
mod worker;

pub use servers::Topology;
pub use worker::run as run_worker;

use std::env;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How many seconds a run fires faults where nothing else is asked for.
const SECONDS: &str = "4";
const SHOWN: usize = 20;

/// Runs faults against locks there, and judges what was written down. `program` is that of the workers.
pub fn torture(topology: Topology, program: &Path) {
    // Each run wants the whole machine.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let seconds = env::var("TORTURE_SECONDS").unwrap_or_else(|_| SECONDS.to_owned());
    let time = Duration::from_secs(seconds.parse().expect("a number of seconds"));
    let dir = tempfile::Builder::new().prefix("torture-").tempdir();
    // It is removed when all is well.
    let dir = dir.expect("make a directory").keep();
    println!("in {}", dir.display());
    let violations = checker::judge(&driver::run(topology, &dir, program, time));
    for violation in violations.iter().take(SHOWN) {
        println!("{violation}");
    }
    assert!(
        violations.is_empty(),
        "rules were broken {} times",
        violations.len()
    );
    // What can't be removed is left to the system.
    let _ = fs::remove_dir_all(&dir);
}
