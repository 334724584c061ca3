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

#[test]
fn fakes_are_apart_and_lockers_of_one_exclude_each_other() {
    let [one, other] = [Fake::new(), Fake::default()];
    let guard = lock(&one.locker());
    assert_taken(&one.clone().locker());
    assert_taken(&one.builder().build().expect("it is valid"));
    let _other = lock(&other.locker());
    let _apart = lock(&one.locker().with_namespace("b").expect("it is valid"));
    drop(guard);
    drop(lock(&one.locker()));
}

#[test]
fn namespace_is_that_of_its_lockers_and_losses() {
    let fake = Fake::new();
    let deploy = fake.with_namespace("deploy").expect("it is valid");
    let guards = [lock(&fake.locker()), lock(&deploy.locker())];
    assert_taken(&deploy.builder().build().expect("it is valid"));
    deploy.lose("a");
    assert_held(&guards[0]);
    assert_lost(&guards[1], LostReason::NotOwner);
    assert!(fake.with_namespace("a b").is_err());
}
