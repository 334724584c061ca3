//! What the clock does.

use std::time::Instant;

use super::*;

#[test]
fn lease_that_is_not_renewed_is_lost_with_its_ttl() {
    let fake = Fake::new();
    let guard = lock(&unrenewed(&fake));
    fake.advance(TTL - SECOND);
    assert_held(&guard);
    fake.advance(SECOND);
    assert_lost(&guard, LostReason::Expired);
    assert!(lock(&fake.locker()).was_abandoned());
}

#[test]
fn clock_that_stands_keeps_a_lock() {
    let fake = Fake::new();
    let ttl = Duration::from_millis(100);
    let locker = fake.builder().ttl(ttl).build().expect("it is valid");
    let guard = lock(&locker);
    let left = guard.remaining();
    thread::sleep(2 * ttl);
    assert_eq!(guard.remaining(), left);
    assert_held(&guard);
}

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

/// What the lock is taken by ends after a ttl: a call that waits for half of it ends before, though the clock moves
/// past both at once.
#[test]
fn timeout_ends_a_wait_that_the_lock_would_end_later() {
    for taken_by in ["a lease of its locker", "a lease of another", "time"] {
        let fake = Fake::new();
        let holder = unrenewed(&fake);
        let guard = lock(&holder);
        let (locker, guard) = match taken_by {
            "time" => {
                guard.at_least_for(TTL);
                guard.unlock().expect("it is held");
                (fake.locker(), None)
            }
            "a lease of another" => (fake.locker(), Some(guard)),
            _ => (holder, Some(guard)),
        };
        let waiter = thread::spawn(move || locker.try_lock_for("a", TTL / 2));
        fake.await_waiters("a", 1);
        fake.advance(2 * TTL);
        let ended = waiter.join().expect("no panic").expect("it answers");
        assert!(ended.is_none(), "it waited for too long: {taken_by}");
        drop(guard);
    }
}

#[test]
fn waiters_get_their_lock_when_it_is_due() {
    let fake = Fake::new();
    let _guard = lock(&unrenewed(&fake));
    let (tell, told) = unbounded();
    let waiters: Vec<_> = (0..3)
        .map(|number| {
            let (locker, tell) = (unrenewed(&fake), tell.clone());
            let waiter = thread::spawn(move || tell.send((number, locker.lock("a"))).is_ok());
            fake.await_waiters("a", number + 1);
            waiter
        })
        .collect();
    // Each loses it after its ttl, to the next.
    fake.advance(3 * TTL + SECOND);
    let guards: Vec<_> = told.iter().take(3).collect();
    for (number, (who, guard)) in guards.iter().enumerate() {
        let guard = guard.as_ref().expect("it has the lock");
        assert_eq!(*who, number);
        assert!(guard.was_abandoned());
        assert_eq!(guard.is_held(), number == 2);
    }
    let seen = fake.locker().inspect("a").expect("it answers");
    assert_eq!(seen.holders[0].held_for, Some(SECOND));
    waiters
        .into_iter()
        .for_each(|it| assert!(it.join().expect("no panic")));
}

#[test]
fn waiter_in_its_own_locker_gets_a_lost_lock_at_its_time() {
    let fake = Fake::new();
    let locker = unrenewed(&fake);
    let _guard = lock(&locker);
    let other = fake.locker();
    let (tell, told) = bounded(1);
    let waiter = thread::spawn(move || tell.send(locker.lock("a")).is_ok());
    fake.await_waiters("a", 1);
    fake.advance(TTL + SECOND);
    let next = told.recv().expect("it comes").expect("it has the lock");
    assert!(next.was_abandoned());
    let held_for = other.inspect("a").expect("it answers").holders[0].held_for;
    assert!(held_for.is_some_and(|held| held >= SECOND), "{held_for:?}");
    assert!(waiter.join().expect("no panic"));
}

#[test]
fn no_thread_is_started_for_a_guard() {
    let (fake, locker) = (Fake::new(), Fake::new().locker());
    let key = fake.key("a").expect("it is valid");
    assert!(locker.core().renewer(&key).is_ok_and(|one| one.is_none()));
}
