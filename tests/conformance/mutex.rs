//! Values that locks protect.

use std::thread;
use std::time::{Duration, Instant};

use crosslock::{Error, Locker, Mutex, MutexGuard, Result};

use super::release::panics_with;
use super::waiting::assert_times_out;
use crate::{PATIENCE, Place};

pub(super) fn counter(lock: &Locker) -> Mutex<u64> {
    lock.mutex("a", 7).unwrap()
}

/// Nobody has the lock; the next one finds that value, and whether the one before never released it.
#[track_caller]
fn assert_next_finds(counter: &Mutex<u64>, value: u64, abandoned: bool) {
    let guard = counter.try_lock().unwrap().expect("it was released");
    let found = (*guard, MutexGuard::lease(&guard).was_abandoned());
    assert_eq!(found, (value, abandoned));
}

pub(crate) fn value_starts_as_init_and_is_stored_read_and_removed(place: &Place) {
    let (here, there) = (counter(place), counter(&place.other()));
    let mut guard = here.lock().unwrap();
    assert_eq!(*guard, 7);
    *guard += 1;
    MutexGuard::unlock(guard).unwrap();
    let mut guard = there.lock().unwrap();
    assert_eq!(*guard, 8);
    *guard += 1;
    // It is read and removed without locking.
    assert_eq!(here.peek().unwrap(), 8);
    drop(guard);
    let _guard = here.lock().unwrap();
    // Another init changes nothing.
    assert_eq!(place.mutex("a", 1).unwrap().peek().unwrap(), 9);
    there.remove().unwrap();
    assert_eq!(here.peek().unwrap(), 7);
}

pub(crate) fn value_that_was_not_borrowed_mutably_or_is_discarded_is_not_stored(lock: &Locker) {
    let counter = counter(lock);
    *counter.lock().unwrap() = 8;
    let guard = counter.lock().unwrap();
    assert_eq!(*guard, 8);
    counter.remove().unwrap();
    drop(guard);
    assert_eq!(counter.peek().unwrap(), 7);
    let mut guard = counter.lock().unwrap();
    *guard = 9;
    MutexGuard::discard(guard).unwrap();
    assert_next_finds(&counter, 7, false);
}

pub(crate) fn panic_discards_the_change_and_is_told(lock: &Locker) {
    let counter = counter(lock);
    panics_with(|| {
        let mut guard = counter.lock().unwrap();
        *guard = 8;
        guard
    });
    assert_next_finds(&counter, 7, true);
    assert_next_finds(&counter, 7, false);
}

pub(crate) fn each_call_takes_it_when_it_is_free_and_none_when_it_is_not(place: &Place) {
    let here = counter(place);
    let soon = || Instant::now() + PATIENCE;
    let calls: [&dyn Fn() -> Result<Option<MutexGuard<u64>>>; 4] = [
        &|| here.lock().map(Some),
        &|| here.try_lock(),
        &|| here.try_lock_for(PATIENCE),
        &|| here.try_lock_until(soon()),
    ];
    for (call, before) in calls.iter().zip(7..) {
        let mut guard = call().unwrap().expect("it is free");
        assert_eq!(*guard, before);
        *guard += 1;
    }
    const TIMEOUT: Duration = Duration::from_millis(40);
    let there = counter(&place.other());
    let _guard = here.lock().unwrap();
    assert!(there.try_lock().unwrap().is_none());
    assert_times_out(TIMEOUT, || there.try_lock_for(TIMEOUT));
    assert_times_out(TIMEOUT, || here.try_lock_until(Instant::now() + TIMEOUT));
}

pub(crate) fn lost_lease_stores_nothing(place: &Place) {
    let (careless, next) = (counter(&place.careless()), counter(place));
    for by_drop in [false, true] {
        let mut stale = careless.lock().unwrap();
        let before = *stale;
        *stale = 100;
        let mut guard = next.lock().unwrap();
        assert!(MutexGuard::lease(&guard).was_abandoned());
        assert_eq!(*guard, before);
        *guard += 1;
        assert!(!MutexGuard::lease(&stale).is_held());
        if by_drop {
            drop(stale);
        } else {
            let outcome = MutexGuard::unlock(stale);
            assert!(matches!(outcome, Err(Error::Lost { .. })), "{outcome:?}");
        }
        MutexGuard::unlock(guard).unwrap();
        assert_eq!(next.peek().unwrap(), before + 1);
    }
}

pub(crate) fn threads_lose_no_change(place: &Place) {
    const EACH: u64 = 50;
    let other = place.other();
    let patient = place.builder().hand_over(Duration::from_millis(20));
    let patient = patient.build().unwrap();
    thread::scope(|scope| {
        for lock in [place as &Locker, &other, &patient, &patient] {
            scope.spawn(move || {
                for _ in 0..EACH {
                    counter(lock).update(|count| *count += 1).unwrap();
                    // One that locks without the value.
                    drop(lock.lock("a").unwrap());
                }
            });
        }
    });
    assert_next_finds(&counter(place), 7 + 4 * EACH, false);
}

pub(crate) fn update_stores_what_its_closure_leaves_unless_that_fails(place: &Place) {
    type Any = Box<dyn std::error::Error>;
    let (here, there) = (counter(place), counter(&place.other()));
    let text = here.update(|count| {
        *count += 1;
        format!("{count}")
    });
    assert_eq!(text.unwrap(), "8");
    there.set(100).unwrap();
    assert_next_finds(&here, 100, false);
    let failed = here.try_update(|count| {
        *count = 1;
        Err::<(), Any>("on purpose".into())
    });
    assert!(failed.is_err());
    assert_next_finds(&there, 100, false);
    panics_with(|| {
        here.update(|count| {
            *count = 1;
            panic!("with the value in hand, as this test wants it");
        })
    });
    assert_next_finds(&there, 100, true);
    assert_eq!(here.try_update(|count| Ok::<_, Any>(*count)).unwrap(), 100);
}
