//! Two lockers of `memory:` are to each other what two processes are elsewhere.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use super::*;

fn lockers(namespace: &str) -> [Locker; 2] {
    [(), ()].map(|()| {
        let builder = Locker::builder("memory:").namespace(namespace);
        builder.build().unwrap()
    })
}

#[test]
fn release_serves_a_waiter_of_another_locker() {
    let [one, other] = lockers("memory-1");
    let guard = one.lock("a").unwrap();
    let waiter = waiting(&other, "a");
    waiter.wait_until_asleep();
    let token = guard.fencing_token();
    guard.unlock().unwrap();
    let guard = waiter.result();
    assert!(guard.fencing_token() > token && !guard.was_abandoned());
}

#[test]
fn timed_waiter_of_another_locker_ends_in_time() {
    const TIMEOUT: Duration = millis(150);
    let [one, other] = lockers("memory-2");
    let _guard = one.lock("a").unwrap();
    let watch = Stopwatch::start();
    assert!(other.try_lock_for("a", TIMEOUT).unwrap().is_none());
    let elapsed = watch.assert_within(TIMEOUT + millis(100));
    assert!(elapsed >= TIMEOUT, "{elapsed:?}");
}

#[test]
fn another_locker_gets_its_turn_while_threads_hand_over() {
    let [one, other] = lockers("memory-3");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(SeqCst) {
                    drop(one.lock("a").unwrap());
                }
            });
        }
        let turns = (0..50).filter(|_| other.try_lock_for("a", PATIENCE).unwrap().is_some());
        let turns = turns.count();
        done.store(true, SeqCst);
        assert_eq!(turns, 50);
    });
}
