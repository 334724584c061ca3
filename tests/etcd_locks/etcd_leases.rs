//! Leases at etcd, which one lock after the other uses.

use std::thread;
use std::time::{Duration, Instant};

use support::Etcd;

use crate::{LONG, take, with};

#[test]
fn lock_counts_from_when_its_lease_was_proved() {
    let server = Etcd::start();
    let locker = with(&server, |builder| builder.ttl(LONG));
    let first = take(&locker);
    let remaining = first.remaining();
    let end = Instant::now() + remaining;
    first.unlock().unwrap();
    thread::sleep(Duration::from_millis(500));
    let second = take(&locker);
    let now = Instant::now();
    assert!(now + second.remaining() <= end);
    second.unlock().unwrap();
}
