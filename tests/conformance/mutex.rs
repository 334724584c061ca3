//! Values that locks protect.

use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::RecvTimeoutError;
use crosslock::{Error, Locker, Mutex, MutexGuard, Result};

use super::lease::assert_tells_of_its_lock;
use super::release::panics_with;
use super::texts::{assert_discreet, debugged};
use super::waiting::{assert_times_out, release_meanwhile};
use crate::{PATIENCE, Place};
use support::Stopwatch;

const _: () = {
    const fn goes_anywhere<T: Send + Sync + 'static>() {}
    goes_anywhere::<Mutex<Vec<String>>>();
    goes_anywhere::<MutexGuard<Vec<String>>>();
    // What a mutex holds of its type is only in its guards.
    goes_anywhere::<Mutex<std::rc::Rc<u8>>>();
};

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

pub(crate) fn value_starts_as_init_and_is_stored_by_unlock_and_by_drop(place: &Place) {
    let (here, there) = (counter(place), counter(&place.other()));
    let mut guard = here.lock().unwrap();
    assert_eq!(*guard, 7);
    *guard += 1;
    MutexGuard::unlock(guard).unwrap();
    let mut guard = there.lock().unwrap();
    assert_eq!(*guard, 8);
    *guard += 1;
    drop(guard);
    let guard = here.lock().unwrap();
    assert_eq!(*guard, 9);
    // Another init changes nothing.
    assert_eq!(place.mutex("a", 1).unwrap().peek().unwrap(), 9);
}

pub(crate) fn value_that_was_not_borrowed_mutably_is_not_stored(lock: &Locker) {
    let counter = counter(lock);
    *counter.lock().unwrap() = 8;
    let guard = counter.lock().unwrap();
    assert_eq!(*guard, 8);
    counter.remove().unwrap();
    drop(guard);
    assert_eq!(counter.peek().unwrap(), 7);
    let mut guard = counter.lock().unwrap();
    counter.remove().unwrap();
    *guard = 9;
    drop(guard);
    assert_eq!(counter.peek().unwrap(), 9);
}

pub(crate) fn discarded_change_is_not_stored(lock: &Locker) {
    let counter = counter(lock);
    let mut guard = counter.lock().unwrap();
    *guard = 8;
    MutexGuard::discard(guard).unwrap();
    assert_eq!(*counter.try_lock().unwrap().expect("it was released"), 7);
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

pub(crate) fn change_that_is_made_while_unwinding_is_stored(lock: &Locker) {
    struct Saver<'a>(&'a Mutex<u64>);
    impl Drop for Saver<'_> {
        fn drop(&mut self) {
            *self.0.lock().unwrap() += 1;
        }
    }
    let counter = counter(lock);
    panics_with(|| Saver(&counter));
    assert_next_finds(&counter, 8, false);
}

pub(crate) fn value_is_read_and_removed_without_locking(lock: &Locker) {
    let counter = counter(lock);
    assert_eq!(counter.peek().unwrap(), 7);
    counter.remove().unwrap();
    let mut guard = counter.lock().unwrap();
    *guard = 8;
    assert_eq!(counter.peek().unwrap(), 7);
    drop(guard);
    let _guard = counter.lock().unwrap();
    assert_eq!(counter.peek().unwrap(), 8);
    counter.remove().unwrap();
    assert_eq!(counter.peek().unwrap(), 7);
}

pub(crate) fn values_of_names_and_namespaces_are_apart(lock: &Locker) {
    let other = lock.with_namespace("values-apart").unwrap();
    let counters = [
        lock.mutex("a", 0u64).unwrap(),
        lock.mutex("a:value", 0).unwrap(),
        other.mutex("a", 0).unwrap(),
    ];
    for (counter, value) in counters.iter().zip(1..) {
        *counter.lock().unwrap() = value;
    }
    for (counter, value) in counters.iter().zip(1..) {
        assert_eq!(counter.peek().unwrap(), value);
    }
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
    for waiting in [&here, &there] {
        assert!(waiting.try_lock().unwrap().is_none());
        assert_times_out(TIMEOUT, || waiting.try_lock_for(TIMEOUT));
        assert_times_out(TIMEOUT, || waiting.try_lock_until(Instant::now() + TIMEOUT));
    }
}

pub(crate) fn waiter_reads_what_the_one_before_it_stored(place: &Place) {
    let here = counter(place);
    let there = counter(&place.other());
    for (waiting, before) in [&here, &there, &here, &there].into_iter().zip(8..) {
        let mut guard = here.lock().unwrap();
        *guard = before;
        let value = release_meanwhile(guard, || waiting.lock().map(|guard| *guard));
        assert_eq!(value.unwrap(), before);
        // Timed calls wait in another way.
        let mut guard = there.lock().unwrap();
        *guard = 10 * before;
        let value = release_meanwhile(guard, || waiting.try_lock_for(PATIENCE));
        assert_eq!(*value.unwrap().expect("it was released"), 10 * before);
    }
}

pub(crate) fn guard_tells_what_that_of_a_lock_does(lock: &Locker) {
    let counter = counter(lock);
    let guard = counter.lock().unwrap();
    let lease = MutexGuard::lease(&guard);
    assert_eq!(lease.name(), "a");
    assert_tells_of_its_lock(lease);
    let (lost, token) = (lease.lost().clone(), lease.fencing_token());
    let shown = debugged(&guard);
    assert!(shown.contains('7'), "{shown}");
    assert_discreet(&(shown + &debugged(&counter)));
    MutexGuard::unlock(guard).unwrap();
    assert_eq!(
        lost.recv_timeout(PATIENCE),
        Err(RecvTimeoutError::Disconnected)
    );
    assert!(MutexGuard::lease(&counter.lock().unwrap()).fencing_token() > token);
}

pub(crate) fn lock_and_mutex_of_a_name_exclude_each_other(place: &Place) {
    let (here, other) = (counter(place), place.other());
    let guard = here.lock().unwrap();
    for lock in [place as &Locker, &other] {
        assert!(lock.try_lock("a").unwrap().is_none());
    }
    let plain = release_meanwhile(guard, || place.lock("a")).unwrap();
    assert!(here.try_lock().unwrap().is_none());
    assert!(counter(&other).try_lock().unwrap().is_none());
    assert_eq!(*release_meanwhile(plain, || here.lock()).unwrap(), 7);
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

pub(crate) fn lost_lease_stores_nothing_although_nobody_came(place: &Place) {
    let careless = counter(&place.careless());
    let mut stale = careless.lock().unwrap();
    *stale = 100;
    let lost = MutexGuard::lease(&stale).lost();
    lost.recv_timeout(PATIENCE).unwrap();
    let outcome = MutexGuard::unlock(stale);
    assert!(matches!(outcome, Err(Error::Lost { .. })), "{outcome:?}");
    assert_eq!(counter(place).peek().unwrap(), 7);
}

pub(crate) fn mutex_is_tried_a_given_number_of_times(place: &Place) {
    let hasty = counter(&place.builder().attempts(3).build().unwrap());
    let guard = counter(place).lock().unwrap();
    match hasty.lock() {
        Err(Error::Busy { name, attempts, .. }) => assert_eq!((&*name, attempts), ("a", 3)),
        other => panic!("{other:?}"),
    }
    assert!(hasty.try_lock_for(2 * PATIENCE).unwrap().is_none());
    drop(guard);
    assert_eq!(*hasty.lock().unwrap(), 7);
}

pub(crate) fn renewal_keeps_a_value_for_several_ttls(place: &Place) {
    let ttl = place.ttl(Duration::from_millis(500));
    let renewed = counter(&place.builder().ttl(ttl).build().unwrap());
    let watch = Stopwatch::start();
    let mut guard = renewed.lock().unwrap();
    thread::sleep(5 * ttl / 2);
    *guard = 8;
    if let Err(error) = MutexGuard::unlock(guard) {
        return watch.assert_late(ttl / 2, ttl, error);
    }
    assert_next_finds(&renewed, 8, false);
}

pub(crate) fn threads_lose_no_change(place: &Place) {
    const THREADS: u64 = 8;
    const EACH: u64 = 50;
    let other = place.other();
    let patient = place.builder().hand_over(Duration::from_millis(20));
    let patient = patient.build().unwrap();
    // Those that lock without a value come in between.
    let plain = |lock: &Locker| (0..EACH).for_each(|_| drop(lock.lock("n").unwrap()));
    let count = |lock: &Locker| {
        let counter = lock.mutex("n", 0u64).unwrap();
        for turn in 0..EACH {
            let mut guard = counter.lock().unwrap();
            *guard += 1;
            match turn % 2 {
                0 => MutexGuard::unlock(guard).unwrap(),
                _ => drop(guard),
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..THREADS / 4 {
            for lock in [place as &Locker, &other, &patient, &patient] {
                scope.spawn(move || count(lock));
            }
        }
        scope.spawn(|| plain(place));
        scope.spawn(|| plain(&patient));
    });
    let counter = place.mutex("n", 0).unwrap();
    assert_eq!(*counter.lock().unwrap(), THREADS * EACH);
}

pub(crate) fn update_stores_and_gives_what_its_closure_does(place: &Place) {
    let (here, there) = (counter(place), counter(&place.other()));
    let text = here.update(|count| {
        *count += 1;
        format!("{count}")
    });
    assert_eq!(text.unwrap(), "8");
    assert_eq!(there.peek().unwrap(), 8);
    there.set(100).unwrap();
    assert_eq!(here.peek().unwrap(), 100);
    assert_next_finds(&here, 100, false);
}

pub(crate) fn update_of_a_lock_that_is_lost_meanwhile_says_so(place: &Place) {
    let careless = counter(&place.careless());
    let outcome = careless.update(|count| {
        *count = 100;
        thread::sleep(place.most(place.brief()) + place.brief());
        "done"
    });
    assert!(matches!(outcome, Err(Error::Lost { .. })), "{outcome:?}");
    assert_eq!(careless.peek().unwrap(), 7);
}

pub(crate) fn update_that_fails_changes_nothing_and_abandons_nothing(place: &Place) {
    let counter = counter(place);
    let failed = counter.try_update(|count| {
        *count = 100;
        Err::<(), Box<dyn std::error::Error>>("on purpose".into())
    });
    assert!(failed.is_err());
    assert_next_finds(&counter, 7, false);
    let done = counter.try_update(|count| {
        *count += 1;
        Ok::<_, Box<dyn std::error::Error>>("done")
    });
    assert_eq!(done.unwrap(), "done");
    assert_eq!(counter.peek().unwrap(), 8);
}

pub(crate) fn update_that_panics_changes_nothing_and_is_told(lock: &Locker) {
    let counter = counter(lock);
    panics_with(|| {
        counter.update(|count| {
            *count = 100;
            panic!("with the value in hand, as this test wants it");
        })
    });
    assert_next_finds(&counter, 7, true);
}

pub(crate) fn clones_are_one_lock_and_value(lock: &Locker) {
    let counter = counter(lock);
    thread::scope(|scope| {
        for counter in [(); 4].map(|()| counter.clone()) {
            scope.spawn(move || (0..10).for_each(|_| counter.update(|count| *count += 1).unwrap()));
        }
    });
    assert_eq!(counter.peek().unwrap(), 47);
    let (guard, clone) = (counter.lock().unwrap(), counter.clone());
    assert!(clone.try_lock().unwrap().is_none());
    drop(guard);
}

pub(crate) fn value_is_stored_at_once_by_a_release_that_leaves_the_lock_taken(lock: &Locker) {
    let counter = counter(lock);
    let mut guard = counter.lock().unwrap();
    MutexGuard::lease(&guard).at_least_for(Duration::from_secs(300));
    *guard = 8;
    MutexGuard::unlock(guard).unwrap();
    assert_eq!(counter.peek().unwrap(), 8);
    assert!(counter.try_lock().unwrap().is_none());
}
