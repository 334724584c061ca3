//! Processes that compete.

use std::fs;

use super::*;
use support::{Child, hear, is_child, say};

#[cfg(feature = "redis")]
use support::RedisServer;

#[test]
fn child_increments() {
    if !is_child("exclusion::child_increments") {
        return;
    }
    let lock = locker();
    say("ready");
    hear();
    for _ in 0..arg(COUNT).parse().unwrap() {
        let _guard = lock.lock("counter").unwrap();
        increment(arg(FILE));
    }
}

/// Four processes, each of which takes the lock so often.
pub(super) fn processes_lose_no_increment(url: &str, each: usize) {
    let dir = temp_dir();
    let file = dir.path().join("counter");
    fs::write(&file, "0").unwrap();
    let count = each.to_string();
    let args = [(URL, url), (FILE, file.to_str().unwrap()), (COUNT, &count)];
    let mut children: Vec<_> = (0..4)
        .map(|_| Child::spawn("exclusion::child_increments", &args))
        .collect();
    for child in &mut children {
        child.wait_for("ready", PATIENCE);
    }
    for child in &mut children {
        child.tell("go");
    }
    for child in &mut children {
        // How long contended acquisitions take depends on the machine.
        assert!(child.wait(10 * PATIENCE).success());
    }
    assert_eq!(fs::read_to_string(file).unwrap(), (4 * each).to_string());
}

#[cfg(feature = "file")]
#[test]
fn processes_lose_no_increment_on_file() {
    let dir = temp_dir();
    processes_lose_no_increment(&file_url(&dir), 500);
}

#[cfg(feature = "redis")]
#[test]
fn processes_lose_no_increment_on_redis() {
    processes_lose_no_increment(&RedisServer::start().url(), 500);
}
