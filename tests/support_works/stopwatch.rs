//! Bounds on time: broken by what is slow, and not by a machine that has no time for it.

use std::thread;

use super::*;
use support::{Child, Stopwatch};

const fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

#[test]
fn bound_of_a_process_that_stands_still_is_excused() {
    let mut child = Child::spawn("measures", &[]);
    child.wait_for("measures", PATIENCE);
    child.stop();
    thread::sleep(millis(600));
    child.cont();
    child.tell("stop");
    let elapsed: u64 = child.wait_for("excused", PATIENCE).parse().unwrap();
    assert!(elapsed >= 600, "{elapsed} ms");
}

#[test]
#[should_panic(expected = "3600s instead of 1s, on a machine that was late by")]
fn bound_is_broken_by_what_takes_long_on_a_machine_that_runs() {
    // No machine was late by a quarter of an hour in so short a time.
    Stopwatch::start().assert_took(Duration::from_secs(3_600), Duration::from_secs(1));
}

#[test]
#[should_panic(expected = "it was lost, on a machine that was late by")]
fn machine_that_runs_explains_nothing() {
    let hour = Duration::from_secs(3_600);
    Stopwatch::start().assert_late(hour, 2 * hour, "it was lost");
}
