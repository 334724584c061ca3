//! Values, readers and permits on a server: who goes when, what is stored, and what crashes and lost answers leave.

#![cfg(all(feature = "redis", feature = "value"))]

mod commands;
mod late_copies;

use std::time::Duration;

use crosslock::Locker;
use support::{RedisServer, wait_until};

/// The lock of most tests, and where it is.
const NAME: &str = "n";
const LOCK: &str = "{crosslock:n}";
const FENCE: &str = "{crosslock:n}:fence";
const QUEUE: &str = "{crosslock:n}:queue";
const VALUE: &str = "{crosslock:n}:value";

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

const fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn open(server: &RedisServer) -> Locker {
    Locker::open(&server.url()).unwrap()
}

/// Waits until so many stand in the line of those that want the lock exclusively, or permits.
#[track_caller]
fn wait_for_queue(server: &RedisServer, length: u64) {
    wait_for_length(server, QUEUE, length);
}

#[track_caller]
fn wait_for_length(server: &RedisServer, line: &str, length: u64) {
    wait_until(line, PATIENCE, || {
        server.query::<u64>(&["LLEN", line]) == length
    });
}

/// Waits until there is nothing but counters, and the value if there is one.
#[track_caller]
fn assert_nothing_left(server: &RedisServer) {
    wait_until("nothing but counters and the value", PATIENCE, || {
        let keys = server.keys();
        keys.iter()
            .all(|key| key.ends_with(":fence") || key == VALUE)
    });
}
