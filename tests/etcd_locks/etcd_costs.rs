//! How many requests calls take.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use support::{Etcd, wait_until};

use crate::{LONG, PATIENCE, TTL, await_places, take, wait_for, with};

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

/// Each would read all of the line.
#[test]
fn waiters_read_nothing_while_nothing_changes() {
    const WAITERS: usize = 8;
    let server = Etcd::start();
    let guard = take(&with(&server, |builder| builder.ttl(LONG)));
    let kept = || server.requests("\"LeaseKeepAlive\"");
    let await_kept = |more: usize| {
        let end = kept() + more as u64;
        wait_until("leases to be kept alive", PATIENCE, || end <= kept());
    };
    thread::scope(|scope| {
        for _ in 0..WAITERS {
            let locker = with(&server, |builder| builder.ttl(TTL));
            scope.spawn(move || wait_for(&locker).unlock().unwrap());
        }
        await_places(&server, WAITERS + 1);
        // All watch by then.
        await_kept(2 * WAITERS);
        let (read, places) = (|| server.requests("\"Txn\""), server.keys(crate::LINE));
        let before = read();
        await_kept(4 * WAITERS);
        assert_eq!(read(), before);
        assert_eq!(server.keys(crate::LINE), places);
        guard.unlock().unwrap();
    });
}

/// Not each of them looks whenever one gives back what it had.
#[test]
fn waiting_for_permits_takes_as_many_requests_however_many_wait() {
    const WAITERS: u32 = 24;
    const PERMITS: u32 = 2;
    let server = Etcd::start();
    let semaphore = |of: &Etcd| {
        let locker = with(of, |builder| builder.ttl(LONG));
        locker.semaphore("n", PERMITS).unwrap()
    };
    let all = semaphore(&server).try_acquire_many(PERMITS).unwrap();
    let requests = || {
        ["KV\"", "Watch\""]
            .map(|of| server.requests(of))
            .iter()
            .sum::<u64>()
    };
    thread::scope(|scope| {
        for _ in 0..WAITERS {
            let semaphore = semaphore(&server);
            scope.spawn(move || {
                let guard = semaphore.try_acquire_for(PATIENCE).unwrap();
                guard.expect("its turn").unlock().unwrap();
            });
        }
        await_places(&server, 1 + usize::try_from(WAITERS).unwrap());
        let before = requests();
        drop(all);
        wait_until("all to be served", PATIENCE, || server.keys("").is_empty());
        let each = (requests() - before) as f64 / f64::from(WAITERS);
        assert!(each <= 8.0, "{each} requests for each");
    });
}
