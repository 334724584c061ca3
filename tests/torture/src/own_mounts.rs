//! Mounts that nobody else sees, and that end with this process, whatever way it ends.

use std::env;
use std::process::Command;

use rustix::process::{Signal, set_parent_process_death_signal};

const OWN: &str = "TORTURE_OWN_MOUNTS";

/// Whether this process has its own.
pub(crate) fn are_own() -> bool {
    env::var_os(OWN).is_some()
}

/// Ends this process with the one that has it run, if that gave it its own.
pub(crate) fn end_with_parent() {
    if are_own() {
        set_parent_process_death_signal(Some(Signal::KILL)).expect("set the parent-death signal");
    }
}

/// What runs this program again with mounts of its own; `None` if this user may have none.
pub(crate) fn again() -> Option<Command> {
    if are_own() {
        return None;
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.arg("--mount");
        command
    };
    let may = unshare()
        .args(["mount", "-t", "tmpfs", "none", "/tmp"])
        .output();
    if !may.is_ok_and(|output| output.status.success()) {
        return None;
    }
    let mut command = unshare();
    command
        .arg(env::current_exe().ok()?)
        .args(env::args_os().skip(1))
        .env(OWN, "");
    Some(command)
}
