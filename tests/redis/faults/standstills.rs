//! Servers that stand still.

use crosslock::{Error, Locker, LostReason};

use super::*;
use support::{RedisServer, wait_until};

#[test]
fn guard_survives_a_server_that_stands_still_for_less_than_the_ttl() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url())
        .ttl(millis(6_000))
        .renew_every(millis(100));
    let locker = builder.io_timeout(millis(200)).build().unwrap();
    let guard = held(&locker);
    wait_for_renewal(&guard);
    server.stop();
    let left = guard.remaining();
    // Longer than any renewal waits for its answer.
    wait_until("time to pass", PATIENCE, || {
        guard.remaining() + millis(500) < left
    });
    server.cont();
    wait_for_renewal(&guard);
    guard.verify().unwrap();
    guard.unlock().unwrap();
    assert_released(&server);
    drop(locker);
    assert_no_clients(&server);
}

#[test]
fn guard_is_lost_when_the_server_stands_still_for_longer_than_the_ttl() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).ttl(millis(800));
    let locker = builder.renew_every(millis(200)).build().unwrap();
    let guard = held(&locker);
    server.stop();
    let (watch, left) = (Stopwatch::start(), guard.remaining());
    let lost = guard.lost().recv_timeout(PATIENCE).unwrap();
    watch.assert_within(left);
    assert_eq!(lost.reason, LostReason::Expired);
    assert!(!guard.is_held());
    let error = guard.verify().unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    server.cont();
    let other = open(&server.url());
    let next = within(millis(1_000), || other.lock(NAME)).unwrap();
    assert!(next.fencing_token() > guard.fencing_token());
    let error = guard.unlock().unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    next.verify().unwrap();
    next.unlock().unwrap();
    assert_released(&server);
    drop((locker, other));
    assert_no_clients(&server);
}

#[test]
fn guard_is_not_held_any_more_before_the_server_lets_another_in() {
    let server = RedisServer::start();
    let builder = || Locker::builder(&server.url());
    let locker = builder().ttl(millis(500)).renew(false).build().unwrap();
    let other = builder()
        .backoff(millis(1), millis(1), 0.0)
        .build()
        .unwrap();
    for _ in 0..3 {
        let guard = held(&locker);
        let next = other.lock(NAME).unwrap();
        assert!(!guard.is_held());
        assert!(next.was_abandoned());
        assert!(next.fencing_token() > guard.fencing_token());
        next.unlock().unwrap();
    }
}

#[test]
fn calls_end_in_time_while_the_server_stands_still() {
    let server = RedisServer::start();
    let locker = Locker::builder(&server.url())
        .ttl(millis(2_000))
        .io_timeout(LONG)
        .connect_timeout(LONG)
        .build()
        .unwrap();
    let (one, two) = (held(&locker), locker.lock("m").unwrap());
    server.stop();
    within(millis(200), || locker.try_lock_for("free", millis(100))).unwrap_err();
    within(RELEASE, || one.unlock()).unwrap_err();
    within(RELEASE, || drop(two));
    server.cont();
    // What was sent is carried out now, and ends with its ttl at the latest.
    wait_until("all to be carried out", PATIENCE, || {
        locker.try_lock("free").unwrap().is_some()
    });
    assert_every_key_expires(&server);
    drop(locker);
    assert_no_clients(&server);
}

/// The server stands still for longer than any waiter has announced, and for less than their ttl.
#[test]
fn standstill_keeps_the_order_of_waiters() {
    for ttl in [3, 10].map(Duration::from_secs).repeat(order::rounds()) {
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
