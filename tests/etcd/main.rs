//! Whatever breaks between us and servers of etcd: the right outcome, within its bound. Where there is no
//! etcd, tests with its name in theirs are left out.

#![cfg(feature = "etcd")]

mod etcd_hosts;
mod etcd_logins;
mod etcd_tls;

use std::thread;
use std::time::Duration;

use crosslock::{Error, LockGuard, Locker};
use support::{shown, wait_until};

/// The lock of most tests.
const NAME: &str = "n";

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

const fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn open(url: &str) -> Locker {
    Locker::open(url).expect("open")
}

#[track_caller]
fn held(locker: &Locker) -> LockGuard {
    locker
        .try_lock(NAME)
        .expect("try_lock")
        .expect("it is free")
}

/// A locker can take, use and release the lock.
#[track_caller]
fn assert_works(locker: &Locker) {
    let guard = locker.lock(NAME).expect("lock");
    guard.verify().expect("verify");
    guard.unlock().expect("unlock");
}

/// Has a thread wait for the lock while that is done which releases it; then the thread has it.
#[track_caller]
fn assert_served(holder: &Locker, waiter: &Locker, meanwhile: impl FnOnce(LockGuard)) {
    let guard = held(holder);
    thread::scope(|scope| {
        let waits = scope.spawn(|| waiter.lock(NAME).map(LockGuard::unlock));
        wait_until("it to wait", PATIENCE, || {
            holder.inspect(NAME).expect("inspect").waiters.len() == 1
        });
        meanwhile(guard);
        wait_until("the lock", PATIENCE, || waits.is_finished());
        waits.join().unwrap().expect("lock").expect("unlock");
    });
}
