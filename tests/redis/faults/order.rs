//! In which order waiters are served whose server fails.

use std::sync::Mutex;
use std::thread;

use crosslock::{LockGuard, Locker};

/// More than there are heartbeats under way at a time.
pub(crate) const WAITERS: usize = 12;

/// Has [`WAITERS`] lockers wait for a lock one after the other, and gives the order in which they had it.
///
/// `open` makes a locker, `wait_for_queue` waits until so many stand in the lock's queue, and `fail` has the server
/// fail while the lock is held, and releases it.
pub(crate) fn order_of_service(
    name: &str,
    open: impl Fn() -> Locker,
    wait_for_queue: impl Fn(u64),
    fail: impl FnOnce(LockGuard),
) -> Vec<usize> {
    let served = Mutex::new(Vec::new());
    let guard = open().lock(name).expect("lock");
    thread::scope(|scope| {
        for number in 0..WAITERS {
            let (locker, served) = (open(), &served);
            scope.spawn(move || {
                // A lease that the server's failure ends is told by its release.
                let _guard = locker.lock(name).expect("lock");
                served.lock().expect("nobody panics").push(number);
            });
            wait_for_queue(number as u64 + 1);
        }
        fail(guard);
    });
    served.into_inner().expect("nobody panics")
}

/// The order in which they came.
pub(crate) fn in_order() -> Vec<usize> {
    (0..WAITERS).collect()
}
