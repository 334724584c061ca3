//! Locks that many hold to read, or one to write, who may go on as a reader.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::RecvTimeoutError;
use crosslock::{Error, LockGuard, Locker, Prefer, Result};

use super::preferring::{overlapping_readers, reads_between_writers};
use super::release::release;
use crate::{PATIENCE, Place};
use support::wait_until;

/// Waits until somebody waits to write: while others only read, that is what keeps one more reader out.
#[track_caller]
pub(super) fn wait_for_a_writer(lock: &Locker) {
    wait_until("a writer to wait", PATIENCE, || {
        lock.try_read("a").unwrap().is_none()
    });
}

pub(crate) fn readers_are_inside_together_and_a_writer_alone(place: &Place) {
    let other = place.other();
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

pub(crate) fn threads_read_together_and_write_alone(place: &Place) {
    const EACH: usize = 40;
    let other = place.other();
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

pub(crate) fn writer_that_gives_up_lets_readers_in(place: &Place) {
    let other = place.other();
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

pub(crate) fn who_only_tries_keeps_nobody_out(place: &Place) {
    let hasty = place.builder().attempts(3).build().unwrap();
    let _reading = place.read("a").unwrap();
    let busy = hasty.write("a");
    support::assert_like!(busy, Err(Error::Busy { attempts: 3, .. }));
    hasty.read("a").unwrap().unlock().unwrap();
}

pub(crate) fn dead_reader_does_not_live_on_through_others(place: &Place) {
    let often = Duration::from_millis(50);
    let living = place.builder().renew_every(often).build().unwrap();
    std::mem::forget(place.careless().read("a").unwrap());
    let reading = living.read("a").unwrap();
    thread::sleep(2 * place.most(place.brief()));
    reading.verify().unwrap();
    assert!(place.try_write("a").unwrap().is_none());
    reading.unlock().unwrap();
    // Now, and not when the dead one's lease would have ended if the other's renewals had been its own.
    assert!(place.try_write("a").unwrap().is_some());
}

pub(crate) fn short_lease_shortens_no_other(place: &Place) {
    let (ttl, brief) = (place.brief(), place.careless());
    // So long that a try fits in on a busy machine, too.
    let long = place.careless_after(ttl + place.ttl(Duration::from_millis(1_800)));
    let long = long.read("a").unwrap();
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
        thread::sleep(Duration::from_millis(15));
    }
    assert!(was_tried_later);
    drop(renewed);
}

pub(crate) fn abandoned_writer_is_told_to_readers_and_the_next_writer(place: &Place) {
    let careless = place.careless();
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

pub(crate) fn downgraded_writer_reads_with_others(place: &Place) {
    let other = place.other();
    for write in [Locker::write, Locker::lock] {
        let writing = write(place, "a").unwrap();
        let (token, lost) = (writing.fencing_token(), writing.lost().clone());
        let reading = writing.downgrade().unwrap();
        assert!(reading.fencing_token() > token);
        assert_eq!((reading.name(), reading.was_abandoned()), ("a", false));
        reading.verify().unwrap();
        let end = lost.recv_timeout(PATIENCE);
        assert_eq!(end, Err(RecvTimeoutError::Disconnected));
        assert!(other.try_write("a").unwrap().is_none());
        let with_it = other.try_read("a").unwrap().expect("both read");
        assert!(with_it.fencing_token() > reading.fencing_token());
        reading.unlock().unwrap();
        assert!(place.try_write("a").unwrap().is_none());
        drop(with_it);
        assert!(!place.write("a").unwrap().was_abandoned());
    }
}

pub(crate) fn downgrade_lets_in_those_that_wait_to_read(place: &Place) {
    let others = [(); 3].map(|()| place.other());
    let writing = place.write("a").unwrap();
    thread::scope(|scope| {
        let readers: Vec<_> = others
            .iter()
            .map(|lock| scope.spawn(|| lock.read("a").unwrap()))
            .collect();
        // That a thread waits behind a writer can't be seen; those that are late come in as well.
        thread::sleep(Duration::from_millis(60));
        let reading = writing.downgrade().unwrap();
        for reader in readers {
            reader.join().unwrap().verify().unwrap();
        }
        reading.verify().unwrap();
    });
}

pub(crate) fn downgrade_lets_in_no_writer(place: &Place) {
    let other = place.other();
    for waiting in [place as &Locker, &other] {
        let writing = place.write("a").unwrap();
        let wrote = AtomicBool::new(false);
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let guard = waiting.write("a").unwrap();
                wrote.store(true, SeqCst);
                guard
            });
            thread::sleep(Duration::from_millis(60));
            let reading = writing.downgrade().unwrap();
            wait_for_a_writer(&other);
            assert!(!wrote.load(SeqCst));
            reading.verify().unwrap();
            reading.unlock().unwrap();
            writer.join().unwrap().unlock().unwrap();
        });
    }
}

pub(crate) fn lost_writer_can_not_downgrade(place: &Place) {
    let writing = place.careless().write("a").unwrap();
    let next = place.write("a").unwrap();
    assert!(matches!(writing.downgrade(), Err(Error::Lost { .. })));
    next.verify().unwrap();
}
