//! Guards that wait until somebody stores a value that fits.

use std::sync::mpsc;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use crosslock::{Locker, Mutex, MutexGuard};

use super::release::panics_with;
use crate::waiting::Waiters;
use crate::{PATIENCE, Place};
use support::{Stopwatch, wait_until};

const SHORT: Duration = Duration::from_millis(60);

fn number(lock: &Locker) -> Mutex<u32> {
    lock.mutex("a", 0).unwrap()
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

/// A removal needs no lock. A thread that it wakes may get an older lease from a thread of its process, and then finds
/// the removed value once more.
pub(crate) fn removal_ends_the_wait_of_a_thread_that_is_handed_an_older_lease(place: &Place) {
    let (waiters, hour) = (Waiters::default(), Duration::from_secs(3600));
    let builder = place.builder().observer(waiters.observer());
    let locker = builder.hand_over(hour).build().unwrap();
    let ours = locker.mutex("a", 9).unwrap();
    ours.set(1).unwrap();
    thread::scope(|scope| {
        let waits = waits_there(scope, &ours, 2);
        let mut held = None;
        wait_until("the lock to be free", PATIENCE, || {
            held = ours.try_lock().unwrap();
            held.is_some()
        });
        // Should the removal come before its first look, it finds that at once, and this test shows less.
        thread::sleep(SHORT);
        ours.remove().unwrap();
        waiters.wait_for(1);
        let released = Instant::now();
        drop(held);
        assert_eq!(waits.join().unwrap(), 9);
        // A thread that misses the removal looks after 30 s.
        assert!(released.elapsed() < PATIENCE, "{:?}", released.elapsed());
    });
}

pub(crate) fn timed_wait_ends_with_the_lock_held(place: &Place) {
    let number = number(place);
    let (guard, begun) = (number.lock().unwrap(), Instant::now());
    let (guard, timed_out) = MutexGuard::wait_while_for(guard, SHORT, |value| *value < 1).unwrap();
    assert!(timed_out && begun.elapsed() >= SHORT);
    assert!(MutexGuard::lease(&guard).is_held());
    assert!(place.try_lock("a").unwrap().is_none());
    let (_guard, timed_out) = MutexGuard::wait_while_until(guard, begun, |_| true).unwrap();
    assert!(timed_out);
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
