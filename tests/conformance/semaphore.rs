//! Names that as many may hold as there are permits.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::RecvTimeoutError;
use crosslock::{Error, LockGuard, Locker, Result, Semaphore};

use super::release::release;
use super::texts::{assert_discreet, debugged};
use super::waiting::{assert_times_out, release_meanwhile};
use crate::{PATIENCE, Place};
use support::Stopwatch;
use support::wait_until;

const TTL: Duration = Duration::from_millis(150);

const _: () = {
    const fn is_shared<T: Clone + Send + Sync + 'static>() {}
    is_shared::<Semaphore>();
};

fn of(permits: u32, lock: &Locker) -> Semaphore {
    lock.semaphore("a", permits).unwrap()
}

/// A locker whose leases end after the ttl that the place has for [`TTL`].
fn without_renewal(place: &Place) -> Locker {
    let lock = place.builder().ttl(place.ttl(TTL));
    lock.renew(false).build().unwrap()
}

#[track_caller]
fn assert_available(semaphore: &Semaphore, permits: u32) {
    assert_eq!(semaphore.available_permits().unwrap(), permits);
}

pub(crate) fn there_are_as_many_permits_as_it_has(place: &Place) {
    let (here, there) = (of(3, place), of(3, &place.builder().build().unwrap()));
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
    let other = place.builder().build().unwrap();
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

pub(crate) fn waiting_calls_are_served_when_permits_come_back(place: &Place) {
    let (here, there) = (of(2, place), of(2, &place.builder().build().unwrap()));
    for waiting in [&here, &there] {
        let calls: [&(dyn Fn() -> Result<Option<LockGuard>> + Sync); 6] = [
            &|| waiting.acquire().map(Some),
            &|| waiting.try_acquire_for(PATIENCE),
            &|| waiting.try_acquire_until(Instant::now() + PATIENCE),
            &|| waiting.acquire_many(2).map(Some),
            &|| waiting.try_acquire_many_for(2, PATIENCE),
            &|| waiting.try_acquire_many_until(2, Instant::now() + PATIENCE),
        ];
        for call in calls {
            let all = here.acquire_many(2).unwrap();
            let permits = release_meanwhile(all, call).unwrap();
            permits.expect("they came back").verify().unwrap();
        }
    }
}

pub(crate) fn timed_calls_end_in_time(place: &Place) {
    const TIMEOUT: Duration = Duration::from_millis(40);
    let (here, there) = (of(2, place), of(2, &place.builder().build().unwrap()));
    let _one = here.acquire().unwrap();
    let _other = there.acquire().unwrap();
    for waiting in [&here, &there] {
        let end = || Instant::now() + TIMEOUT;
        assert_times_out(TIMEOUT, || waiting.try_acquire_for(TIMEOUT));
        assert_times_out(TIMEOUT, || waiting.try_acquire_until(end()));
        assert_times_out(TIMEOUT, || waiting.try_acquire_many_for(2, TIMEOUT));
        assert_times_out(TIMEOUT, || waiting.try_acquire_many_until(2, end()));
        assert_times_out(Duration::ZERO, || waiting.try_acquire_for(Duration::ZERO));
    }
}

pub(crate) fn large_request_is_not_passed_by_small_ones(place: &Place) {
    let (here, there) = (of(3, place), of(3, &place.builder().build().unwrap()));
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
    let (here, there) = (of(3, place), of(3, &place.builder().build().unwrap()));
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
    for name in ["", &"n".repeat(513)] {
        let made = lock.semaphore(name, 1);
        assert!(matches!(made, Err(Error::InvalidName { .. })), "{made:?}");
    }
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

pub(crate) fn guard_of_a_permit_tells_what_others_do(lock: &Locker) {
    let semaphore = of(2, lock);
    let (one, two) = (semaphore.acquire().unwrap(), semaphore.acquire().unwrap());
    assert!(one.fencing_token() < two.fencing_token());
    assert_eq!((one.name(), one.was_abandoned()), ("a", false));
    assert!(one.is_held() && one.remaining() > Duration::ZERO);
    one.check().unwrap();
    one.verify().unwrap();
    let lost = one.lost().clone();
    assert!(lost.try_recv().unwrap_err().is_empty());
    one.unlock().unwrap();
    let end = lost.recv_timeout(PATIENCE);
    assert_eq!(end, Err(RecvTimeoutError::Disconnected));
    two.verify().unwrap();
    assert_discreet(&debugged(&two));
    // Its name, and not all that the engine holds.
    let shown = debugged(&semaphore);
    assert!(shown.contains('a') && shown.len() < 500, "{}", shown.len());
    assert_discreet(&shown);
}

pub(crate) fn permit_is_held_until_a_given_moment(place: &Place) {
    let (careless, patient) = (of(2, &without_renewal(place)), of(2, place));
    let watch = Stopwatch::start();
    let lost = careless.acquire_many(2).unwrap();
    let next = patient.acquire_many(2).unwrap();
    let ttl = place.ttl(TTL);
    let elapsed = watch.assert_within(place.most(ttl));
    assert!(elapsed >= place.least(ttl), "{elapsed:?}");
    assert!(!lost.is_held());
    assert!(matches!(lost.verify(), Err(Error::Lost { .. })));
    assert!(matches!(lost.unlock(), Err(Error::Lost { .. })));
    next.verify().unwrap();
    assert!(!next.was_abandoned());
    assert_available(&patient, 0);
}

pub(crate) fn forgotten_permit_comes_back_although_others_are_held(place: &Place) {
    let lock = place.builder().renew_every(TTL / 3).build().unwrap();
    let semaphore = of(2, &lock);
    let renewed = semaphore.acquire().unwrap();
    let careless = of(2, &without_renewal(place));
    let before = Instant::now();
    std::mem::forget(careless.acquire().unwrap());
    let watch = Stopwatch::start();
    let next = semaphore.acquire().unwrap();
    let ttl = place.ttl(TTL);
    watch.assert_within(place.most(ttl));
    let elapsed = before.elapsed();
    assert!(elapsed >= place.least(ttl), "{elapsed:?}");
    assert_available(&semaphore, 0);
    renewed.unlock().unwrap();
    next.unlock().unwrap();
    assert_available(&semaphore, 2);
}

pub(crate) fn permit_is_tried_a_given_number_of_times(place: &Place) {
    let hasty = of(2, &place.builder().attempts(3).build().unwrap());
    let held = of(2, place).acquire().unwrap();
    match hasty.acquire_many(2) {
        Err(Error::Busy { name, attempts, .. }) => assert_eq!((&*name, attempts), ("a", 3)),
        other => panic!("{other:?}"),
    }
    let timed = hasty.try_acquire_many_for(2, 2 * PATIENCE);
    assert!(timed.unwrap().is_none());
    hasty.acquire().unwrap().unlock().unwrap();
    drop(held);
    hasty.acquire_many(2).unwrap().unlock().unwrap();
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

pub(crate) fn permit_can_not_be_downgraded_and_is_given_back(lock: &Locker) {
    let semaphore = of(1, lock);
    let outcome = semaphore.acquire().unwrap().downgrade();
    assert!(
        matches!(outcome, Err(Error::Unsupported { .. })),
        "{outcome:?}"
    );
    assert_available(&semaphore, 1);
}

pub(crate) fn panic_gives_permits_back(lock: &Locker) {
    let semaphore = of(2, lock);
    let panicked = thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let _permits = semaphore.acquire_many(2).unwrap();
            panic!("with permits in hand, as this test wants it");
        });
        holder.join().is_err()
    });
    assert!(panicked);
    assert_available(&semaphore, 2);
}
