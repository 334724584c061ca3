//! Names that as many may hold as there are permits.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{Error, Locker, Semaphore};

use super::release::release;
use super::texts::{assert_discreet, debugged};
use super::waiting::release_meanwhile;
use crate::{PATIENCE, Place};
use support::Stopwatch;
use support::wait_until;

const _: () = {
    const fn is_shared<T: Clone + Send + Sync + 'static>() {}
    is_shared::<Semaphore>();
};

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
    let mut held = vec![
        here.acquire().unwrap(),
        there.acquire().unwrap(),
        here.clone().acquire().unwrap(),
    ];
    for semaphore in [&here, &there] {
        assert_available(semaphore, 0);
        assert!(semaphore.try_acquire().unwrap().is_none());
    }
    held.swap_remove(1).unlock().unwrap();
    assert_available(&there, 1);
    held.push(there.try_acquire().unwrap().expect("one came back"));
    assert!(here.try_acquire().unwrap().is_none());
    held.iter().for_each(|permit| permit.verify().unwrap());
    drop(held);
    assert_available(&here, 3);
}

pub(crate) fn many_are_taken_and_given_back_together(place: &Place) {
    let semaphore = of(5, place);
    let three = semaphore.acquire_many(3).unwrap();
    assert_available(&semaphore, 2);
    assert!(semaphore.try_acquire_many(3).unwrap().is_none());
    let two = semaphore
        .try_acquire_many(2)
        .unwrap()
        .expect("two are left");
    assert_available(&semaphore, 0);
    three.unlock().unwrap();
    assert_available(&semaphore, 3);
    drop(two);
    let all = semaphore.try_acquire_many(5).unwrap();
    all.expect("all are there").verify().unwrap();
    assert_available(&semaphore, 5);
}

pub(crate) fn threads_never_have_more_than_there_are(place: &Place) {
    const PERMITS: u32 = 3;
    let other = place.other();
    let used = AtomicU32::new(0);
    let hold = |semaphore: &Semaphore, count: u32| {
        let permits = semaphore.acquire_many(count).unwrap();
        let now = used.fetch_add(count, SeqCst) + count;
        assert!(now <= PERMITS, "{now}");
        thread::sleep(Duration::from_micros(100));
        used.fetch_sub(count, SeqCst);
        release(permits);
    };
    thread::scope(|scope| {
        for (at, lock) in [place as &Locker, &other]
            .into_iter()
            .cycle()
            .take(8)
            .enumerate()
        {
            let (semaphore, hold) = (of(PERMITS, lock), &hold);
            scope.spawn(move || {
                for turn in 0..30 {
                    hold(&semaphore, [1, 2, 1, 3][(at + turn) % 4]);
                }
            });
        }
    });
    assert_available(&of(PERMITS, place), PERMITS);
}

pub(crate) fn large_request_is_not_passed_by_small_ones(place: &Place) {
    let (here, there) = (of(3, place), of(3, &place.other()));
    let held = here.acquire().unwrap();
    thread::scope(|scope| {
        let large = scope.spawn(|| there.acquire_many(3).unwrap());
        wait_until("the large request to wait", PATIENCE, || {
            here.try_acquire().unwrap().is_none()
        });
        assert_available(&here, 2);
        assert!(here.try_acquire_many(2).unwrap().is_none());
        let small = scope.spawn(|| here.acquire().unwrap());
        thread::sleep(Duration::from_millis(60));
        assert!(!small.is_finished());
        held.unlock().unwrap();
        let large = large.join().unwrap();
        assert!(!small.is_finished());
        large.unlock().unwrap();
        small.join().unwrap().unlock().unwrap();
    });
    assert_available(&here, 3);
}

pub(crate) fn large_request_that_gives_up_lets_small_ones_in(place: &Place) {
    let (here, there) = (of(3, place), of(3, &place.other()));
    let _held = here.acquire().unwrap();
    thread::scope(|scope| {
        let timeout = Duration::from_millis(300);
        let large = scope.spawn(move || there.try_acquire_many_for(3, timeout));
        wait_until("the large request to wait", PATIENCE, || {
            large.is_finished() || here.try_acquire().unwrap().is_none()
        });
        here.acquire_many(2).unwrap().unlock().unwrap();
        assert!(large.join().unwrap().unwrap().is_none());
    });
    assert_available(&here, 2);
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
            let invalid = matches!(
                outcome,
                Err(Error::InvalidOption {
                    option: "count",
                    ..
                })
            );
            assert!(invalid, "{count}: {outcome:?}");
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

pub(crate) fn forgotten_permit_comes_back_although_others_are_held(place: &Place) {
    let often = Duration::from_millis(50);
    let semaphore = of(2, &place.builder().renew_every(often).build().unwrap());
    let renewed = semaphore.acquire().unwrap();
    let careless = of(2, &place.careless());
    let before = Instant::now();
    std::mem::forget(careless.acquire().unwrap());
    let watch = Stopwatch::start();
    let next = semaphore.acquire().unwrap();
    let ttl = place.brief();
    watch.assert_within(place.most(ttl));
    let elapsed = before.elapsed();
    assert!(elapsed >= place.least(ttl), "{elapsed:?}");
    assert_available(&semaphore, 0);
    renewed.unlock().unwrap();
    next.unlock().unwrap();
    assert_available(&semaphore, 2);
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
