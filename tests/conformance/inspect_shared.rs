//! A look at a lock that many may hold, and at those that wait for it.

use std::thread;
use std::time::{Duration, Instant};

use crosslock::{Inspection, LockState, Locker, Wants};

use super::inspect::{assert_here, look_until};
use crate::Place;

pub(crate) fn readers_are_seen(place: &Place) {
    let other = place.builder().label("other").build().unwrap();
    let guards = [place.read("a").unwrap(), other.read("a").unwrap()];
    let seen = place.inspect("a").unwrap();
    assert_eq!(seen.state, LockState::Shared);
    let mut labels: Vec<_> = seen.holders.iter().map(label_of).collect();
    labels.sort();
    assert_eq!(labels, ["", "other"]);
    for holder in &seen.holders {
        let mut tokens = guards.iter().map(|guard| Some(guard.fencing_token()));
        assert!(holder.token.is_none() || tokens.any(|token| token == holder.token));
        let leases_end = guards[0].remaining() < Duration::MAX;
        assert_eq!(holder.remaining.is_some(), leases_end, "{seen:?}");
        assert_eq!(holder.permits, 1);
    }
}

fn label_of(holder: &crosslock::Holder) -> String {
    let party = holder.party.as_ref().expect("it is a crosslock program");
    party.label.clone().unwrap_or_default()
}

pub(crate) fn permits_are_seen(place: &Place) {
    let semaphore = place.semaphore("a", 5).unwrap();
    let _one = semaphore.acquire().unwrap();
    let two = semaphore.acquire_many(2).unwrap();
    let seen = place.inspect("a").unwrap();
    let LockState::Permits { taken: 3, of, .. } = seen.state else {
        panic!("{seen:?}")
    };
    assert!(of.is_none_or(|of| of == 5), "{seen:?}");
    let mut permits: Vec<_> = seen.holders.iter().map(|one| one.permits).collect();
    permits.sort_unstable();
    assert_eq!(permits, [1, 2]);
    drop(two);
    let seen = place.inspect("a").unwrap();
    assert!(
        matches!(seen.state, LockState::Permits { taken: 1, .. }),
        "{seen:?}"
    );
}

/// What a thread that waits is called, and how it takes the lock.
type Way<'a> = (&'a str, fn(&Locker));

/// Has a thread wait in each of these ways, one after the other, each as another process would, and gives what is seen.
fn seen_with_waiters(place: &Place, ways: &[Way<'_>]) -> Inspection {
    let guard = place.lock("a").unwrap();
    thread::scope(|scope| {
        for (at, (label, wait)) in ways.iter().enumerate() {
            let lock = place.builder().label(label).build().unwrap();
            scope.spawn(move || wait(&lock));
            look_until(place, "a", |seen| seen.waiters.len() == at + 1);
        }
        let seen = place.inspect("a").unwrap();
        drop(guard);
        seen
    })
}

pub(crate) fn waiters_are_seen_in_their_order(place: &Place) {
    fn lock(lock: &Locker) {
        drop(lock.lock("a").unwrap());
    }
    let begun = Instant::now();
    let ways = ["first", "second", "third"].map(|label| (label, lock as fn(&Locker)));
    let seen = seen_with_waiters(place, &ways);
    assert_eq!(seen.state, LockState::Exclusive);
    for (waiter, (label, _)) in seen.waiters.iter().zip(ways) {
        assert_here(waiter.party.as_ref(), Some(label));
        assert_eq!(waiter.wants, Wants::Exclusive);
        let most = begun.elapsed() + Duration::from_secs(1);
        assert!(waiter.waited_for.is_none_or(|waited| waited <= most));
    }
    look_until(place, "a", |seen| seen.waiters.is_empty());
}

pub(crate) fn what_waiters_want_is_seen(place: &Place) {
    fn read(lock: &Locker) {
        drop(lock.read("a").unwrap());
    }
    fn permits(lock: &Locker) {
        let semaphore = lock.semaphore("a", 3).unwrap();
        drop(semaphore.acquire_many(2).unwrap());
    }
    let seen = seen_with_waiters(place, &[("reads", read), ("permits", permits)]);
    for waiter in &seen.waiters {
        let party = waiter.party.as_ref().unwrap();
        let is_right = match (party.label.as_deref(), waiter.wants) {
            (Some("reads"), wants) => wants == Wants::Shared,
            (_, wants) => matches!(wants, Wants::Permits { count: 2, .. }),
        };
        assert!(is_right, "{seen:?}");
    }
}

pub(crate) fn waiter_that_gave_up_is_not_seen(place: &Place) {
    let _guard = place.lock("a").unwrap();
    thread::scope(|scope| {
        let other = place.builder().build().unwrap();
        let waits = scope.spawn(move || other.try_lock_for("a", Duration::from_millis(300)));
        assert!(waits.join().unwrap().unwrap().is_none());
    });
    // On a machine that was late a thread of its locker takes it out of the queue, a moment later.
    look_until(place, "a", |seen| seen.waiters.is_empty());
}
