//! Waiters that have waited for long enough, and releases that meet them.

use super::*;
use support::puppet::Puppet;
use support::{Fault, Proxy, RedisServer, eventually};

#[test]
fn timed_out_waiter_has_left_the_line() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let other = Locker::open(&server.url()).unwrap();
    // The second one has an inbox from the start.
    for _ in 0..2 {
        let timeout = millis(150);
        let watch = Stopwatch::start();
        wait_in_vain(&other, "a", timeout);
        let elapsed = watch.assert_within(timeout + millis(100));
        assert!(elapsed >= timeout, "{elapsed:?}");
        // It has left before it returned, where its last answer came in time.
        wait_until("it to leave", PATIENCE, || server.keys() == [LOCK, FENCE]);
    }
    guard.unlock().unwrap();
    assert_nothing_left(&server);
}

#[test]
fn those_behind_a_waiter_that_gives_up_keep_their_order() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let mut processes = Puppet::start_many(2, &server.url(), LONG);
    processes[0].pass("a");
    wait_for_line(&server, 1);
    let other = Locker::open(&server.url()).unwrap();
    let impatient = calling(&other, |lock| {
        wait_in_vain(lock, "a", millis(400));
        Ok(())
    });
    wait_for_line(&server, 2);
    processes[1].pass("a");
    wait_for_line(&server, 3);
    impatient.result();
    wait_for_line(&server, 2);
    let token = guard.fencing_token();
    guard.unlock().unwrap();
    assert_served_in_order(&mut processes, token, false);
    assert_nothing_left(&server);
}

/// Releases "a" at about the time at which a timed call for it ends: up to 2 ms before, or 3 ms after, by `round`.
/// `meanwhile` comes when the call has begun. Returns whether the call was served.
fn release_about_the_deadline(
    holder: &Locker,
    waiter: &Locker,
    round: u32,
    meanwhile: impl FnOnce(),
) -> bool {
    const TIMEOUT: Duration = millis(12);
    let guard = holder.lock("a").unwrap();
    let begun = now();
    let call = calling(waiter, |lock| lock.try_lock_for("a", TIMEOUT));
    meanwhile();
    let at = begun + TIMEOUT - millis(2) + Duration::from_micros(50) * (round % 100);
    thread::sleep(at.saturating_sub(now()));
    guard.unlock().unwrap();
    let guard = match call.outcome() {
        // Where the machine stands still at that moment, no answer comes in time.
        Ok(None) | Err(Error::Unavailable { .. }) => return false,
        served => served.unwrap().expect("it isn't none"),
    };
    assert!(!guard.was_abandoned());
    guard.verify().unwrap();
    guard.unlock().unwrap();
    true
}

#[test]
fn release_that_meets_a_timeout_serves_the_caller_or_leaves_the_lock_free() {
    let server = RedisServer::start();
    let opened = || Locker::builder(&server.url()).ttl(LONG).build().unwrap();
    let [holder, waiter, third] = [opened(), opened(), opened()];
    let mut served = 0;
    for round in 0..200 {
        served += u32::from(release_about_the_deadline(&holder, &waiter, round, || {}));
        // Less than the ttl for which it would be stuck.
        let guard = third.try_lock_for("a", PATIENCE).unwrap();
        assert!(!guard.expect("nobody has it").was_abandoned());
    }
    report("served of 200 whose timeout met the release", served);
    wait_until_nothing_is_left(&server);
}

/// As above, with another call for the lock, which has no timeout and has to be served: the next in line, or the next
/// thread of the process that gives up.
#[test]
fn release_that_meets_a_timeout_serves_the_next() {
    let server = RedisServer::start();
    let [holder, waiter, other] = [(); 3].map(|()| Locker::open(&server.url()).unwrap());
    for next in [&other, &waiter] {
        for round in 0..100 {
            let mut call = None;
            release_about_the_deadline(&holder, &waiter, round, || call = Some(waiting(next, "a")));
            let guard = call.expect("it was made").result();
            assert!(!guard.was_abandoned());
            guard.unlock().unwrap();
        }
    }
    wait_until_nothing_is_left(&server);
}

#[test]
fn call_whose_last_answer_came_late_leaves_nothing_when_its_locker_is_dropped() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let proxy = Proxy::start(server.addr());
    let lock = Locker::open(&proxy.url()).unwrap();
    // Its inbox is open, so that the next call enters the line at once.
    open_inbox(&server, &lock, 1);
    proxy.set(Fault::Delay(millis(15)));
    wait_in_vain(&lock, "a", millis(20));
    drop(lock);
    wait_for_inboxes(&server, 0);
    let left = eventually(PATIENCE, || server.keys() == [LOCK, FENCE]);
    assert!(left, "{:?}", server.keys());
    guard.unlock().unwrap();
    assert_nothing_left(&server);
}

#[test]
fn waiting_without_end_is_not_ended_by_those_that_give_up() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let other = Locker::builder(&server.url())
        .ttl(millis(300))
        .build()
        .unwrap();
    let patient = waiting(&other, "a");
    wait_for_line(&server, 1);
    for _ in 0..20 {
        assert!(other.try_lock_for("a", millis(5)).unwrap().is_none());
        assert!(other.try_lock("a").unwrap().is_none());
    }
    assert!(!patient.is_over());
    assert_eq!(line(&server).len(), 1);
    guard.unlock().unwrap();
    patient.result().unlock().unwrap();
    assert_nothing_left(&server);
}
