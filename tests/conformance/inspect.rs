//! A look at a lock: who has it, who waits for it.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{Error, Inspection, LockState, Locker, Party};

use crate::{PATIENCE, Place};
use support::eventually;

/// Looks until it sees what is expected: an operator's look may come before that.
#[track_caller]
pub(crate) fn look_until(
    lock: &Locker,
    name: &str,
    is_there: impl Fn(&Inspection) -> bool,
) -> Inspection {
    let mut seen = None;
    let is_seen = eventually(PATIENCE, || {
        is_there(seen.insert(lock.inspect(name).unwrap()))
    });
    assert!(is_seen, "in the end {seen:?}");
    seen.expect("it has looked")
}

#[track_caller]
fn assert_free(seen: &Inspection) {
    assert_eq!(seen.state, LockState::Free, "{seen:?}");
    assert!(seen.holders.is_empty(), "{seen:?}");
}

#[track_caller]
pub(crate) fn assert_here(party: Option<&Party>, label: Option<&str>) {
    let party = party.expect("it is a crosslock program");
    assert_eq!(party.pid, std::process::id());
    assert!(!party.host.is_empty() && party.thread > 0, "{party:?}");
    assert_eq!(party.label.as_deref(), label);
}

pub(crate) fn free_lock_is_seen_as_free(place: &Place) {
    let seen = place.inspect("a").unwrap();
    assert_free(&seen);
    assert_eq!(seen.name, "a");
    assert!(seen.waiters.is_empty(), "{seen:?}");
    drop(place.lock("a").unwrap());
    assert_free(&place.inspect("a").unwrap());
}

pub(crate) fn holder_is_seen(place: &Place) {
    let begun = Instant::now();
    let guard = place.lock("a").unwrap();
    let other = place.builder().build().unwrap();
    for lock in [place as &Locker, &other] {
        let seen = lock.inspect("a").unwrap();
        assert_eq!(seen.state, LockState::Exclusive);
        let [holder] = &seen.holders[..] else {
            panic!("{seen:?}")
        };
        assert_here(holder.party.as_ref(), None);
        assert_eq!(holder.permits, 1);
        assert_eq!(holder.token, Some(guard.fencing_token()));
        // The engine's clock and ours needn't tick alike.
        let held_for = holder.held_for.expect("each engine knows it");
        assert!(
            held_for < begun.elapsed() + Duration::from_secs(1),
            "{held_for:?}"
        );
        let leases_end = guard.remaining() < Duration::MAX;
        assert_eq!(holder.remaining.is_some(), leases_end, "{seen:?}");
        assert!(holder.remaining.is_none_or(|left| !left.is_zero()));
        assert!(seen.last_token >= Some(guard.fencing_token()));
        assert!(seen.waiters.is_empty(), "{seen:?}");
    }
}

pub(crate) fn label_is_seen(place: &Place) {
    for label in ["deploy 4711", "a/b/c", "Ü\u{1F980} \"'%", &"x".repeat(128)] {
        let lock = place.builder().label(label).build().unwrap();
        let _guard = lock.lock("a").unwrap();
        let seen = place.inspect("a").unwrap();
        assert_here(seen.holders[0].party.as_ref(), Some(label));
    }
}

pub(crate) fn owners_secret_is_not_seen(place: &Place) {
    let _guard = place.lock("a").unwrap();
    let seen = place.inspect("a").unwrap();
    super::texts::assert_discreet(&format!("{seen:?}"));
}

pub(crate) fn look_takes_nothing(place: &Place) {
    let (is_over, other) = (AtomicBool::new(false), place.builder().build().unwrap());
    thread::scope(|scope| {
        for lock in [place as &Locker, &other] {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(SeqCst) {
                    lock.inspect("a").unwrap();
                }
            });
        }
        let taken: Vec<_> = (0..100).map(|_| place.try_lock("a").unwrap()).collect();
        let taken: Vec<_> = taken.iter().map(Option::is_some).collect();
        is_over.store(true, SeqCst);
        // The first has it: the others find that.
        assert!(taken[0] && taken[1..].iter().all(|one| !one));
    });
    let (is_over, mut refused) = (AtomicBool::new(false), 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(SeqCst) {
                other.inspect("b").unwrap();
            }
        });
        for _ in 0..100 {
            refused += usize::from(place.try_lock("b").unwrap().is_none());
        }
        is_over.store(true, SeqCst);
    });
    assert_eq!(refused, 0, "a look kept the lock from a caller");
}

pub(crate) fn tokens_go_on_from_the_last_that_is_seen(place: &Place) {
    let token = place.lock("a").unwrap().fencing_token();
    let last = place.inspect("a").unwrap().last_token;
    let last = last.expect("it was locked");
    assert!(token <= last);
    assert!(place.lock("a").unwrap().fencing_token() > last);
}

pub(crate) fn lease_that_ran_out_is_not_seen(place: &Place) {
    let ttl = place.ttl(Duration::from_millis(100));
    let lock = place.builder().ttl(ttl);
    let guard = lock.renew(false).build().unwrap().lock("a").unwrap();
    let seen = place.inspect("a").unwrap();
    // A busy machine looks too late.
    assert!(seen.state == LockState::Exclusive || !guard.is_held());
    std::mem::forget(guard);
    assert_free(&look_until(place, "a", |seen| seen.holders.is_empty()));
    assert!(place.lock("a").unwrap().was_abandoned());
}

pub(crate) fn kept_lock_is_seen_as_kept(place: &Place) {
    let guard = place.lock("a").unwrap();
    guard.at_least_for(Duration::from_secs(60));
    assert_eq!(place.inspect("a").unwrap().state, LockState::Exclusive);
    guard.unlock().unwrap();
    let seen = place.inspect("a").unwrap();
    let LockState::Kept { remaining, .. } = seen.state else {
        panic!("{seen:?}")
    };
    // Engines round up to their clock's ticks.
    assert!(remaining.is_none_or(|left| left <= Duration::from_secs(61)));
    assert!(seen.holders.is_empty(), "{seen:?}");
}

pub(crate) fn each_of_several_names_is_seen(place: &Place) {
    let guard = place.lock_all(&["a", "b"]).unwrap();
    for name in ["a", "b"] {
        let seen = place.inspect(name).unwrap();
        assert_eq!(seen.state, LockState::Exclusive);
        let [holder] = &seen.holders[..] else {
            panic!("{seen:?}")
        };
        assert_here(holder.party.as_ref(), None);
        assert!(
            holder
                .token
                .is_none_or(|token| token <= guard.fencing_token())
        );
    }
    assert_free(&place.inspect("c").unwrap());
}

pub(crate) fn names_and_namespaces_are_told_apart(place: &Place) {
    let _guard = place.lock("a").unwrap();
    let other = place.with_namespace("other").unwrap();
    assert_free(&other.inspect("a").unwrap());
    for name in ["A", "a ", "a/", "{a}"] {
        assert_free(&place.inspect(name).unwrap());
    }
    for name in ["", &"x".repeat(513)] {
        let seen = place.inspect(name);
        assert!(matches!(seen, Err(Error::InvalidName { .. })), "{seen:?}");
    }
}
