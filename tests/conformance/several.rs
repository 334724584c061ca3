//! Several names at once: all or none.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::RecvTimeoutError;
use crosslock::{Error, LockGuard, Locker, Result};

use super::release::release;
use super::texts::{assert_discreet, debugged};
use super::waiting::{assert_times_out, release_meanwhile};
use crate::{PATIENCE, Place};
use support::Stopwatch;

const TTL: Duration = Duration::from_millis(150);

/// A locker whose leases end after the ttl that the place has for [`TTL`].
fn without_renewal(place: &Place) -> Locker {
    let lock = place.builder().ttl(place.ttl(TTL));
    lock.renew(false).build().unwrap()
}

#[track_caller]
fn assert_free(lock: &Locker, names: &[&str]) {
    for name in names {
        let guard = lock.try_lock(name).unwrap();
        let guard = guard.unwrap_or_else(|| panic!("{name} is taken"));
        assert!(!guard.was_abandoned(), "{name}");
    }
}

#[track_caller]
fn assert_taken(lock: &Locker, names: &[&str]) {
    for name in names {
        assert!(lock.try_lock(name).unwrap().is_none(), "{name} is free");
    }
}

pub(crate) fn all_are_taken_or_none(place: &Place) {
    let other = place.builder().build().unwrap();
    let middle = place.lock("b").unwrap();
    for lock in [place as &Locker, &other] {
        assert!(lock.try_lock_all(&["a", "b", "c"]).unwrap().is_none());
        assert_free(place, &["a", "c"]);
    }
    middle.unlock().unwrap();
    let all = place.try_lock_all(&["a", "b", "c"]).unwrap();
    let all = all.expect("all are free");
    for lock in [place as &Locker, &other] {
        assert_taken(lock, &["a", "b", "c"]);
        assert!(lock.try_lock_all(&["d", "a"]).unwrap().is_none());
        assert_free(lock, &["d"]);
    }
    all.verify().unwrap();
    all.unlock().unwrap();
    assert_free(&other, &["a", "b", "c"]);
}

pub(crate) fn one_guard_tells_of_all(place: &Place) {
    let before = ["a", "b"].map(|name| place.lock(name).unwrap().fencing_token());
    let both = place.lock_all(&["b", "a"]).unwrap();
    let token = both.fencing_token();
    assert!(before.iter().all(|before| *before < token));
    assert!(both.name().contains('a') && both.name().contains('b'));
    assert!(both.is_held() && both.remaining() > Duration::ZERO);
    assert!(!both.was_abandoned());
    both.check().unwrap();
    both.verify().unwrap();
    let lost = both.lost().clone();
    assert!(lost.try_recv().unwrap_err().is_empty());
    assert_discreet(&debugged(&both));
    drop(both);
    let end = lost.recv_timeout(PATIENCE);
    assert_eq!(end, Err(RecvTimeoutError::Disconnected));
    for name in ["a", "b"] {
        assert!(place.lock(name).unwrap().fencing_token() > token);
    }
}

pub(crate) fn tokens_increase_over_all_names(place: &Place) {
    let other = place.builder().build().unwrap();
    let mut last = [0; 3];
    for turn in 0..30 {
        let lock = [place as &Locker, &other][turn % 2];
        let names = [["a", "b"], ["b", "c"], ["c", "a"]][turn % 3];
        let guard = lock.lock_all(&names).unwrap();
        let token = guard.fencing_token();
        for name in names {
            let last = &mut last[usize::from(name.as_bytes()[0] - b'a')];
            assert!(*last < token, "{token} after {last} of {name}");
            *last = token;
        }
    }
}

pub(crate) fn names_given_twice_are_one(place: &Place) {
    let guard = place.lock_all(&["a", "a"]).unwrap();
    assert_eq!(guard.name(), "a");
    assert_taken(place, &["a"]);
    guard.unlock().unwrap();
    let guard = place.lock_all(&["b", "a", "b", "a"]).unwrap();
    guard.verify().unwrap();
    assert_taken(place, &["a", "b"]);
    guard.unlock().unwrap();
    assert_free(place, &["a", "b"]);
}

pub(crate) fn wrong_numbers_and_names_are_rejected(place: &Place) {
    let lock: &Locker = place;
    let many: Vec<_> = (0..101).map(|n| n.to_string()).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    let long = "n".repeat(513);
    let soon = Instant::now();
    for names in [&many[..], &[], &["a", ""], &["a", &long]] {
        let wrong_number = names.len() != 2;
        let outcomes = [
            lock.lock_all(names).map(Some),
            lock.try_lock_all(names),
            lock.try_lock_all_for(names, PATIENCE),
            lock.try_lock_all_until(names, soon),
        ];
        for outcome in outcomes {
            let invalid = match &outcome {
                Err(Error::InvalidOption { option, reason, .. }) => {
                    assert!(reason.contains("1 to 100"), "{reason}");
                    wrong_number && *option == "names"
                }
                Err(Error::InvalidName { .. }) => !wrong_number,
                _ => false,
            };
            assert!(invalid, "{names:?}: {outcome:?}");
        }
    }
    assert_free(lock, &["a", "0"]);
    let most = &many[..place.most_names()];
    let guard = lock.lock_all(most).unwrap();
    guard.verify().unwrap();
    assert_taken(lock, most);
    guard.unlock().unwrap();
    assert_free(lock, most);
    if most.len() < 100 {
        let outcome = lock.lock_all(&many[..=most.len()]);
        assert!(
            matches!(outcome, Err(Error::Unsupported { .. })),
            "{outcome:?}"
        );
    }
}

pub(crate) fn names_are_texts_of_any_type(lock: &Locker) {
    let (owned, soon) = (["a", "b"].map(String::from), Instant::now());
    drop(lock.lock_all(&owned).unwrap());
    let owned = Vec::from(owned);
    drop(lock.try_lock_all(&owned).unwrap().unwrap());
    let boxed = <[_; 2]>::try_from(owned)
        .unwrap()
        .map(String::into_boxed_str);
    drop(lock.try_lock_all_for(&boxed, PATIENCE).unwrap().unwrap());
    drop(lock.try_lock_all_until(&["a", "b"], soon).unwrap().unwrap());
    let either = ["a", "b"].map(std::borrow::Cow::from);
    let guard = lock.lock_all(&either).unwrap();
    assert_taken(lock, &["a", "b"]);
    drop(guard);
}

pub(crate) fn each_call_waits_in_its_way(place: &Place) {
    const TIMEOUT: Duration = Duration::from_millis(40);
    const NAMES: &[&str] = &["a", "b"];
    let other = place.builder().build().unwrap();
    for lock in [place as &Locker, &other] {
        let calls: [&(dyn Fn() -> Result<Option<LockGuard>> + Sync); 3] = [
            &|| lock.lock_all(NAMES).map(Some),
            &|| lock.try_lock_all_for(NAMES, PATIENCE),
            &|| lock.try_lock_all_until(NAMES, Instant::now() + PATIENCE),
        ];
        for call in calls {
            for holding in [&["a"][..], &["b"], &["b", "c"], &["a", "b"]] {
                let guard = place.lock_all(holding).unwrap();
                let all = release_meanwhile(guard, call).unwrap();
                all.expect("it was released").verify().unwrap();
            }
        }
        let _taken = place.lock("b").unwrap();
        let end = || Instant::now() + TIMEOUT;
        assert_times_out(TIMEOUT, || lock.try_lock_all_for(NAMES, TIMEOUT));
        assert_times_out(TIMEOUT, || lock.try_lock_all_until(NAMES, end()));
        assert_free(place, &["a"]);
    }
}

pub(crate) fn single_locks_wait_for_all(place: &Place) {
    let other = place.builder().build().unwrap();
    for lock in [place as &Locker, &other] {
        for name in ["a", "b"] {
            let all = place.lock_all(&["a", "b"]).unwrap();
            let token = all.fencing_token();
            let one = release_meanwhile(all, || lock.lock(name)).unwrap();
            assert!(one.fencing_token() > token);
            assert!(!one.was_abandoned());
        }
    }
}

pub(crate) fn overlapping_sets_in_any_order_make_progress_and_exclude(place: &Place) {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    const EACH: usize = 30;
    let other = place.builder().build().unwrap();
    let taken = [const { AtomicBool::new(false) }; 4];
    let hold = |lock: &Locker, order: &[usize]| {
        let names: Vec<_> = order.iter().map(|at| NAMES[*at]).collect();
        let guard = lock.lock_all(&names).unwrap();
        for at in order {
            assert!(!taken[*at].swap(true, SeqCst), "{names:?}");
        }
        thread::yield_now();
        for at in order {
            taken[*at].store(false, SeqCst);
        }
        release(guard);
    };
    let orders: [&[usize]; 6] = [&[0, 1], &[1, 0], &[3, 2, 1], &[1, 2, 3], &[3, 0], &[2]];
    thread::scope(|scope| {
        for lock in [place as &Locker, &other] {
            for order in orders {
                scope.spawn(|| (0..EACH).for_each(|_| hold(lock, order)));
            }
        }
    });
    assert_free(place, &NAMES);
}

pub(crate) fn all_are_renewed_for_several_ttls(place: &Place) {
    let ttl = place.ttl(4 * TTL);
    let lock = place.builder().ttl(ttl).build().unwrap();
    let guard = lock.lock_all(&["a", "b"]).unwrap();
    let watch = Stopwatch::start();
    let end = Instant::now() + 9 * ttl / 4;
    while Instant::now() < end && guard.is_held() {
        for name in ["a", "b"] {
            let other = place.try_lock(name).unwrap();
            assert!(other.is_none() || !guard.is_held(), "{name}");
        }
        thread::sleep(TTL / 10);
    }
    if let Err(error) = guard.verify() {
        return watch.assert_late(ttl / 2, ttl, error);
    }
    guard.unlock().unwrap();
    assert_free(place, &["a", "b"]);
}

pub(crate) fn several_are_held_until_a_given_moment(place: &Place) {
    let lock = without_renewal(place);
    let watch = Stopwatch::start();
    let lost = lock.lock_all(&["a", "b"]).unwrap();
    let next = place.lock("b").unwrap();
    let ttl = place.ttl(TTL);
    let elapsed = watch.assert_within(place.most(ttl));
    assert!(elapsed >= place.least(ttl), "{elapsed:?}");
    assert!(next.was_abandoned());
    assert!(!lost.is_held());
    assert!(matches!(lost.verify(), Err(Error::Lost { .. })));
    assert!(matches!(lost.unlock(), Err(Error::Lost { .. })));
    next.verify().unwrap();
}

pub(crate) fn abandoned_set_is_told_to_the_next_holder_of_each(place: &Place) {
    let careless = without_renewal(place);
    std::mem::forget(careless.lock_all(&["a", "b"]).unwrap());
    assert!(place.lock("a").unwrap().was_abandoned());
    let both = place.lock_all(&["b", "a"]).unwrap();
    assert!(both.was_abandoned(), "one of them was");
    both.unlock().unwrap();
    assert_free(place, &["a", "b"]);
    std::mem::forget(careless.lock("b").unwrap());
    let three = place.lock_all(&["a", "b", "c"]).unwrap();
    assert!(three.was_abandoned());
    drop(three);
    assert_free(place, &["a", "b", "c"]);
}

pub(crate) fn several_are_tried_a_given_number_of_times(place: &Place) {
    let hasty = place.builder().attempts(3).build().unwrap();
    let taken = place.lock("b").unwrap();
    match hasty.lock_all(&["a", "b"]) {
        Err(Error::Busy { name, attempts, .. }) => {
            assert!(name.contains('b'), "{name}");
            assert_eq!(attempts, 3);
        }
        other => panic!("{other:?}"),
    }
    let timed = hasty.try_lock_all_for(&["a", "b"], 2 * PATIENCE);
    assert!(timed.unwrap().is_none());
    assert_free(place, &["a"]);
    drop(taken);
    hasty.lock_all(&["a", "b"]).unwrap().unlock().unwrap();
}

pub(crate) fn several_can_not_be_downgraded_and_are_released(lock: &Locker) {
    let outcome = lock.lock_all(&["a", "b"]).unwrap().downgrade();
    assert!(
        matches!(outcome, Err(Error::Unsupported { .. })),
        "{outcome:?}"
    );
    assert_free(lock, &["a", "b"]);
}

pub(crate) fn panic_releases_all_and_is_told_of_each(lock: &Locker) {
    let panicked = thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let _guard = lock.lock_all(&["a", "b"]).unwrap();
            panic!("with the locks in hand, as this test wants it");
        });
        holder.join().is_err()
    });
    assert!(panicked);
    for name in ["a", "b"] {
        let next = lock.try_lock(name).unwrap().expect("it was released");
        assert!(next.was_abandoned(), "{name}");
    }
    assert_free(lock, &["a", "b"]);
}
