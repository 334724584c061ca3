//! What others do with locks on a server: operators break them, look at them and list them, and clients of other kinds
//! take them.

#![cfg(feature = "redis")]

mod holders;
mod interop;
mod unheard;

use std::time::Duration;

use crosslock::{LockGuard, Locker};

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// The ttl of those whose renewals, which come after 100 s, are to play no part.
const LONG: Duration = Duration::from_secs(300);

const fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// A locker whose renewals and heartbeats play no part.
fn patient(url: &str) -> Locker {
    Locker::builder(url).ttl(LONG).build().expect("open")
}

#[track_caller]
fn held(locker: &Locker, name: &str) -> LockGuard {
    let guard = locker.try_lock(name).expect("try_lock");
    guard.expect("it is free")
}
