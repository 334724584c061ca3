//! A server that stands still.

use std::sync::Mutex;
use std::thread;

use crosslock::Locker;

use super::*;
use support::RedisServer;

/// For longer than any waiter has announced, and for less than their ttl. More wait than there are heartbeats under way
/// at a time.
#[test]
fn standstill_keeps_the_order_of_waiters() {
    for ttl in [3, 10].map(Duration::from_secs) {
        let server = RedisServer::start();
        let open = || {
            let builder = Locker::builder(&server.url()).ttl(ttl);
            builder.outage_timeout(PATIENCE).build().unwrap()
        };
        let served = Mutex::new(Vec::new());
        let guard = held(&open());
        thread::scope(|scope| {
            for number in 0..12 {
                let (locker, served) = (open(), &served);
                scope.spawn(move || {
                    // A lease that the server's failure ends is told by its release.
                    let _guard = locker.lock(NAME).expect("lock");
                    served.lock().expect("nobody panics").push(number);
                });
                wait_for_line(&server, number + 1);
            }
            server.stop();
            thread::sleep(millis(2_600));
            server.cont();
            drop(guard);
        });
        let served = served.into_inner().expect("nobody panics");
        assert!(served.is_sorted(), "{ttl:?}: {served:?}");
    }
}
