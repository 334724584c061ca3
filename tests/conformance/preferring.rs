//! Readers or writers that are preferred, where an engine can.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

#[cfg(any(feature = "etcd", feature = "zookeeper"))]
use crosslock::Error;
use crosslock::{LockGuard, Prefer};
use support::wait_until;

use super::inspect::look_until;
use super::release::release;
use super::rwlock::wait_for_a_writer;
use crate::{PATIENCE, Place};

/// One reader after the other, each before the one before it leaves, while a writer waits. Gives how many came in
/// before a reader was kept out, or all.
pub(super) fn overlapping_readers(place: &Place, prefer: Prefer, turns: usize) -> usize {
    let lock = || place.builder().prefer(prefer).build().unwrap();
    let (readers, writer) = (lock(), lock());
    let wrote = AtomicBool::new(false);
    let mut inside = readers.read("a").unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let guard = writer.write("a").unwrap();
            wrote.store(true, SeqCst);
            guard.unlock().unwrap();
        });
        if prefer == Prefer::Readers {
            thread::sleep(Duration::from_millis(60));
        } else {
            wait_for_a_writer(&readers);
        }
        let mut came = 0;
        for _ in 0..turns {
            let Some(next) = readers.try_read("a").unwrap() else {
                break;
            };
            assert!(!wrote.load(SeqCst));
            (inside, came) = (next, came + 1);
        }
        inside.unlock().unwrap();
        // Then the writer has its turn.
        wait_until("the writer", PATIENCE, || wrote.load(SeqCst));
        came
    })
}

pub(crate) fn writer_starves_where_readers_are_preferred_and_only_there(place: &Place) {
    assert_eq!(overlapping_readers(place, Prefer::Writers, 100), 0);
    assert_eq!(overlapping_readers(place, Prefer::Readers, 100), 100);
}

/// Writers that come one after the other, so that some always wait, and one who wants to read. Says whether that one
/// was let in before the last of the writers had come.
pub(super) fn reads_between_writers(place: &Place, prefer: Prefer) -> bool {
    const MOST: u64 = 300;
    let lock = || place.builder().prefer(prefer).build().unwrap();
    let (turns, read) = (AtomicU64::new(0), AtomicBool::new(false));
    let is_over = || read.load(SeqCst) || turns.load(SeqCst) >= MOST;
    let write = || {
        let lock = lock();
        while !is_over() {
            turns.fetch_add(1, SeqCst);
            let guard = lock.write("a").unwrap();
            // One of them may be the one that reads.
            wait_until("others to wait", PATIENCE, || {
                is_over() || lock.inspect("a").unwrap().waiters.len() > 1
            });
            release(guard);
        }
    };
    let reader = lock();
    thread::scope(|scope| {
        (0..8).for_each(|_| drop(scope.spawn(write)));
        wait_until("writers", PATIENCE, || turns.load(SeqCst) > 10);
        let guard = reader.read("a").unwrap();
        read.store(true, SeqCst);
        release(guard);
        turns.load(SeqCst) < MOST
    })
}

pub(crate) fn reader_starves_where_writers_are_preferred_and_only_there(place: &Place) {
    assert!(!reads_between_writers(place, Prefer::Writers));
    assert!(reads_between_writers(place, Prefer::Readers));
}

/// Whether those that wait to read go in before a writer that has waited for longer, when the time is over for which a
/// lock stays taken after a writer has released it.
fn kept_lock_is_read_before_it_is_written(place: &Place, prefer: Prefer) -> bool {
    let lock = || place.builder().prefer(prefer).build().unwrap();
    let guard = place.write("a").unwrap();
    guard.at_least_for(Duration::from_millis(200));
    let token = |guard: LockGuard| guard.fencing_token();
    thread::scope(|scope| {
        let writer = scope.spawn(|| token(lock().write("a").unwrap()));
        look_until(place, "a", |seen| seen.waiters.len() == 1);
        let readers = [(); 2].map(|()| scope.spawn(|| token(lock().read("a").unwrap())));
        look_until(place, "a", |seen| seen.waiters.len() == 3);
        guard.unlock().unwrap();
        let wrote = writer.join().unwrap();
        let read = readers.map(|reader| reader.join().unwrap() < wrote);
        assert_eq!(read[0], read[1], "readers go in together");
        read[0]
    })
}

pub(crate) fn kept_lock_goes_to_those_whom_its_writer_would_let_in(place: &Place) {
    for (prefer, read_first) in [(Prefer::Fair, true), (Prefer::Writers, false)] {
        let read = kept_lock_is_read_before_it_is_written(place, prefer);
        assert_eq!(read, read_first, "{prefer:?}");
    }
}

/// Where the order is that in which they came.
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
pub(crate) fn kept_lock_goes_to_the_first_here(place: &Place) {
    assert!(!kept_lock_is_read_before_it_is_written(place, Prefer::Fair));
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
