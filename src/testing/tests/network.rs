//! What outages and delays do.

use crossbeam_channel::{RecvTimeoutError, Sender};

use super::*;

#[test]
fn short_outage_is_survived_and_a_long_one_is_not() {
    let fake = Fake::new();
    let guard = lock(&fake.builder().ttl(TTL).build().expect("it is valid"));
    for _ in 0..20 {
        fake.set_outage(true);
        fake.advance(TTL / 2);
        fake.set_outage(false);
        fake.advance(TTL / 2);
        assert_held(&guard);
    }
    fake.set_outage(true);
    fake.advance(TTL);
    assert_lost(&guard, LostReason::Expired);
}

#[test]
fn each_request_fails_in_an_outage() {
    let fake = Fake::new();
    let locker = fake.locker();
    let guard = locker.lock("b").expect("it answers");
    fake.set_outage(true);
    let results = [
        locker.try_lock("a").map(drop),
        locker.try_lock_all(&["a", "b"]).map(drop),
        locker.inspect("a").map(drop),
        locker.break_lock("a").map(drop),
        guard.verify(),
        guard.unlock(),
    ];
    for result in results {
        assert_unavailable(&result);
    }
    let names: Result<Vec<_>> = locker.list("").and_then(Iterator::collect);
    assert_unavailable(&names);
}

#[test]
fn waiter_goes_on_after_an_outage() {
    let fake = Fake::new();
    let locker = fake.locker();
    let guard = lock(&locker);
    let other = fake.locker();
    let (tell, told) = bounded(1);
    let waiter = thread::spawn(move || tell.send(other.lock("a")).is_ok());
    fake.await_waiters("a", 1);
    fake.set_outage(true);
    drop(guard);
    fake.advance(SECOND);
    assert!(told.is_empty());
    fake.set_outage(false);
    assert!(told.recv().expect("it comes").is_ok());
    assert!(waiter.join().expect("no panic"));
}

#[test]
fn late_answer_leaves_less_of_the_lease() {
    let fake = Fake::new();
    let locker = fake.builder().ttl(TTL).build().expect("it is valid");
    let prompt = locker.lock("b").expect("it answers").remaining();
    fake.delay(SECOND);
    let guard = lock(&locker);
    assert_eq!(fake.elapsed(), SECOND);
    assert_eq!(guard.remaining(), prompt - SECOND);
    guard.verify().expect("it is held");
    assert_eq!(fake.elapsed(), 2 * SECOND);
    // Renewals are in time, and move no clock.
    fake.advance(10 * TTL);
    assert_eq!(fake.elapsed(), 2 * SECOND + 10 * TTL);
    assert_held(&guard);
    guard.unlock().expect("it is held");
    assert_eq!(fake.elapsed(), 3 * SECOND + 10 * TTL);
}

#[test]
fn answer_that_is_too_late_fails_although_the_request_was_done() {
    let fake = Fake::new();
    let locker = fake.builder().ttl(TTL).build().expect("it is valid");
    fake.delay(2 * SECOND);
    let failed = locker.try_lock("a");
    assert_unavailable(&failed);
    assert_eq!(fake.elapsed(), 2 * SECOND);
    fake.delay(Duration::ZERO);
    // It was taken, and released when that was possible.
    assert!(!lock(&locker).was_abandoned());

    let guard = lock(&locker);
    fake.delay(2 * SECOND);
    let failed = guard.unlock();
    assert_unavailable(&failed);
    fake.delay(Duration::ZERO);
    assert!(!lock(&locker).was_abandoned());
}

#[test]
fn renewals_that_come_too_late_lose_the_lease() {
    let fake = Fake::new();
    let locker = fake.builder().ttl(SECOND).build().expect("it is valid");
    let guard = lock(&locker);
    fake.delay(SECOND / 2);
    fake.advance(SECOND);
    assert_lost(&guard, LostReason::Expired);
}

/// It takes as long as that.
#[test]
fn call_that_waits_in_an_outage_without_an_end_panics() {
    let fake = Fake::new();
    fake.set_outage(true);
    let locker = fake.locker();
    let (tell, told) = bounded(1);
    let waiter = thread::spawn(move || {
        // Dropped when this ends.
        let _tell: Sender<()> = tell;
        locker.lock("forgotten").is_ok()
    });
    let ended = told.recv_timeout(Duration::from_secs(60));
    assert_eq!(ended, Err(RecvTimeoutError::Disconnected), "it hangs");
    let panic = waiter.join().expect_err("it panics");
    let text = panic.downcast_ref::<String>().expect("it is a text");
    assert!(text.contains("\"forgotten\""), "{text}");
}
