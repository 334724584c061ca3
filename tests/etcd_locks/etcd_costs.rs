//! How many requests calls take.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use support::Etcd;

use crate::{LONG, take, wait_for, with};

#[test]
fn lock_that_is_free_takes_one_request_and_its_release_another() {
    const CYCLES: u64 = 50;
    let server = Etcd::setup().proxies().start();
    let [locker, other] = [(); 2].map(|()| with(&server, |builder| builder.ttl(LONG)));
    take(&locker).unlock().unwrap();
    let before = server.proxy().requests();
    for _ in 0..CYCLES {
        take(&locker).unlock().unwrap();
    }
    assert_eq!(server.proxy().requests() - before, 2 * CYCLES);
    let before = server.proxy().requests();
    for _ in 0..CYCLES {
        locker.lock_all(&["a", "b", "c"]).unwrap().unlock().unwrap();
        locker.read("n").unwrap().unlock().unwrap();
    }
    assert_eq!(server.proxy().requests() - before, 4 * CYCLES);
    let _guard = take(&locker);
    assert!(other.try_lock("n").unwrap().is_none());
    let before = server.proxy().requests();
    for _ in 0..CYCLES {
        assert!(other.try_lock("n").unwrap().is_none());
    }
    assert_eq!(server.proxy().requests() - before, CYCLES);
}

/// To stand in line, to watch, to go in and to release; and a look, if anybody has written before the watch began.
/// etcd's own recipe takes a put, a look, a watch, another look, and a delete.
#[test]
fn waiter_takes_five_requests_at_most() {
    const THREADS: u64 = 4;
    const EACH: u64 = 25;
    let server = Etcd::setup().proxies().start();
    // Those of other lockers don't hand over to one another.
    let one = |_| with(&server, |builder| builder.ttl(LONG));
    let lockers: Vec<_> = (0..THREADS).map(one).collect();
    lockers.iter().for_each(|one| take(one).unlock().unwrap());
    let before = server.proxy().requests();
    let inside = AtomicU64::new(0);
    thread::scope(|scope| {
        for locker in &lockers {
            let inside = &inside;
            scope.spawn(move || {
                for _ in 0..EACH {
                    let guard = wait_for(locker);
                    inside.fetch_add(1, Relaxed);
                    guard.unlock().unwrap();
                }
            });
        }
    });
    let requests = server.proxy().requests() - before;
    let each = requests as f64 / (THREADS * EACH) as f64;
    assert!(each <= 5.2, "{each} requests for each time");
}
