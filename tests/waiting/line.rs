//! The line of processes, and the hand-off from one to the next.

use super::*;
use support::RedisServer;

/// Who waits for a lock that is kept gets it when the time is over, not with its next heartbeat. What a reader keeps
/// for less than its ttl ends, too.
#[test]
fn kept_lock_that_is_free_again_wakes_who_waits() {
    let server = RedisServer::start();
    let url = server.url();
    type Take = fn(&Locker, &str) -> Result<LockGuard>;
    let takes: [(&str, Take); 3] = [
        ("memory:attack", Locker::lock),
        (&url, Locker::lock),
        (&url, Locker::read),
    ];
    for (url, take) in takes {
        let [holder, other] = [(); 2].map(|()| Locker::builder(url).ttl(LONG).build().unwrap());
        let guard = take(&holder, "a").unwrap();
        guard.at_least_for(millis(1500));
        let pending = waiting(&other, "a");
        wait_until("it to wait", PATIENCE, || {
            holder.inspect("a").unwrap().waiters.len() == 1
        });
        thread::sleep(millis(300));
        guard.unlock().unwrap();
        let got = pending.outcome.recv_timeout(PATIENCE);
        assert!(got.is_ok(), "nobody woke who waits for a lock of {url}");
    }
}
