//! The server has released a lock, and its answer doesn't arrive.

use std::thread;

use crosslock::{Error, Locker, LostReason};

use super::lost_replies::server_with_proxy;
use super::*;
use support::{Fault, wait_until};

#[test]
fn unlock_whose_reply_is_lost_is_ok() {
    let (server, proxy) = server_with_proxy();
    let locker = open(&proxy.url());
    let guard = held(&locker);
    proxy.lose_next_reply(&digest(RELEASE_SCRIPT), true);
    guard.unlock().unwrap();
    assert_eq!(proxy.lost_replies(), 1);
    assert_released(&server);
    drop(locker);
    assert_no_clients(&server);
}

#[test]
fn unlock_whose_reply_is_swallowed_is_ok_in_time() {
    let (server, proxy) = server_with_proxy();
    let locker = Locker::builder(&proxy.url())
        .io_timeout(LONG)
        .build()
        .unwrap();
    let guard = held(&locker);
    proxy.lose_next_reply(&digest(RELEASE_SCRIPT), false);
    within(RELEASE, || guard.unlock()).unwrap();
    assert_eq!(proxy.lost_replies(), 1);
    assert_released(&server);
}

#[test]
fn unlock_whose_second_answer_comes_after_the_end_of_the_lease_is_lost() {
    let (server, proxy) = server_with_proxy();
    // Half of a release's time, after which it is asked again, is longer.
    let builder = Locker::builder(&proxy.url()).ttl(millis(150));
    let (locker, other) = (builder.renew(false).build().unwrap(), open(&server.url()));
    for (nth, reads) in [(1, true), (2, false)] {
        let guard = if reads {
            locker.read(NAME).unwrap()
        } else {
            held(&locker)
        };
        proxy.lose_next_reply(&digest(RELEASE_SCRIPT), false);
        let error = thread::scope(|scope| {
            let release = scope.spawn(|| within(RELEASE, || guard.unlock()));
            wait_until("a lost reply", PATIENCE, || proxy.lost_replies() == nth);
            // From now on the counter doesn't tell who released.
            other.lock(NAME).unwrap().unlock().unwrap();
            release.join().unwrap().unwrap_err()
        });
        // It may have run out, and the other may have come before it was released.
        let Error::Lost { reason, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(reason, LostReason::Expired);
        proxy.set(Fault::None);
    }
}

#[test]
fn unlock_none_of_whose_replies_arrives_ends_in_time_and_frees_the_lock() {
    let (server, proxy) = server_with_proxy();
    for then_close in [true, false] {
        proxy.set(Fault::None);
        let locker = Locker::builder(&proxy.url())
            .io_timeout(LONG)
            .build()
            .unwrap();
        let guard = held(&locker);
        proxy.set(Fault::LoseReply { then_close });
        let error = within(RELEASE, || guard.unlock()).unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        assert_released(&server);
    }
}

/// While the first reply is swallowed, a waiter takes the lock; then the release is repeated.
fn release_with_a_waiter_in_between(close: bool) {
    let (server, proxy) = server_with_proxy();
    let locker = open(&proxy.url());
    let guard = held(&locker);
    let token = guard.fencing_token();
    let waiting = open(&server.url());
    proxy.lose_next_reply(&digest(RELEASE_SCRIPT), false);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| waiting.lock(NAME).unwrap());
        wait_for_line(&server, 1);
        let release = scope.spawn(|| within(RELEASE, || guard.unlock()));
        let next = waiter.join().unwrap();
        if close {
            // Ends the connection of the swallowed reply.
            proxy.set(Fault::None);
        }
        assert!(next.fencing_token() > token);
        assert!(!next.was_abandoned());
        let owner = server.get(LOCK);
        // A server that lost its data before would answer the same.
        let error = release.join().unwrap().unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        assert_eq!(server.get(LOCK), owner, "nothing was taken from the next");
        next.verify().unwrap();
        next.unlock().unwrap();
    });
    assert_eq!(proxy.lost_replies(), 1);
    assert_released(&server);
}

#[test]
fn unlock_repeated_after_a_timeout_takes_nothing_from_the_next_holder() {
    release_with_a_waiter_in_between(false);
}

#[test]
fn unlock_repeated_after_a_lost_connection_takes_nothing_from_the_next_holder() {
    release_with_a_waiter_in_between(true);
}

#[test]
fn dropped_guard_whose_reply_is_lost_is_released() {
    let (server, proxy) = server_with_proxy();
    for then_close in [true, false] {
        let guard = held(&open(&proxy.url()));
        proxy.lose_next_reply(&digest(RELEASE_SCRIPT), then_close);
        within(RELEASE, || drop(guard));
        assert_released(&server);
    }
    assert_eq!(proxy.lost_replies(), 2);
    assert_no_clients(&server);
}
