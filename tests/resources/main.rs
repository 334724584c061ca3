//! What locks cost: threads, sockets, memory and keys; and that nothing of it stays behind.
//!
//! Whatever is counted in a process is counted in one of its own.

#![cfg(all(target_os = "linux", feature = "redis"))]

use std::thread;
use std::time::{Duration, Instant};

use support::puppet::URL;
use support::{Child, Fault, Proxy, RedisServer, Stopwatch, wait_until};

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

const DAY_MS: i64 = 24 * 3600 * 1000;

/// As many as the helper takes.
const LOCKS: usize = 1000;
const TTL: Duration = Duration::from_secs(3);
/// A lock that has no more milliseconds left than this is renewed late: it is due with 2000 left.
const LATE: i64 = 1000;

/// The smallest time to live of all locks.
fn smallest_pttl(connection: &mut redis::Connection) -> i64 {
    let mut pipeline = redis::pipe();
    for n in 0..LOCKS {
        pipeline.cmd("PTTL").arg(format!("{{crosslock:{n}}}"));
    }
    let left: Vec<i64> = pipeline.query(connection).unwrap();
    assert_eq!(left.len(), LOCKS);
    left.into_iter().min().unwrap()
}

/// Returns the smallest time to live that any of the locks has had for so long, at most until one is renewed late.
fn smallest_pttl_during(server: &RedisServer, during: Duration) -> i64 {
    let mut connection = server.connection();
    let end = Instant::now() + during;
    let mut smallest = i64::MAX;
    // All that was ever seen, and at once: -2 is a lock that is gone.
    while Instant::now() < end && smallest >= LATE {
        smallest = smallest.min(smallest_pttl(&mut connection));
        thread::sleep(Duration::from_millis(10));
    }
    smallest
}

fn assert_only_counters_are_left(server: &RedisServer) {
    let keys = server.keys();
    assert_eq!(keys.len(), LOCKS);
    for key in keys {
        assert!(key.ends_with("}:fence"), "{key}");
        let left = server.pttl(&key);
        assert!(0 < left && left <= DAY_MS, "{key} lives for {left} ms");
    }
}

/// The helper in this role, with its locks at this URL.
fn start(role: &str, url: &str) -> Child {
    Child::spawn(role, &[(URL, url)])
}

/// Waits until it has ended with nothing left behind, as it asserts itself.
fn assert_ends(mut child: Child) {
    assert!(child.wait(PATIENCE).success());
}

#[test]
fn thousand_locks_are_held_for_several_ttls_and_leave_nothing_behind() {
    let server = RedisServer::start();
    let mut child = start("holds many locks", &server.url());
    child.wait_for("holds", PATIENCE);

    let watch = Stopwatch::start();
    let smallest = smallest_pttl_during(&server, 3 * TTL);
    child.tell("check");
    let lost = child.wait_for("lost", PATIENCE);
    if smallest < LATE || lost != "0 0" {
        let found = format!("renewed with only {smallest} of 3000 ms left, and lost: {lost}");
        return watch.assert_late(Duration::from_secs(1), TTL, found);
    }
    drop(watch);
    let resident: u64 = child.wait_for("resident", PATIENCE).parse().unwrap();
    assert_eq!(
        child.wait_for("renewers", PATIENCE),
        LOCKS.to_string(),
        "one for each guard"
    );
    assert!((1 << 20..64 << 20).contains(&resident), "{resident} bytes");

    child.tell("drop");
    child.wait_for("clean", PATIENCE);
    wait_until("the connections to be closed", PATIENCE, || {
        server.connected_clients() == 0
    });
    assert_only_counters_are_left(&server);
    child.hang_up();
    assert!(child.wait(PATIENCE).success());
}

#[test]
fn locks_in_a_loop_share_one_renewal_thread() {
    let server = RedisServer::start();
    let mut child = start("counts the threads of a loop", &server.url());
    let most: usize = child.wait_for("most", PATIENCE).parse().unwrap();
    assert!((1..=2).contains(&most), "{most} threads");
    assert_ends(child);
}

#[cfg(feature = "file")]
#[test]
fn guard_of_a_file_has_a_thread_that_looks_and_leaves_nothing_open() {
    assert_ends(Child::spawn("holds a file", &[]));
}

#[test]
fn guard_that_is_dropped_while_a_renewal_hangs_leaves_no_thread() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let mut child = start("drops while a renewal hangs", &proxy.url());
    child.wait_for("holds", PATIENCE);
    proxy.set(Fault::BlackHole);
    let before = proxy.requests();
    wait_until("a renewal", PATIENCE, || proxy.requests() > before);
    child.tell("drop");
    assert_ends(child);
}

#[test]
fn lost_guards_leave_nothing_behind() {
    let server = RedisServer::start();
    assert_ends(start("loses its guards", &server.url()));
    let keys = server.keys();
    assert!(keys.iter().all(|key| key.ends_with(":fence")), "{keys:?}");
    wait_until("the connections to be closed", PATIENCE, || {
        server.connected_clients() == 0
    });
}
