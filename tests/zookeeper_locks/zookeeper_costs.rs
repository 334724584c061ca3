//! What calls cost, counted in requests.

use std::time::Duration;

use crosslock::Locker;
use support::{ZooKeeper, wait_until};

use crate::PATIENCE;

/// That of servers as they come.
const TICK: Duration = Duration::from_secs(2);
/// That of lockers as they come.
const TTL: Duration = Duration::from_secs(10);

/// What is known of a session that beats in time gets no newer because it is asked for.
#[test]
fn lock_of_a_session_that_is_no_longer_new_asks_for_no_proof() {
    const LOCKS: u64 = 20;
    let server = ZooKeeper::setup().tick(TICK).proxies().start();
    let lock = Locker::open(&server.url_at("locks")).unwrap();
    wait_until("the proof to be old", PATIENCE, || {
        let guard = lock.lock("a").unwrap();
        guard.remaining() < TTL * 2 / 3 - Duration::from_millis(300)
    });
    let before = server.proxy().requests();
    for _ in 0..LOCKS {
        lock.lock("a").unwrap().unlock().unwrap();
    }
    // A node with `held`, the list, and the watch; then one transaction. Besides, the session may beat.
    let requests = server.proxy().requests() - before;
    assert!(requests < 4 * LOCKS + LOCKS / 2, "{requests}");
}
