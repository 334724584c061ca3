//! The threads of one process, of which one has the lock and may lose it.

use super::*;
use support::{Proxy, RedisServer};

#[test]
fn lock_that_this_process_holds_is_looked_at_without_the_server() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let lock = Locker::builder(&proxy.url()).ttl(LONG).build().unwrap();
    let guard = lock.lock("a").unwrap();
    let before = proxy.requests();
    for _ in 0..100 {
        assert!(lock.try_lock("a").unwrap().is_none());
    }
    for _ in 0..10 {
        assert!(lock.try_lock_for("a", millis(3)).unwrap().is_none());
    }
    let threads = queued(&lock, "a", 4);
    assert!(lock.clone().try_lock("a").unwrap().is_none());
    assert_eq!(proxy.requests(), before);
    drop(guard);
    threads.iter().for_each(|thread| drop(thread.result()));
    assert_nothing_left(&server);
    assert_eq!(inboxes(&server), 0);
}
