use std::thread;
use std::time::Duration;

use crossbeam_channel::{TryRecvError, bounded};

use super::*;
use crate::base::error::Error;
use crate::guard::LockGuard;

mod network;
mod time;

const SECOND: Duration = Duration::from_secs(1);
const TTL: Duration = Duration::from_secs(10);

#[track_caller]
fn lock(locker: &Locker) -> LockGuard {
    let guard = locker.try_lock("a").expect("it answers");
    guard.expect("it is free")
}

#[track_caller]
fn assert_taken(locker: &Locker) {
    assert!(locker.try_lock("a").expect("it answers").is_none());
}

#[track_caller]
fn assert_unavailable<T: std::fmt::Debug>(outcome: &Result<T>) {
    let is_unavailable = matches!(outcome, Err(Error::Unavailable { .. }));
    assert!(is_unavailable, "{outcome:?}");
}

#[track_caller]
fn assert_lost(guard: &LockGuard, reason: LostReason) {
    // The message is there already.
    assert_eq!(guard.lost().try_recv().map(|lost| lost.reason), Ok(reason));
    assert!(matches!(guard.check(), Err(Error::Lost { .. })));
}

#[track_caller]
fn assert_held(guard: &LockGuard) {
    assert_eq!(guard.lost().try_recv(), Err(TryRecvError::Empty));
    guard.check().expect("it is held");
}
