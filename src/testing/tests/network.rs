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
