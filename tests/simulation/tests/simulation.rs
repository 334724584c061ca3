//! What of the simulation belongs to every run of the tests: worlds that once failed, a minute of others, lost messages
//! on every engine, and that a seed repeats its world.

use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Each uses all processors.
static ALONE: Mutex<()> = Mutex::new(());

/// What once failed: arguments, and behind `#` what it found.
const FIXED: &str = include_str!("../fixed.txt");

fn simulate(arguments: &[&str]) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new(env!("CARGO_BIN_EXE_simulate"));
    let output = command.args(arguments).output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "simulate {}:\n{told}",
        arguments.join(" ")
    );
    // What passed without doing anything is no proof.
    assert!(told.contains("acquisitions"), "it did nothing: {told}");
}

#[test]
fn worlds_that_once_failed_keep_their_promises() {
    let lines = FIXED
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    let worlds: Vec<&str> = lines
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    assert!(!worlds.is_empty());
    for world in worlds {
        simulate(&world.split_whitespace().collect::<Vec<_>>());
    }
}

/// Always the same, so that what fails here was broken by the change that is tested. `tests/simulate` runs others.
#[test]
fn worlds_of_many_seeds_keep_their_promises() {
    simulate(&["--seconds", "60", "--seeds", "160"]);
}

#[test]
fn world_is_the_same_each_time() {
    simulate(&["--twice", "18"]);
}

#[test]
fn scenes_survive_what_happens_to_each_message() {
    simulate(&["--messages", "--every", "71"]);
}
