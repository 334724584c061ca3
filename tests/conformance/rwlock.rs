//! Locks that many hold to read, or one to write.

use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::RecvTimeoutError;
use crosslock::{Error, LockGuard, Locker, Prefer, Result};

use super::preferring::{overlapping_readers, reads_between_writers};
use super::release::release;
use super::waiting::{assert_times_out, release_meanwhile};
use crate::{PATIENCE, Place};
use support::Stopwatch;
use support::wait_until;

pub(super) const TTL: Duration = Duration::from_millis(150);

/// A locker whose leases end after `ttl`.
pub(super) fn without_renewal(place: &Place, ttl: Duration) -> Locker {
    place.builder().ttl(ttl).renew(false).build().unwrap()
}

/// Waits until somebody waits to write: while others only read, that is what keeps one more reader out.
#[track_caller]
pub(super) fn wait_for_a_writer(lock: &Locker) {
    wait_until("a writer to wait", PATIENCE, || {
        lock.try_read("a").unwrap().is_none()
    });
}

pub(crate) fn readers_are_inside_together_and_a_writer_alone(place: &Place) {
    let other = place.builder().build().unwrap();
    let readers = [
        place.read("a").unwrap(),
        place.read("a").unwrap(),
        other.read("a").unwrap(),
    ];
    for lock in [place as &Locker, &other] {
        assert!(lock.try_write("a").unwrap().is_none());
        assert!(lock.try_lock("a").unwrap().is_none());
    }
    readers.iter().for_each(|reader| reader.verify().unwrap());
    drop(readers);
    let writing = other.try_write("a").unwrap().expect("all have left");
    for lock in [place as &Locker, &other] {
        assert!(lock.try_read("a").unwrap().is_none());
        assert!(lock.try_write("a").unwrap().is_none());
        assert!(lock.try_lock("a").unwrap().is_none());
    }
    writing.unlock().unwrap();
    assert!(place.try_read("a").unwrap().is_some());
}

pub(crate) fn lock_keeps_out_readers_and_writers(lock: &Locker) {
    let guard = lock.lock("a").unwrap();
    assert!(lock.try_read("a").unwrap().is_none());
    assert!(lock.try_write("a").unwrap().is_none());
    guard.unlock().unwrap();
    assert!(lock.try_read("b").unwrap().is_some());
}

pub(crate) fn threads_read_together_and_write_alone(place: &Place) {
    const EACH: usize = 40;
    let other = place.builder().build().unwrap();
    // How many read; a writer counts for very many.
    let inside = AtomicI64::new(0);
    let use_it = |guard: Result<LockGuard>, weight: i64, most: i64| {
        let guard = guard.unwrap();
        let now = inside.fetch_add(weight, SeqCst) + weight;
        assert!(now <= most, "{now} instead of {most}");
        thread::sleep(Duration::from_micros(100));
        inside.fetch_sub(weight, SeqCst);
        release(guard);
    };
    thread::scope(|scope| {
        for lock in [place as &Locker, &other] {
            for _ in 0..3 {
                scope.spawn(|| (0..EACH).for_each(|_| use_it(lock.read("a"), 1, 6)));
            }
            scope.spawn(|| (0..EACH).for_each(|_| use_it(lock.write("a"), 100, 100)));
            scope.spawn(|| (0..EACH).for_each(|_| use_it(lock.lock("a"), 100, 100)));
        }
    });
    assert!(place.try_write("a").unwrap().is_some());
}

pub(crate) fn each_call_takes_it_when_it_is_free_and_none_when_it_is_not(place: &Place) {
    const TIMEOUT: Duration = Duration::from_millis(40);
    let other = place.builder().build().unwrap();
    let soon = || Instant::now() + PATIENCE;
    let calls: [&dyn Fn() -> Result<Option<LockGuard>>; 6] = [
        &|| place.try_read("a"),
        &|| place.try_read_for("a", PATIENCE),
        &|| place.try_read_until("a", soon()),
        &|| place.try_write("a"),
        &|| place.try_write_for("a", PATIENCE),
        &|| place.try_write_until("a", soon()),
    ];
    for call in calls {
        call().unwrap().expect("it is free").unlock().unwrap();
    }
    let late = || Instant::now() + TIMEOUT;
    let reading = place.read("a").unwrap();
    assert_times_out(TIMEOUT, || other.try_write_for("a", TIMEOUT));
    assert_times_out(TIMEOUT, || other.try_write_until("a", late()));
    drop(reading);
    let _writing = place.write("a").unwrap();
    for lock in [place as &Locker, &other] {
        assert_times_out(TIMEOUT, || lock.try_read_for("a", TIMEOUT));
        assert_times_out(TIMEOUT, || lock.try_read_until("a", late()));
        assert_times_out(TIMEOUT, || lock.try_write_for("a", TIMEOUT));
        assert_times_out(TIMEOUT, || lock.try_write_until("a", late()));
    }
}

pub(crate) fn waiting_calls_are_served_by_a_release(place: &Place) {
    let other = place.builder().build().unwrap();
    for lock in [place as &Locker, &other] {
        for holding in [Locker::read, Locker::write] {
            let guard = holding(place, "a").unwrap();
            drop(release_meanwhile(guard, || lock.write("a")).unwrap());
            let guard = holding(place, "a").unwrap();
            let timed = || lock.try_write_for("a", PATIENCE);
            assert!(release_meanwhile(guard, timed).unwrap().is_some());
        }
        let guard = place.write("a").unwrap();
        drop(release_meanwhile(guard, || lock.read("a")).unwrap());
        let guard = place.write("a").unwrap();
        let timed = || lock.try_read_for("a", PATIENCE);
        assert!(release_meanwhile(guard, timed).unwrap().is_some());
    }
}

pub(crate) fn writer_that_gives_up_lets_readers_in(place: &Place) {
    let other = place.builder().build().unwrap();
    let _reading = place.read("a").unwrap();
    thread::scope(|scope| {
        let timeout = Duration::from_millis(300);
        let writer = scope.spawn(move || other.try_write_for("a", timeout));
        wait_until("a writer to wait", PATIENCE, || {
            writer.is_finished() || place.try_read("a").unwrap().is_none()
        });
        // Who waits behind it comes in when it has gone.
        place.read("a").unwrap().verify().unwrap();
        assert!(writer.join().unwrap().unwrap().is_none());
    });
    assert!(place.try_read("a").unwrap().is_some());
}

pub(crate) fn guard_of_a_reader_tells_what_others_do(place: &Place) {
    let first = place.write("a").unwrap();
    let token = first.fencing_token();
    first.unlock().unwrap();
    let (one, two) = (place.read("a").unwrap(), place.read("a").unwrap());
    let tokens = [token, one.fencing_token(), two.fencing_token()];
    assert!(tokens[0] < tokens[1] && tokens[1] < tokens[2], "{tokens:?}");
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
    two.unlock().unwrap();
    assert!(place.write("a").unwrap().fencing_token() > tokens[2]);
}

pub(crate) fn panic_of_a_reader_releases_and_is_nobodys_concern(lock: &Locker) {
    let panicked = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let _guard = lock.read("a").unwrap();
            panic!("with the lock in hand, as this test wants it");
        });
        reader.join().is_err()
    });
    assert!(panicked);
    let next = lock.try_write("a").unwrap().expect("it was released");
    assert!(!next.was_abandoned());
}

pub(crate) fn reader_that_is_not_renewed_is_lost(place: &Place) {
    let ttl = place.ttl(TTL);
    let lock = without_renewal(place, ttl);
    let watch = Stopwatch::start();
    let reading = lock.read("a").unwrap();
    let next = place.write("a").unwrap();
    let elapsed = watch.assert_within(place.most(ttl));
    assert!(elapsed >= place.least(ttl), "{elapsed:?}");
    assert!(!reading.is_held());
    assert!(matches!(reading.verify(), Err(Error::Lost { .. })));
    assert!(matches!(reading.unlock(), Err(Error::Lost { .. })));
    next.verify().unwrap();
    assert!(!next.was_abandoned(), "a reader leaves nothing half done");
}

pub(crate) fn dead_reader_does_not_live_on_through_others(place: &Place) {
    let ttl = place.ttl(2 * TTL);
    let living = place.builder().renew_every(TTL / 3).build().unwrap();
    std::mem::forget(without_renewal(place, ttl).read("a").unwrap());
    let reading = living.read("a").unwrap();
    thread::sleep(place.most(ttl) + TTL);
    reading.verify().unwrap();
    assert!(place.try_write("a").unwrap().is_none());
    reading.unlock().unwrap();
    // Now, and not when the dead one's lease would have ended if the other's renewals had been its own.
    assert!(place.try_write("a").unwrap().is_some());
}

pub(crate) fn short_lease_shortens_no_other(place: &Place) {
    let ttl = place.ttl(TTL);
    // So long that a try fits in on a busy machine, too.
    let long = without_renewal(place, ttl + place.ttl(12 * TTL));
    let long = long.read("a").unwrap();
    let brief = without_renewal(place, ttl);
    std::mem::forget(brief.read("a").unwrap());
    brief.read("a").unwrap().unlock().unwrap();
    let renewed = place.builder().ttl(ttl).build().unwrap();
    let renewed = renewed.read("a").unwrap();
    let brief_ends = Instant::now() + place.most(ttl);
    let mut was_tried_later = false;
    loop {
        let is_later = Instant::now() > brief_ends;
        let written = place.try_write("a").unwrap();
        // Read afterwards: then it was held at that time, too.
        if !long.is_held() {
            break;
        }
        assert!(written.is_none());
        was_tried_later |= is_later;
        thread::sleep(TTL / 10);
    }
    assert!(was_tried_later);
    drop(renewed);
}

pub(crate) fn reader_is_held_until_a_given_moment(place: &Place) {
    let ttl = place.ttl(TTL);
    let reading = without_renewal(place, ttl).read("a").unwrap();
    let left = reading.remaining();
    assert!(left > Duration::ZERO && left <= ttl, "{left:?}");
    let lost = reading.lost().recv_timeout(PATIENCE).unwrap();
    assert_eq!(lost.name, "a");
    assert!(place.try_write_for("a", PATIENCE).unwrap().is_some());
}

pub(crate) fn reader_and_writer_try_a_given_number_of_times(place: &Place) {
    let hasty = place.builder().attempts(3).build().unwrap();
    let reading = place.read("a").unwrap();
    assert!(matches!(
        hasty.write("a"),
        Err(Error::Busy { attempts: 3, .. })
    ));
    assert!(hasty.try_write_for("a", 2 * PATIENCE).unwrap().is_none());
    // Who only tries keeps nobody out.
    hasty.read("a").unwrap().unlock().unwrap();
    drop(reading);
    let writing = place.write("a").unwrap();
    assert!(matches!(
        hasty.read("a"),
        Err(Error::Busy { attempts: 3, .. })
    ));
    assert!(hasty.try_read_for("a", 2 * PATIENCE).unwrap().is_none());
    drop(writing);
    hasty.write("a").unwrap().unlock().unwrap();
}

pub(crate) fn abandoned_writer_is_told_to_readers_and_the_next_writer(place: &Place) {
    let careless = without_renewal(place, place.ttl(TTL));
    assert!(!place.read("a").unwrap().was_abandoned());
    std::mem::forget(careless.write("a").unwrap());
    let reading = place.read("a").unwrap();
    assert!(reading.was_abandoned());
    reading.unlock().unwrap();
    let writing = place.write("a").unwrap();
    assert!(writing.was_abandoned());
    writing.unlock().unwrap();
    assert!(!place.read("a").unwrap().was_abandoned());
    assert!(!place.write("a").unwrap().was_abandoned());
    // That of a reader is nobody's concern.
    std::mem::forget(careless.read("a").unwrap());
    assert!(!place.write("a").unwrap().was_abandoned());
}

pub(crate) fn nobody_starves_where_nobody_is_preferred(place: &Place) {
    assert_eq!(overlapping_readers(place, Prefer::Fair, 100), 0);
    assert!(reads_between_writers(place, Prefer::Fair));
}

pub(crate) fn names_to_read_and_write_are_checked(lock: &Locker) {
    for name in ["", &"n".repeat(513)] {
        for taken in [lock.read(name), lock.write(name)] {
            assert!(matches!(taken, Err(Error::InvalidName { .. })), "{taken:?}");
        }
    }
}
