//! Locks that many hold to read, or one to write, who may go on as a reader.

use std::thread;
use std::time::Duration;

use crossbeam_channel::RecvTimeoutError;
use crosslock::{Locker, Prefer};
use support::Stopwatch;

use super::inspect::look_until;
use super::preferring::reader_passes_a_waiting_writer;
use crate::{PATIENCE, Place};

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

pub(crate) fn no_reader_passes_a_writer_that_waits(place: &Place) {
    assert!(!reader_passes_a_waiting_writer(place, Prefer::Fair));
}

pub(crate) fn writer_has_it_when_the_lease_of_a_dead_reader_ends(place: &Place) {
    let ttl = place.ttl(Duration::from_millis(600));
    let (other, watch) = (place.other(), Stopwatch::start());
    std::mem::forget(place.careless_after(ttl).read("a").unwrap());
    let living = place.read("a").unwrap();
    thread::scope(|scope| {
        let writes = scope.spawn(|| drop(other.write("a").unwrap()));
        look_until(place, "a", |seen| seen.waiters.len() == 1);
        // The writer was told of the later of two ends.
        living.unlock().unwrap();
        writes.join().unwrap();
    });
    watch.assert_within(place.most(ttl));
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
