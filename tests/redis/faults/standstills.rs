//! Servers that stand still.

use crosslock::Locker;

use super::*;
use support::RedisServer;

/// The server stands still for longer than any waiter has announced, and for less than their ttl.
#[test]
fn standstill_keeps_the_order_of_waiters() {
    for ttl in [3, 10].map(Duration::from_secs) {
        let server = RedisServer::start();
        let open = || {
            let builder = Locker::builder(&server.url()).ttl(ttl);
            builder.outage_timeout(PATIENCE).build().unwrap()
        };
        let fail = |guard| {
            server.stop();
            std::thread::sleep(millis(2_600));
            server.cont();
            drop(guard);
        };
        let wait_for_queue = |length| wait_for_line(&server, length);
        let order = order::order_of_service(NAME, open, wait_for_queue, fail);
        assert_eq!(order, order::in_order(), "{ttl:?}");
    }
}
