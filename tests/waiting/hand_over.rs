//! Leases that threads of one process hand to each other.

use super::*;
use support::{Proxy, RedisServer};

#[test]
fn threads_hand_a_lease_over_without_the_server_or_ask_it_each_time() {
    const THREADS: usize = 6;
    let server = RedisServer::start();
    for (slice, each) in [(2 * LONG, 0), (Duration::ZERO, 2)] {
        let proxy = Proxy::start(server.addr());
        let builder = Locker::builder(&proxy.url()).ttl(LONG);
        let lock = builder.hand_over(slice).build().unwrap();
        // The server knows the scripts from now on.
        let guard = lock.lock("a").unwrap();
        guard.verify().unwrap();
        guard.unlock().unwrap();
        let mut guard = lock.lock("a").unwrap();
        let threads = queued(&lock, "a", THREADS);
        let before = proxy.requests();
        for thread in &threads {
            // Nor does a look at what this process holds ask it.
            assert!(lock.try_lock("a").unwrap().is_none());
            let token = guard.fencing_token();
            guard.unlock().unwrap();
            guard = thread.result();
            assert!(guard.fencing_token() > token);
            assert!(!guard.was_abandoned() && guard.is_held());
        }
        let before = before + each * THREADS as u64;
        assert_eq!(proxy.requests(), before);
        guard.verify().unwrap();
        guard.unlock().unwrap();
        assert_eq!(proxy.requests(), before + 2);
        assert_nothing_left(&server);
    }
}
