//! Several names at once: all or none.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Instant;

use crosslock::{Error, Locker};

use super::release::{assert_free, assert_taken, release};
use super::waiting::release_meanwhile;
use crate::{PATIENCE, Place};

#[track_caller]
fn assert_all_free(lock: &Locker, names: &[&str]) {
    names.iter().for_each(|name| assert_free(lock, name));
}

#[track_caller]
fn assert_all_taken(lock: &Locker, names: &[&str]) {
    names.iter().for_each(|name| assert_taken(lock, name));
}

pub(crate) fn all_are_taken_or_none(place: &Place) {
    let other = place.other();
    let middle = place.lock("b").unwrap();
    for lock in [place as &Locker, &other] {
        assert!(lock.try_lock_all(&["a", "b", "c"]).unwrap().is_none());
        assert_all_free(place, &["a", "c"]);
    }
    middle.unlock().unwrap();
    let all = place.try_lock_all(&["a", "b", "c"]).unwrap();
    let all = all.expect("all are free");
    for lock in [place as &Locker, &other] {
        assert_all_taken(lock, &["a", "b", "c"]);
        assert!(lock.try_lock_all(&["d", "a"]).unwrap().is_none());
        assert_all_free(lock, &["d"]);
    }
    all.verify().unwrap();
    all.unlock().unwrap();
    assert_all_free(&other, &["a", "b", "c"]);
}

pub(crate) fn tokens_increase_over_all_names(place: &Place) {
    let other = place.other();
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
    assert_all_taken(place, &["a"]);
    guard.unlock().unwrap();
    let guard = place.lock_all(&["b", "a", "b", "a"]).unwrap();
    guard.verify().unwrap();
    assert_all_taken(place, &["a", "b"]);
    guard.unlock().unwrap();
    assert_all_free(place, &["a", "b"]);
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
    assert_all_free(lock, &["a", "0"]);
    let most = &many[..place.most_names()];
    let guard = lock.lock_all(most).unwrap();
    guard.verify().unwrap();
    assert_all_taken(lock, most);
    guard.unlock().unwrap();
    assert_all_free(lock, most);
    if most.len() < 100 {
        let outcome = lock.lock_all(&many[..=most.len()]);
        support::assert_like!(outcome, Err(Error::Unsupported { .. }));
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
    assert_all_taken(lock, &["a", "b"]);
    drop(guard);
}

pub(crate) fn all_wait_for_whichever_is_held(place: &Place) {
    let other = place.other();
    for lock in [place as &Locker, &other] {
        for holding in [&["a"][..], &["b"], &["b", "c"], &["a", "b"]] {
            let guard = place.lock_all(holding).unwrap();
            let all = release_meanwhile(guard, || lock.lock_all(&["a", "b"]));
            all.unwrap().verify().unwrap();
        }
    }
}

pub(crate) fn single_locks_wait_for_all(place: &Place) {
    let other = place.other();
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
    let other = place.other();
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
    assert_all_free(place, &NAMES);
}

pub(crate) fn abandoned_set_is_told_to_the_next_holder_of_each(place: &Place) {
    let careless = place.careless();
    std::mem::forget(careless.lock_all(&["a", "b"]).unwrap());
    assert!(place.lock("a").unwrap().was_abandoned());
    let both = place.lock_all(&["b", "a"]).unwrap();
    assert!(both.was_abandoned(), "one of them was");
    both.unlock().unwrap();
    assert_all_free(place, &["a", "b"]);
    std::mem::forget(careless.lock("b").unwrap());
    let three = place.lock_all(&["a", "b", "c"]).unwrap();
    assert!(three.was_abandoned());
    drop(three);
    assert_all_free(place, &["a", "b", "c"]);
}
