//! What locks cost in a process, and that nothing of it stays behind.
//!
//! Whatever is counted in a process is counted in one of its own.

#![cfg(target_os = "linux")]

use super::*;
use support::puppet::URL;
use support::{Child, Etcd};

/// As many as the helper takes.
const LOCKS: usize = 100;

#[test]
fn many_locks_are_renewed_and_leave_nothing_behind() {
    let server = Etcd::start();
    let url = server.url();
    let role = "holds and waits";
    let mut child = Child::spawn(role, &[(URL, url.as_str())]);
    child.wait_for("renewed", PATIENCE);
    wait_until("those who wait to leave the line", PATIENCE, || {
        let keys = server.keys("").into_iter();
        keys.filter(|key| key.contains("/w/")).count() == LOCKS
    });
    child.tell("drop");
    child.wait_for("clean", PATIENCE);
    wait_until("the keys to go", PATIENCE, || server.keys("").is_empty());
    child.hang_up();
    assert!(child.wait(PATIENCE).success());
}

#[test]
fn locker_closes_in_time_where_the_server_hangs() {
    let server = Etcd::start();
    let url = server.url();
    let role = "closes without an answer";
    let mut child = Child::spawn(role, &[(URL, url.as_str())]);
    child.wait_for("holds", PATIENCE);
    server.stop();
    child.tell("close");
    assert!(child.wait(PATIENCE).success());
}
