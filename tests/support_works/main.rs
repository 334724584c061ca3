//! The tests' own tools do what no other test would show: processes end with those that started them, and only a late
//! machine is excused.

mod by_hand;
mod ends;
mod stopwatch;

use std::fs;
use std::time::Duration;

use support::RedisServer;

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn is_running(pid: u32) -> bool {
    // A dead process stays in the table until whoever inherited it reaps it.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}
