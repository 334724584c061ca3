//! Guards that wait until somebody stores a value that fits.

use std::sync::mpsc;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use crosslock::{Error, Locker, Mutex, MutexGuard};

use super::release::panics_with;
use crate::{PATIENCE, Place};
use support::{Stopwatch, wait_until};

const SHORT: Duration = Duration::from_millis(60);

fn number(lock: &Locker) -> Mutex<u32> {
    lock.mutex("a", 0).unwrap()
}

/// Gives the value when it is at least that.
fn await_least(number: &Mutex<u32>, least: u32) -> u32 {
    let guard = number.lock().unwrap();
    *MutexGuard::wait_while(guard, |value| *value < least).unwrap()
}

/// Waits on a thread, and returns when it has released the lock.
fn waits_there<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    number: &'scope Mutex<u32>,
    least: u32,
) -> ScopedJoinHandle<'scope, u32> {
    let (tell, told) = mpsc::channel();
    let waits = scope.spawn(move || {
        let guard = number.lock().unwrap();
        let looks = |value: &mut u32| {
            let _ = tell.send(());
            *value < least
        };
        *MutexGuard::wait_while(guard, looks).unwrap()
    });
    told.recv_timeout(PATIENCE).unwrap();
    waits
}

pub(crate) fn guard_whose_value_fits_returns_at_once_and_stores_nothing(place: &Place) {
    let number = number(place);
    let guard = MutexGuard::wait_while(number.lock().unwrap(), |value| *value > 0).unwrap();
    let token = MutexGuard::lease(&guard).fencing_token();
    let (guard, timed_out) = MutexGuard::wait_while_for(guard, PATIENCE, |_| false).unwrap();
    assert!(!timed_out);
    assert_eq!(MutexGuard::lease(&guard).fencing_token(), token);
    number.remove().unwrap();
    MutexGuard::unlock(guard).unwrap();
    // Had it stored the value, another init would not be seen.
    assert_eq!(place.mutex("a", 5).unwrap().peek().unwrap(), 5);
}

pub(crate) fn stored_value_ends_the_wait_of_another_locker(place: &Place) {
    let (other, theirs) = (place.other(), number(place));
    let ours = number(&other);
    thread::scope(|scope| {
        let waits = waits_there(scope, &ours, 2);
        theirs.set(1).unwrap();
        thread::sleep(SHORT);
        assert!(!waits.is_finished());
        let watch = Stopwatch::start();
        theirs.update(|value| *value = 2).unwrap();
        assert_eq!(waits.join().unwrap(), 2);
        watch.assert_within(Duration::from_secs(1));
    });
    assert!(theirs.try_lock().unwrap().is_some(), "nobody has it");
}

pub(crate) fn value_is_stored_that_is_changed_before_a_wait(place: &Place) {
    let (other, theirs) = (place.other(), number(place));
    let ours = number(&other);
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let mut guard = ours.lock().unwrap();
            *guard = 1;
            let waited = MutexGuard::wait_while_for(guard, PATIENCE, |value| *value != 2).unwrap();
            *waited.0
        });
        assert_eq!(await_least(&theirs, 1), 1);
        // The closure's own change counts as well.
        let guard = theirs.lock().unwrap();
        let changes = |value: &mut u32| {
            *value += 1;
            false
        };
        MutexGuard::unlock(MutexGuard::wait_while(guard, changes).unwrap()).unwrap();
        assert_eq!(waits.join().unwrap(), 2);
    });
}

pub(crate) fn values_go_back_and_forth_and_none_is_missed(place: &Place) {
    const ROUNDS: u32 = 40;
    let (other, even) = (place.other(), number(place));
    let odd = number(&other);
    let play = |number: &Mutex<u32>, own: u32| {
        for round in (own..ROUNDS).step_by(2) {
            let guard = number.lock().unwrap();
            let (mut guard, timed_out) =
                MutexGuard::wait_while_for(guard, PATIENCE, |value| *value != round).unwrap();
            assert!(!timed_out, "round {round} has never come");
            *guard += 1;
            MutexGuard::unlock(guard).unwrap();
        }
    };
    let watch = Stopwatch::start();
    thread::scope(|scope| {
        scope.spawn(|| play(&odd, 1));
        play(&even, 0);
    });
    assert_eq!(even.peek().unwrap(), ROUNDS);
    // Had one been missed, it would have been found by a look.
    watch.assert_within(PATIENCE);
}

pub(crate) fn all_that_wait_are_woken(place: &Place) {
    const WAITERS: usize = 8;
    let (here, there) = (number(place), number(&place.other()));
    let numbers: Vec<_> = (0..WAITERS).map(|at| [&here, &there][at % 2]).collect();
    thread::scope(|scope| {
        let waits: Vec<_> = numbers
            .into_iter()
            .map(|one| waits_there(scope, one, 1))
            .collect();
        let watch = Stopwatch::start();
        here.set(1).unwrap();
        for one in waits {
            assert_eq!(one.join().unwrap(), 1);
        }
        // Had one not been told, it would have been found by a look.
        watch.assert_within(PATIENCE);
    });
}

pub(crate) fn change_by_a_condition_does_not_wake_its_own_thread(place: &Place) {
    let (other, ours) = (place.other(), number(place));
    let theirs = number(&other);
    let mut evaluated = 0;
    thread::scope(|scope| {
        let guard = ours.lock().unwrap();
        let stores = scope.spawn(|| theirs.set(9));
        let changes = |value: &mut u32| {
            evaluated += 1;
            *value += 1;
            true
        };
        let (_, timed_out) = MutexGuard::wait_while_for(guard, 5 * SHORT, changes).unwrap();
        assert!(timed_out);
        stores.join().unwrap().unwrap();
    });
    // At first, after the other's change, and when the time is over.
    assert!(evaluated <= 3, "{evaluated} times");
}

pub(crate) fn removed_value_ends_a_wait(place: &Place) {
    let (other, theirs) = (place.other(), number(place));
    theirs.set(1).unwrap();
    let ours = other.mutex("a", 7).unwrap();
    thread::scope(|scope| {
        let waits = waits_there(scope, &ours, 7);
        thread::sleep(SHORT);
        theirs.remove().unwrap();
        let watch = Stopwatch::start();
        assert_eq!(waits.join().unwrap(), 7);
        watch.assert_within(PATIENCE);
    });
}

pub(crate) fn value_that_comes_with_a_hand_off_ends_a_wait(place: &Place) {
    let (watcher, next, theirs) = (place.other(), place.other(), number(place));
    let ours = number(&watcher);
    thread::scope(|scope| {
        let waits = waits_there(scope, &ours, 1);
        thread::sleep(SHORT);
        let mut guard = theirs.lock().unwrap();
        let queued = scope.spawn(|| drop(next.lock("a").unwrap()));
        wait_until("one to wait for the lock", PATIENCE, || {
            !place.inspect("a").unwrap().waiters.is_empty()
        });
        *guard = 1;
        MutexGuard::unlock(guard).unwrap();
        let watch = Stopwatch::start();
        queued.join().unwrap();
        assert_eq!(waits.join().unwrap(), 1);
        watch.assert_within(PATIENCE);
    });
}

pub(crate) fn timed_wait_ends_with_the_lock_held(place: &Place) {
    let number = number(place);
    let watch = Stopwatch::start();
    let guard = number.lock().unwrap();
    let (guard, timed_out) = MutexGuard::wait_while_for(guard, SHORT, |value| *value < 1).unwrap();
    let took = watch.assert_within(SHORT + Duration::from_millis(200));
    assert!(timed_out && took >= SHORT);
    assert!(MutexGuard::lease(&guard).is_held());
    assert!(place.try_lock("a").unwrap().is_none());
    let past = std::time::Instant::now();
    let (_guard, timed_out) = MutexGuard::wait_while_until(guard, past, |_| true).unwrap();
    assert!(timed_out);
}

pub(crate) fn wait_is_cancelled(place: &Place) {
    let token = crosslock::CancelToken::new();
    let number = number(&place.with_cancel(&token));
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let guard = number.lock().unwrap();
            MutexGuard::wait_while(guard, |value| *value < 1).map(drop)
        });
        wait_until("the lock to be free", PATIENCE, || {
            thread::sleep(SHORT);
            place.try_lock("a").unwrap().is_some()
        });
        token.cancel();
        let ended = waits.join().unwrap();
        assert!(matches!(ended, Err(Error::Cancelled { .. })), "{ended:?}");
    });
}

pub(crate) fn condition_that_panics_releases_and_changes_nothing(place: &Place) {
    let number = number(place);
    let guard = number.lock().unwrap();
    panics_with(|| {
        MutexGuard::wait_while(guard, |value| {
            *value = 9;
            panic!("as this test wants it")
        })
    });
    let guard = number.try_lock().unwrap().expect("it was released");
    assert_eq!(*guard, 0);
    assert!(MutexGuard::lease(&guard).was_abandoned());
}
