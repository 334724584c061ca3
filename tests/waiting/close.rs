//! Lockers that are closed: in time whatever the server does, and nothing stays that could be released.

use crosslock::LostReason;

use super::*;
use support::{Fault, Proxy, RedisServer};

const BOUND: Duration = millis(500);

/// How long a close waits for releases that are under way.
const PATIENT: Duration = millis(400);

/// Returns how long it took.
#[track_caller]
fn close_in_time(lock: &Locker) -> Duration {
    let watch = Stopwatch::start();
    lock.close();
    let took = watch.assert_within(BOUND);
    report("closed", took);
    took
}

fn opened(url: &str) -> Locker {
    Locker::builder(url).ttl(LONG).build().unwrap()
}

fn named(lock: &Locker, count: usize) -> Vec<LockGuard> {
    (0..count)
        .map(|n| lock.lock(&format!("{n}")).unwrap())
        .collect()
}

#[track_caller]
fn assert_closed(guards: &[LockGuard]) {
    for guard in guards {
        assert!(!guard.is_held());
        let lost = guard.lost().try_recv().unwrap();
        assert_eq!(lost.reason, LostReason::Closed);
    }
}

#[track_caller]
fn assert_cancelled<T>(call: &Pending<T>) {
    let outcome = call.outcome().err();
    support::assert_like!(outcome, Some(Error::Cancelled { .. }));
}

#[test]
fn thousand_guards_are_released() {
    let server = RedisServer::start();
    let lock = opened(&server.url());
    let guards = named(&lock, 1_000);
    let watch = Stopwatch::start();
    lock.close();
    // On a machine whose time others use the rest is left to the background.
    watch.assert_within(BOUND);
    assert_closed(&guards);
    wait_until_nothing_is_left(&server);
    drop(guards);
}

#[test]
fn waiters_have_left_the_line_when_it_returns() {
    let server = RedisServer::start();
    let holder = opened(&server.url());
    let guard = holder.lock("a").unwrap();
    let lock = opened(&server.url());
    let waiter = waiting(&lock, "a");
    wait_for_line(&server, 1);
    let held = lock.lock("b").unwrap();
    close_in_time(&lock);
    assert_cancelled(&waiter);
    wait_until("it to leave", PATIENCE, || {
        !server.keys().iter().any(|key| key.ends_with(":queue"))
    });
    assert_closed(&[held]);
    assert!(server.keys().iter().any(|key| key == LOCK));
    guard.unlock().unwrap();
    assert_nothing_left(&server);
}

#[test]
fn server_that_does_not_answer_is_not_waited_for() {
    let server = RedisServer::start();
    let lock = opened(&server.url());
    let guards = named(&lock, 50);
    server.stop();
    let calls: Vec<_> = (0..5).map(|n| waiting(&lock, &format!("w{n}"))).collect();
    calls.iter().for_each(Pending::wait_until_asleep);
    close_in_time(&lock);
    assert_closed(&guards);
    calls.iter().for_each(assert_cancelled);
    let again = Stopwatch::start();
    lock.close();
    again.assert_within(BOUND);
    server.cont();
    // While the locker is there, what couldn't be released is tried again.
    wait_until_nothing_is_left(&server);
    drop((guards, lock));
}

#[test]
fn network_that_swallows_all_is_not_waited_for() {
    let server = RedisServer::start();
    for fault in [Fault::BlackHole, Fault::Refuse] {
        let proxy = Proxy::start(server.addr());
        let lock = opened(&proxy.url());
        let guards = named(&lock, 20);
        proxy.set(fault);
        let call = waiting(&lock, "w");
        close_in_time(&lock);
        assert_closed(&guards);
        assert_cancelled(&call);
        drop((guards, lock));
        server.query::<()>(&["FLUSHALL"]);
    }
}

#[test]
fn release_under_way_is_waited_for() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let lock = opened(&proxy.url());
    let mut unlocked = 0;
    for round in 0..20 {
        let lock = opened(&proxy.url());
        proxy.set(Fault::None);
        let guard = lock.lock("a").unwrap();
        proxy.set(Fault::Delay(millis(20)));
        let unlock = calling(&lock, move |_| guard.unlock());
        thread::sleep(millis(round));
        let took = close_in_time(&lock);
        // It was the guard's own release, or that of the close.
        let keys = server.keys();
        let is_released = !keys.iter().any(|key| key == LOCK);
        assert!(is_released || took >= PATIENT, "{keys:?}");
        match unlock.outcome() {
            Ok(()) => unlocked += 1,
            Err(Error::Lost { reason, .. }) => assert_eq!(reason, LostReason::Closed),
            // On a machine whose time others use its answer may come too late.
            Err(Error::Unavailable { .. }) if took >= PATIENT => {}
            Err(error) => panic!("{error}"),
        }
        wait_until("it to be released", PATIENCE, || {
            !server.keys().iter().any(|key| key == LOCK)
        });
    }
    report("of 20 released by their guards", unlocked);
    drop(lock);
}
