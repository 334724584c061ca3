//! What a puppet of this suite can be told: "read", "write", "2/3" (two of three permits), "all n m" (several names),
//! "store 7", or "unlock".

use crosslock::{Error, LockGuard, Locker, MutexGuard};

use super::*;
use support::puppet::{is_puppet, orders, say_holding};
use support::say;

#[test]
fn child_obeys() {
    if !is_puppet() {
        return;
    }
    let lock = locker();
    let mut guard = None;
    for order in orders() {
        guard = match &*order {
            "unlock" => {
                drop(guard.take());
                say("unlocked");
                None
            }
            order => match order.strip_prefix("store ") {
                Some(value) => {
                    store(&lock, value.parse().unwrap());
                    None
                }
                None => Some(tell(take(&lock, order))),
            },
        };
    }
}

fn take(lock: &Locker, order: &str) -> LockGuard {
    match order {
        "read" => lock.read(NAME),
        "write" => lock.write(NAME),
        order => {
            if let Some(names) = order.strip_prefix("all ") {
                let names: Vec<_> = names.split(' ').collect();
                return lock.lock_all(&names).unwrap();
            }
            let (count, of) = order.split_once('/').unwrap();
            let semaphore = lock.semaphore(NAME, of.parse().unwrap()).unwrap();
            semaphore.acquire_many(count.parse().unwrap())
        }
    }
    .unwrap()
}

/// Holds the lock until it is known to be lost, and tries to store a value then.
fn store(lock: &Locker, value: u64) {
    let mut guard = lock.mutex(NAME, 0u64).unwrap().lock().unwrap();
    let lease = MutexGuard::lease(&guard);
    say_holding(lease.fencing_token(), lease.was_abandoned());
    let lost = lease.lost().clone();
    lost.recv_timeout(PATIENCE).unwrap();
    *guard = value;
    say(match MutexGuard::unlock(guard) {
        Ok(()) => "committed ok",
        Err(Error::Lost { .. }) => "committed lost",
        Err(error) => panic!("{error}"),
    });
}

fn tell(guard: LockGuard) -> LockGuard {
    say_holding(guard.fencing_token(), guard.was_abandoned());
    guard
}
