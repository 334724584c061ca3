//! Threads of one process that take a lease from each other without waiting, beside others that wait, give up, or are
//! ended.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{CancelToken, Error, Locker};

use crate::{PATIENCE, Place};
use support::{Stopwatch, now};

/// A locker whose leases never go back to the engine while somebody of this process wants them.
pub(crate) fn generous(place: &Place) -> Locker {
    let builder = place.builder().ttl(10 * PATIENCE).hand_over(PATIENCE);
    builder.build().unwrap()
}

/// How often threads that loop have had the lock.
#[derive(Default)]
struct Turns(AtomicU64);

impl Turns {
    fn count(&self) {
        self.0.fetch_add(1, SeqCst);
    }

    /// Waits until they have had it so many times more.
    fn pass(&self, more: u64) {
        let (before, began) = (self.0.load(SeqCst), Instant::now());
        while self.0.load(SeqCst) < before + more {
            assert!(began.elapsed() < PATIENCE, "they have no turn any more");
            thread::yield_now();
        }
    }
}

/// Runs `beside` while threads lock and unlock in a loop, with nothing in between.
fn beside_loops(lock: &Locker, threads: usize, beside: impl FnOnce(&Turns)) {
    let (done, turns) = (AtomicBool::new(false), Turns::default());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !done.load(SeqCst) {
                    drop(lock.lock("a").unwrap());
                    turns.count();
                }
            });
        }
        // Also when it panics.
        let _end = End(&done);
        beside(&turns);
    });
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Nobody has "a", and nobody waits for it.
fn assert_free(place: &Place) {
    let guard = place.try_lock_for("a", PATIENCE).unwrap();
    assert!(!guard.expect("nobody has it").was_abandoned());
    let seen = place.inspect("a").unwrap();
    assert!(
        seen.holders.is_empty() && seen.waiters.is_empty(),
        "{seen:?}"
    );
}

pub(crate) fn threads_that_take_a_lease_exclude_each_other(place: &Place) {
    const THREADS: u64 = 4;
    const CYCLES: u64 = 250;
    let (lock, inside, tokens) = (generous(place), AtomicU64::new(0), Mutex::default());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (lock, inside, tokens) = (&lock, &inside, &tokens);
            scope.spawn(move || {
                for cycle in 0..CYCLES {
                    let guard = lock.lock("a").unwrap();
                    let before = inside.load(SeqCst);
                    // Some don't ask for their tokens, which others may have then.
                    if (thread + cycle) % 3 > 0 {
                        Vec::push(&mut tokens.lock().unwrap(), guard.fencing_token());
                    }
                    inside.store(before + 1, SeqCst);
                    guard.unlock().unwrap();
                }
            });
        }
    });
    assert_eq!(inside.into_inner(), THREADS * CYCLES);
    let tokens = tokens.into_inner().unwrap();
    assert!(tokens.is_sorted_by(|one, next| one < next));
    let last = tokens.last().copied().unwrap();
    drop(lock);
    assert!(place.lock("a").unwrap().fencing_token() > last);
    assert_free(place);
}

pub(crate) fn thread_that_waits_beside_those_that_loop_has_its_turn(place: &Place) {
    const CALLS: usize = 13;
    let lock = generous(place);
    beside_loops(&lock, 3, |_| {
        let watch = Stopwatch::start();
        let mut waits: Vec<_> = (0..CALLS)
            .map(|_| {
                let began = now();
                let guard = lock.try_lock_for("a", PATIENCE).unwrap();
                drop(guard.expect("a turn"));
                now() - began
            })
            .collect();
        waits.sort_unstable();
        // It is about half a millisecond, and more where the lease is just on its way to the server or back.
        watch.assert_took(waits[CALLS / 2], Duration::from_millis(20));
    });
    assert_free(place);
}

pub(crate) fn calls_that_give_up_beside_threads_that_loop_leave_nothing(place: &Place) {
    const CALLS: u64 = 60;
    let lock = generous(place);
    beside_loops(&lock, 2, |turns| {
        for call in 0..CALLS {
            let timeout = Duration::from_micros(call * 20);
            wait_briefly(&lock, timeout);
            drop(lock.try_lock("a").unwrap());
            let token = CancelToken::new();
            let own = lock.with_cancel(&token);
            thread::scope(|scope| {
                let waits = scope.spawn(move || own.lock("a").map(drop));
                turns.pass(call / 2);
                token.cancel();
                if let Err(error) = waits.join().unwrap() {
                    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
                }
            });
        }
    });
    assert_free(place);
}

/// It has the lock or not; or its question has no answer in so short a time.
fn wait_briefly(lock: &Locker, timeout: Duration) {
    match lock.try_lock_for("a", timeout) {
        Ok(guard) => drop(guard),
        Err(error) => assert!(matches!(error, Error::Unavailable { .. }), "{error}"),
    }
}

pub(crate) fn another_locker_has_its_turn_beside_threads_that_loop(place: &Place) {
    let (lock, other) = [(); 2].map(|()| place.other()).into();
    beside_loops(&lock, 4, |_| {
        for _ in 0..12 {
            let guard = other.try_lock_for("a", PATIENCE).unwrap();
            drop(guard.expect("a turn"));
        }
    });
    assert_free(place);
}
