//! What the clock does.

use std::time::Instant;

use super::*;

#[test]
fn longest_hold_and_shortest_time_go_by_the_clock() {
    let fake = Fake::new();
    let locker = fake.builder().ttl(TTL).max_hold(20 * SECOND).build();
    let locker = locker.expect("it is valid");
    let guard = lock(&locker);
    fake.advance(20 * SECOND);
    assert_held(&guard);
    fake.advance(TTL);
    assert_lost(&guard, LostReason::Expired);

    let guard = lock(&locker);
    guard.at_least_for(60 * SECOND);
    fake.advance(SECOND);
    guard.unlock().expect("it is held");
    fake.advance(58 * SECOND);
    assert_taken(&locker);
    fake.advance(SECOND);
    assert!(!lock(&locker).was_abandoned());
}

#[test]
fn timed_calls_end_with_their_timeout() {
    let fake = Fake::new();
    // One waits on the server, the other behind the holder of its own locker, and the last for more than one name.
    let (own, guard) = (fake.locker(), lock(&fake.locker()));
    let second = own.try_lock("b").expect("it answers");
    type Wait = fn(&Locker) -> Result<Option<LockGuard>>;
    let waits: [Wait; 4] = [
        |it| it.try_lock_for("a", 5 * SECOND),
        |it| it.try_lock_for("b", 5 * SECOND),
        |it| it.try_lock_all_for(&["a", "c"], 5 * SECOND),
        |it| {
            it.semaphore("a", 2)?
                .try_acquire_until(Instant::now() + 5 * SECOND)
        },
    ];
    let waiters = waits.map(|wait| {
        let own = own.clone();
        thread::spawn(move || wait(&own))
    });
    fake.await_waiters("a", 3);
    fake.await_waiters("b", 1);
    fake.advance(4 * SECOND);
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    fake.advance(SECOND);
    for waiter in waiters {
        let ended = waiter.join().expect("no panic");
        assert!(ended.expect("it answers").is_none());
    }
    assert_held(&guard);
    drop((guard, second));
    assert_eq!(own.list("").expect("it can").count(), 0);
}
