//! How long a lock is held, how its end is told, and its fencing tokens.

use std::time::{Duration, Instant};

use crossbeam_channel::RecvTimeoutError;
use crosslock::{Error, LockGuard, Locker, LostReason};

use crate::{PATIENCE, Place};

/// By how much servers' clocks may differ where one takes another's place: a lease is valid for as much less.
pub(crate) const CLOCK_SKEW: Duration = Duration::from_millis(10);

/// It is lost, and says why, in each of its ways.
#[track_caller]
pub(crate) fn assert_lost(guard: &LockGuard, why: LostReason) {
    for outcome in [guard.verify(), guard.check()] {
        let Err(Error::Lost { reason, .. }) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(reason, why);
    }
    assert!(!guard.is_held() && guard.remaining().is_zero());
    let lost = guard.lost().recv_timeout(PATIENCE).unwrap();
    assert_eq!((&*lost.name, lost.reason), (guard.name(), why));
}

#[track_caller]
pub(crate) fn assert_tells_of_its_lock(guard: &LockGuard) {
    assert!(guard.is_held() && guard.remaining() > Duration::ZERO);
    assert!(!guard.was_abandoned());
    guard.check().unwrap();
    guard.verify().unwrap();
    assert!(guard.lost().try_recv().unwrap_err().is_empty());
}

pub(crate) fn every_clone_of_the_channel_learns_of_the_loss(place: &Place) {
    let lock = place.careless();
    let guard = lock.lock("a").unwrap();
    let mut messages = 0;
    for channel in [guard.lost().clone(), guard.lost().clone()] {
        match channel.recv_timeout(PATIENCE) {
            Ok(lost) => messages += usize::from(lost.name == "a"),
            Err(end) => assert_eq!(end, RecvTimeoutError::Disconnected),
        }
    }
    assert_eq!(messages, 1);
}

pub(crate) fn max_hold_ends_renewal(place: &Place) {
    const MAX_HOLD: Duration = Duration::from_millis(500);
    let ttl = place.ttl(Duration::from_millis(300));
    let lock = place.builder().ttl(ttl).max_hold(MAX_HOLD).build().unwrap();
    let begun = Instant::now();
    let guard = lock.lock("a").unwrap();
    guard.wait_lost(PATIENCE).unwrap();
    assert!(begun.elapsed() >= MAX_HOLD, "after {:?}", begun.elapsed());
    assert_lost(&guard, LostReason::Expired);
    let next = place.try_lock_for("a", PATIENCE).unwrap();
    assert!(next.expect("the lease ran out").was_abandoned());
}

pub(crate) fn tokens_are_odd_and_increase_from_holder_to_holder(place: &Place) {
    let (other, clone) = (place.other(), Locker::clone(place));
    let take = |lock: &Locker| {
        let guard = lock.lock("a").unwrap();
        let token = guard.fencing_token();
        assert_eq!(guard.fencing_token(), token);
        assert_eq!(token % 2, 1, "{token}");
        token
    };
    let tokens: Vec<_> = (0..20)
        .flat_map(|_| [take(place), take(&other), take(&clone)])
        .collect();
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
}

pub(crate) fn ticket_of_another_namespace_is_refused_and_still_good(place: &Place) {
    let ticket = place.lock("a").unwrap().into_ticket().expect("a ticket");
    let outcome = place.with_namespace("other").unwrap().adopt(&ticket);
    let Err(Error::InvalidOption { option, reason, .. }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(option, "ticket");
    assert!(reason.contains("namespace"), "{reason}");
    place.adopt(&ticket).unwrap().unlock().unwrap();
}

pub(crate) fn ticket_that_nobody_uses_lasts_for_its_ttl(place: &Place) {
    let ttl = place.ttl(Duration::from_millis(300));
    let lock = place.builder().ttl(ttl).build().unwrap();
    let ticket = lock.lock("a").unwrap().into_ticket().expect("a ticket");
    let next = place.try_lock_for("a", PATIENCE).unwrap().expect("it ends");
    assert!(next.was_abandoned());
    assert!(matches!(lock.adopt(ticket), Err(Error::Lost { .. })));
    next.verify().unwrap();
}
