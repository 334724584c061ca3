//! Several names at once: all or none.

use std::time::Instant;

use crosslock::{Error, Locker};

use super::release::{assert_free, assert_taken};
use crate::{PATIENCE, Place};

#[track_caller]
fn assert_all_free(lock: &Locker, names: &[&str]) {
    names.iter().for_each(|name| assert_free(lock, name));
}

#[track_caller]
fn assert_all_taken(lock: &Locker, names: &[&str]) {
    names.iter().for_each(|name| assert_taken(lock, name));
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
    let most = &many[..place.leases.most_names];
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
