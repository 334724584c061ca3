//! Whatever breaks between us and a server: the right outcome, within its bound, and nothing is left behind.

#![cfg(feature = "redis")]

mod addresses;
mod busy;
mod channels;
mod contents;
mod diagnosis;
mod late_requests;
mod refusals;
mod rights;
mod roles;
mod tls;

use std::time::{Duration, Instant};

use crosslock::{LockGuard, Locker};
use support::scripts::{ACQUIRE, RELEASE as RELEASE_SCRIPT, RENEW, digest, whole};
use support::{RedisServer, shown, wait_until, within};

/// The lock of most tests, and where it is.
const NAME: &str = "n";
const LOCK: &str = "{crosslock:n}";
const FENCE: &str = "{crosslock:n}:fence";
const QUEUE: &str = "{crosslock:n}:queue";
const WAITERS: &str = "{crosslock:n}:waiters";

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// A timeout that shows when a bound is missing.
const LONG: Duration = Duration::from_secs(10);

const fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn open(url: &str) -> Locker {
    Locker::open(url).expect("open")
}

#[track_caller]
fn held(locker: &Locker) -> LockGuard {
    locker
        .try_lock(NAME)
        .expect("try_lock")
        .expect("it is free")
}

/// Whether it is a Redis before 7.0.
fn is_old(server: &RedisServer) -> bool {
    let version = server.info("redis_version").expect("a version");
    version.starts_with("6.")
}

/// Makes the server know the scripts, so that the first EVALSHA of each is the one that counts.
fn load_scripts(server: &RedisServer) {
    for code in [ACQUIRE, RENEW, RELEASE_SCRIPT] {
        server.query::<()>(&["SCRIPT", "LOAD", &whole(code)]);
    }
}

/// Waits until so many lockers stand in the lock's line.
#[track_caller]
fn wait_for_line(server: &RedisServer, length: u64) {
    wait_until("the line", PATIENCE, || {
        server.query::<u64>(&["LLEN", QUEUE]) == length
    });
}

/// Waits until somebody in the lock's line has an inbox.
#[track_caller]
fn wait_for_inbox(server: &RedisServer) {
    wait_until("an inbox", PATIENCE, || {
        let waiters: Vec<String> = server.query(&["HVALS", WAITERS]);
        waiters
            .iter()
            .any(|waiter| waiter.contains(" crosslock:inbox:"))
    });
}

/// The lock is free, and its counter tells that it was released.
#[track_caller]
fn assert_released(server: &RedisServer) {
    let left: u64 = server.query(&["EXISTS", LOCK, QUEUE, WAITERS]);
    assert_eq!(left, 0, "somebody has it or waits");
    let counter = server.counter(FENCE).expect("a counter");
    assert_eq!(counter % 2, 0, "{counter} after a release");
}

/// No connection is left of lockers that are gone.
#[track_caller]
fn assert_no_clients(server: &RedisServer) {
    wait_until("our connections to go", PATIENCE, || {
        server.connected_clients() == 0
    });
}

/// A locker on an idle machine can take, use and release the lock.
#[track_caller]
fn assert_works(locker: &Locker) {
    let guard = locker.lock(NAME).expect("lock");
    guard.verify().expect("verify");
    guard.unlock().expect("unlock");
}

/// Waits until the guard's lease lasts for longer than it does now.
#[track_caller]
fn wait_for_renewal(guard: &LockGuard) {
    let end = Instant::now() + guard.remaining();
    wait_until("a renewal", PATIENCE, || {
        assert!(guard.is_held(), "lost instead of renewed");
        Instant::now() + guard.remaining() > end + millis(1)
    });
}
