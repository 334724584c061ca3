//! A value counts as stored when enough replicas have it.

use crosslock::MutexGuard;
use support::scripts::{RELEASE, digest};
use support::{Proxy, Setup};

use super::*;

#[test]
fn value_that_no_replica_has_may_be_lost_and_the_lock_is_free() {
    let set = Replicated::start(1);
    let locker = builder(&set, 0, 1).ttl(LONG).build().unwrap();
    let count = locker.mutex(NAME, 0u64).unwrap();
    let mut guard = count.lock().unwrap();
    *guard += 1;
    stop_replicas(&set);
    let error = MutexGuard::unlock(guard).unwrap_err();
    assert_too_few(&error);
    assert!(
        error.to_string().contains("lock it again and read it"),
        "{error}"
    );
    assert_released(&set, 0);
    continue_replicas(&set);
    // A lock that replicas have says that they have what was written before it, too.
    assert_eq!(*count.lock().unwrap(), 1);
    assert_eq!(
        set.member(1).get("{crosslock:n}:value").as_deref(),
        Some("1")
    );
}

#[test]
fn value_that_is_read_on_after_a_downgrade_needs_replicas() {
    let set = Replicated::start(1);
    let locker = builder(&set, 0, 1).ttl(LONG).build().unwrap();
    let count = locker.rwlock(NAME, 0u64).unwrap();
    let mut guard = count.write().unwrap();
    *guard += 1;
    stop_replicas(&set);
    let error = crosslock::RwLockWriteGuard::downgrade(guard).unwrap_err();
    assert_too_few(&error);
    assert!(
        error.to_string().contains("lock it again and read it"),
        "{error}"
    );
    assert_released(&set, 0);
}

#[test]
fn change_that_is_handed_on_within_the_process_needs_replicas() {
    let set = Replicated::start(1);
    let hand_over = builder(&set, 0, 1).ttl(LONG).hand_over(LONG);
    let locker = hand_over.outage_timeout(PATIENCE).build().unwrap();
    let count = locker.mutex(NAME, 0u64).unwrap();
    let mut guard = count.lock().unwrap();
    *guard += 1;
    let next = count.clone();
    let next = std::thread::spawn(move || *next.lock().unwrap());
    support::eventually(millis(100), || false);
    stop_replicas(&set);
    assert_too_few(&MutexGuard::unlock(guard).unwrap_err());
    continue_replicas(&set);
    assert_eq!(next.join().unwrap(), 1);
}

/// The second copy of a release finds that the first has done all, and writes nothing: replicas that have all that this
/// connection wrote prove nothing.
fn release_whose_answer_is_lost(setup: Setup) {
    let set = setup.replicated(1);
    let master = set.member(0);
    let proxy = Proxy::start(master.addr());
    let locker = Locker::builder(&proxy.url()).min_replicas(1).ttl(LONG);
    let locker = locker.replica_timeout(millis(50)).build().unwrap();
    let count = locker.mutex(NAME, 0u64).unwrap();
    count.update(|count| *count += 1).unwrap();
    let mut guard = count.lock().unwrap();
    *guard += 1;
    stop_replicas(&set);
    proxy.lose_next_reply(&digest(RELEASE), true);
    let outcome = MutexGuard::unlock(guard);
    assert_eq!(proxy.lost_replies(), 1);
    assert!(
        matches!(outcome, Err(Error::Unavailable { .. })),
        "{outcome:?}"
    );
    assert_released(&set, 0);
}

#[test]
fn value_whose_release_has_no_answer_may_be_lost() {
    release_whose_answer_is_lost(Setup::new());
}

#[test]
fn value_whose_release_has_no_answer_may_be_lost_on_valkey() {
    if let Some(valkey) = support::valkey() {
        release_whose_answer_is_lost(Setup::new().program(&valkey));
    }
}
