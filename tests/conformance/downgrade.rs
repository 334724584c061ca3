//! Writers that go on as readers.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::RecvTimeoutError;
use crosslock::{Error, Locker};

use super::rwlock::{TTL, wait_for_a_writer, without_renewal};
use crate::{PATIENCE, Place};
use support::Stopwatch;

pub(crate) fn downgraded_writer_reads_with_others(place: &Place) {
    let other = place.builder().build().unwrap();
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

pub(crate) fn downgraded_lease_is_renewed(place: &Place) {
    let ttl = place.ttl(4 * TTL);
    let lock = place.builder().ttl(ttl).build().unwrap();
    let reading = lock.write("a").unwrap().downgrade().unwrap();
    let watch = Stopwatch::start();
    let end = Instant::now() + 9 * ttl / 4;
    while Instant::now() < end && reading.is_held() {
        let other = place.try_write("a").unwrap();
        assert!(other.is_none() || !reading.is_held());
        thread::sleep(TTL / 10);
    }
    if let Err(error) = reading.unlock() {
        return watch.assert_late(ttl / 2, ttl, error);
    }
    assert!(place.try_write("a").unwrap().is_some());
}

pub(crate) fn downgrade_lets_in_those_that_wait_to_read(place: &Place) {
    let others = [(); 3].map(|()| place.builder().build().unwrap());
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
    let other = place.builder().build().unwrap();
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
    let careless = without_renewal(place, place.ttl(TTL));
    let writing = careless.write("a").unwrap();
    let next = place.write("a").unwrap();
    assert!(matches!(writing.downgrade(), Err(Error::Lost { .. })));
    next.verify().unwrap();
}

pub(crate) fn reader_can_not_downgrade_and_is_released(lock: &Locker) {
    let reading = lock.read("a").unwrap();
    let outcome = reading.downgrade();
    assert!(
        matches!(outcome, Err(Error::Unsupported { .. })),
        "{outcome:?}"
    );
    assert!(lock.try_write("a").unwrap().is_some());
}
