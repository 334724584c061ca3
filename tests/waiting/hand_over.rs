//! Leases that threads of one process hand to each other.

use super::*;
use support::{Proxy, RedisServer};

/// Long enough for all that a test does with one lease.
const SLICE: Duration = Duration::from_secs(600);

/// A locker behind a proxy, which counts what it sends.
fn counted(server: &RedisServer, ttl: Duration, hand_over: Duration) -> (Proxy, Locker) {
    let proxy = Proxy::start(server.addr());
    let builder = Locker::builder(&proxy.url()).ttl(ttl);
    let lock = builder.hand_over(hand_over).build().unwrap();
    (proxy, lock)
}

#[test]
fn threads_hand_a_lease_over_without_the_server_or_ask_it_each_time() {
    const THREADS: usize = 6;
    let server = RedisServer::start();
    for (slice, each) in [(SLICE, 0), (Duration::ZERO, 2)] {
        let (proxy, lock) = counted(&server, LONG, slice);
        // The server knows the scripts from now on.
        let guard = lock.lock("a").unwrap();
        guard.verify().unwrap();
        guard.unlock().unwrap();
        let mut guard = lock.lock("a").unwrap();
        let threads = queued(&lock, "a", THREADS);
        let before = proxy.requests();
        for thread in &threads {
            let token = guard.fencing_token();
            guard.unlock().unwrap();
            guard = thread.result();
            assert!(guard.fencing_token() > token);
            assert!(!guard.was_abandoned() && guard.is_held());
            assert!(guard.lost().is_empty());
        }
        let before = before + each * THREADS as u64;
        assert_eq!(proxy.requests(), before);
        guard.verify().unwrap();
        let token = guard.fencing_token();
        guard.unlock().unwrap();
        assert_eq!(proxy.requests(), before + 2);
        assert_nothing_left(&server);
        let next = Locker::open(&server.url()).unwrap().lock("a").unwrap();
        assert!(next.fencing_token() > token && !next.was_abandoned());
    }
}

// A process that dies with a lease that was handed over
