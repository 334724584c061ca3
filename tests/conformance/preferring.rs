//! Readers or writers that are preferred, where an engine can.

use std::thread;

#[cfg(any(feature = "etcd", feature = "zookeeper"))]
use crosslock::Error;
use crosslock::{LockGuard, Prefer};

use super::inspect::look_until;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
use crate::PATIENCE;
use crate::Place;

/// Whether one more reader is let in while others read and a writer waits.
pub(super) fn reader_passes_a_waiting_writer(place: &Place, prefer: Prefer) -> bool {
    let lock = place.builder().prefer(prefer).build().unwrap();
    let reading = lock.read("a").unwrap();
    thread::scope(|scope| {
        let writes = scope.spawn(|| drop(lock.write("a").unwrap()));
        look_until(place, "a", |seen| seen.waiters.len() == 1);
        let passes = lock.try_read("a").unwrap().is_some();
        assert!(!writes.is_finished());
        drop(reading);
        passes
    })
}

/// Whether those that wait to read go in before a writer that has waited for longer, when a writer leaves, or reads on.
fn readers_go_first(place: &Place, prefer: Prefer, reads_on: bool) -> bool {
    let lock = || place.builder().prefer(prefer).build().unwrap();
    let guard = place.write("a").unwrap();
    let token = |guard: LockGuard| guard.fencing_token();
    thread::scope(|scope| {
        let writer = scope.spawn(|| token(lock().write("a").unwrap()));
        look_until(place, "a", |seen| seen.waiters.len() == 1);
        let readers = [(); 2].map(|()| scope.spawn(|| token(lock().read("a").unwrap())));
        look_until(place, "a", |seen| seen.waiters.len() == 3);
        match reads_on {
            true => drop(guard.downgrade().unwrap()),
            false => guard.unlock().unwrap(),
        }
        let wrote = writer.join().unwrap();
        let read = readers.map(|reader| reader.join().unwrap() < wrote);
        assert_eq!(read[0], read[1], "readers go in together");
        read[0]
    })
}

pub(crate) fn those_are_let_in_first_who_are_preferred(place: &Place) {
    for (prefer, passes, first) in [
        (Prefer::Fair, false, true),
        (Prefer::Writers, false, false),
        (Prefer::Readers, true, true),
    ] {
        assert_eq!(reader_passes_a_waiting_writer(place, prefer), passes);
        for reads_on in [false, true] {
            assert_eq!(readers_go_first(place, prefer, reads_on), first);
        }
    }
}

/// Said by each call that would have to, and by none that hasn't to do with it.
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
pub(crate) fn nobody_is_preferred_here(place: &Place) {
    for prefer in [Prefer::Readers, Prefer::Writers] {
        let lock = place.builder().prefer(prefer).build().unwrap();
        let outcomes = [
            lock.read("a").map(Some),
            lock.try_read("a"),
            lock.try_read_for("a", PATIENCE),
            #[cfg(feature = "value")]
            lock.rwlock("a", 0).map(|_| None),
        ];
        for (which, outcome) in outcomes.iter().enumerate() {
            let unsupported = matches!(outcome, Err(Error::Unsupported { .. }));
            assert!(unsupported, "call {which}: {outcome:?}");
        }
        lock.lock("a").unwrap().unlock().unwrap();
    }
}
