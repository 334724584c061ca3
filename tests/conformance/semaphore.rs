//! Names that as many may hold as there are permits.

use std::time::Instant;

use crosslock::{Error, Locker, Semaphore};

use super::texts::{assert_discreet, debugged};
use super::waiting::release_meanwhile;
use crate::{PATIENCE, Place};

fn of(permits: u32, lock: &Locker) -> Semaphore {
    lock.semaphore("a", permits).unwrap()
}

#[track_caller]
fn assert_available(semaphore: &Semaphore, permits: u32) {
    assert_eq!(semaphore.available_permits().unwrap(), permits);
}

pub(crate) fn there_are_as_many_permits_as_it_has(place: &Place) {
    let (here, there) = (of(3, place), of(3, &place.other()));
    assert_available(&here, 3);
    let mut held: Vec<_> = [&here, &there, &here.clone()]
        .map(|one| one.acquire().unwrap())
        .into();
    for semaphore in [&here, &there] {
        assert_available(semaphore, 0);
        assert!(semaphore.try_acquire().unwrap().is_none());
    }
    held.pop().unwrap().unlock().unwrap();
    assert_available(&there, 1);
    assert!(here.try_acquire_many(2).unwrap().is_none());
    held.push(there.try_acquire().unwrap().expect("one came back"));
    held.iter().for_each(|permit| permit.verify().unwrap());
    drop(held);
    let two = here.acquire_many(2).unwrap();
    let one = there.try_acquire_many(1).unwrap().expect("one is left");
    two.unlock().unwrap();
    assert_available(&here, 2);
    drop(one);
    let all = there.try_acquire_many(3).unwrap();
    all.expect("all are there").verify().unwrap();
}

pub(crate) fn numbers_out_of_range_are_rejected(lock: &Locker) {
    for permits in [0, 10_001, u32::MAX] {
        match lock.semaphore("a", permits) {
            Err(Error::InvalidOption { option, reason, .. }) => {
                assert_eq!(option, "permits");
                assert!(reason.contains(&permits.to_string()), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
    let semaphore = of(3, lock);
    for count in [0, 4, u32::MAX] {
        let soon = Instant::now();
        let outcomes = [
            semaphore.acquire_many(count).map(Some),
            semaphore.try_acquire_many(count),
            semaphore.try_acquire_many_for(count, PATIENCE),
            semaphore.try_acquire_many_until(count, soon),
        ];
        for outcome in outcomes {
            let Err(Error::InvalidOption { option, .. }) = outcome else {
                panic!("{count}: {outcome:?}")
            };
            assert_eq!(option, "count");
        }
    }
    // Its name is shown, and not all that the engine holds.
    let shown = debugged(&semaphore);
    assert!(shown.contains('a') && shown.len() < 500, "{}", shown.len());
    assert_discreet(&shown);
}

pub(crate) fn largest_semaphore_can_be_taken_whole(lock: &Locker) {
    const MOST: u32 = 10_000;
    let semaphore = of(MOST, lock);
    let most = semaphore.acquire_many(MOST - 1).unwrap();
    let last = semaphore.try_acquire().unwrap().expect("one is left");
    assert!(semaphore.try_acquire().unwrap().is_none());
    last.verify().unwrap();
    drop((most, last));
    semaphore.acquire_many(MOST).unwrap().unlock().unwrap();
    // One permit is a lock like any other.
    let single = lock.semaphore("b", 1).unwrap();
    let permit = single.acquire().unwrap();
    assert!(single.try_acquire().unwrap().is_none());
    drop(permit);
    assert!(single.try_acquire().unwrap().is_some());
}

pub(crate) fn permits_and_other_ways_to_hold_a_name_exclude_each_other(place: &Place) {
    let semaphore = of(2, place);
    let permit = semaphore.acquire().unwrap();
    assert!(place.try_lock("a").unwrap().is_none());
    assert!(place.try_read("a").unwrap().is_none());
    drop(permit);
    for take in [Locker::lock, Locker::read, Locker::write] {
        let guard = take(place, "a").unwrap();
        assert!(semaphore.try_acquire().unwrap().is_none());
        assert_available(&semaphore, 0);
        drop(release_meanwhile(guard, || semaphore.acquire()).unwrap());
        let permit = semaphore.acquire().unwrap();
        drop(release_meanwhile(permit, || take(place, "a")).unwrap());
    }
    assert_available(&semaphore, 2);
}
