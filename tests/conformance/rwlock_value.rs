//! Values that many read.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{Error, Locker, Result, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::lease::assert_tells_of_its_lock;
use super::mutex_contents::Flat;
use super::texts::{assert_discreet, debugged};
use super::waiting::{assert_times_out, release_meanwhile};
use crate::{PATIENCE, Place};

const _: () = {
    const fn goes_anywhere<T: Send + Sync + 'static>() {}
    goes_anywhere::<RwLock<Vec<String>>>();
    goes_anywhere::<RwLockReadGuard<Vec<String>>>();
    goes_anywhere::<RwLockWriteGuard<Vec<String>>>();
};

fn config(lock: &Locker) -> RwLock<u64> {
    lock.rwlock("a", 7).unwrap()
}

pub(crate) fn readers_read_what_a_writer_stored(place: &Place) {
    let (here, there) = (config(place), config(&place.other()));
    let readers = [here.read().unwrap(), there.read().unwrap()];
    assert!(here.try_write().unwrap().is_none());
    assert_eq!((*readers[0], *readers[1]), (7, 7));
    drop(readers);
    let mut writing = here.write().unwrap();
    *writing = 8;
    assert!(there.try_read().unwrap().is_none());
    RwLockWriteGuard::unlock(writing).unwrap();
    let readers = [here.read().unwrap(), there.read().unwrap()];
    assert_eq!((*readers[0], *readers[1]), (8, 8));
    for reader in readers {
        RwLockReadGuard::lease(&reader).verify().unwrap();
        RwLockReadGuard::unlock(reader).unwrap();
    }
    *there.write().unwrap() += 1;
    assert_eq!(here.peek().unwrap(), 9);
    here.remove().unwrap();
    assert_eq!(there.peek().unwrap(), 7);
}

pub(crate) fn update_and_set_store_as_a_writer_and_clones_are_one(place: &Place) {
    let here = config(place);
    let there = here.clone();
    assert_eq!(here.update(|number| *number + 1).unwrap(), 8);
    here.set(9).unwrap();
    let reader = there.read().unwrap();
    assert_eq!(*reader, 9);
    assert!(here.try_write().unwrap().is_none());
    drop(reader);
    there.update(|number| *number += 1).unwrap();
    let failed = there.try_update(|number| {
        *number = 100;
        Err::<(), Box<dyn std::error::Error>>("on purpose".into())
    });
    assert!(failed.is_err());
    assert_eq!(config(place).peek().unwrap(), 10);
}

pub(crate) fn value_is_that_of_the_mutex(lock: &Locker) {
    let (config, counter) = (config(lock), lock.mutex("a", 7u64).unwrap());
    *counter.lock().unwrap() = 8;
    let reading = config.read().unwrap();
    assert_eq!(*reading, 8);
    assert!(counter.try_lock().unwrap().is_none());
    RwLockReadGuard::unlock(reading).unwrap();
    *config.write().unwrap() = 9;
    assert_eq!(*counter.lock().unwrap(), 9);
}

pub(crate) fn writer_that_changed_nothing_or_discards_stores_nothing(lock: &Locker) {
    let config = config(lock);
    *config.write().unwrap() = 8;
    let writing = config.write().unwrap();
    config.remove().unwrap();
    RwLockWriteGuard::unlock(writing).unwrap();
    assert_eq!(config.peek().unwrap(), 7);
    let mut writing = config.write().unwrap();
    *writing = 9;
    RwLockWriteGuard::discard(writing).unwrap();
    assert_eq!(*config.read().unwrap(), 7);
}

pub(crate) fn downgraded_writer_reads_on_what_it_stored(place: &Place) {
    let (here, there) = (config(place), config(&place.other()));
    let mut writing = here.write().unwrap();
    *writing = 8;
    let reading = RwLockWriteGuard::downgrade(writing).unwrap();
    assert_eq!((*reading, there.peek().unwrap()), (8, 8));
    assert!(there.try_write().unwrap().is_none());
    assert_eq!(*there.try_read().unwrap().expect("both read"), 8);
    RwLockReadGuard::lease(&reading).verify().unwrap();
    RwLockReadGuard::unlock(reading).unwrap();
    // An unchanged one isn't stored here, either.
    let writing = there.write().unwrap();
    there.remove().unwrap();
    let reading = RwLockWriteGuard::downgrade(writing).unwrap();
    assert_eq!((*reading, there.peek().unwrap()), (8, 7));
}

pub(crate) fn lost_writer_stores_nothing(place: &Place) {
    let ttl = place.ttl(Duration::from_millis(150));
    let builder = place.builder().ttl(ttl);
    let careless = config(&builder.renew(false).build().unwrap());
    for downgrades in [false, true] {
        let mut stale = careless.write().unwrap();
        let before = *stale;
        *stale = 100;
        let mut next = config(place).write().unwrap();
        assert!(RwLockWriteGuard::lease(&next).was_abandoned());
        *next += 1;
        let outcome = if downgrades {
            RwLockWriteGuard::downgrade(stale).map(drop)
        } else {
            RwLockWriteGuard::unlock(stale)
        };
        assert!(matches!(outcome, Err(Error::Lost { .. })), "{outcome:?}");
        RwLockWriteGuard::unlock(next).unwrap();
        assert_eq!(config(place).peek().unwrap(), before + 1);
    }
}

pub(crate) fn each_call_takes_it_when_it_is_free_and_none_when_it_is_not(place: &Place) {
    const TIMEOUT: Duration = Duration::from_millis(40);
    let (here, there) = (config(place), config(&place.other()));
    let soon = || Instant::now() + PATIENCE;
    let reads: [&dyn Fn() -> Result<Option<RwLockReadGuard<u64>>>; 3] = [
        &|| here.try_read(),
        &|| here.try_read_for(PATIENCE),
        &|| here.try_read_until(soon()),
    ];
    for read in reads {
        assert_eq!(*read().unwrap().expect("it is free"), 7);
    }
    let writes: [&dyn Fn() -> Result<Option<RwLockWriteGuard<u64>>>; 3] = [
        &|| here.try_write(),
        &|| here.try_write_for(PATIENCE),
        &|| here.try_write_until(soon()),
    ];
    for (write, before) in writes.iter().zip(7..) {
        let mut guard = write().unwrap().expect("it is free");
        assert_eq!(*guard, before);
        *guard += 1;
    }
    let _writing = here.write().unwrap();
    for waiting in [&here, &there] {
        assert_times_out(TIMEOUT, || waiting.try_read_for(TIMEOUT));
        assert_times_out(TIMEOUT, || waiting.try_read_until(Instant::now() + TIMEOUT));
        assert_times_out(TIMEOUT, || waiting.try_write_for(TIMEOUT));
        assert_times_out(TIMEOUT, || {
            waiting.try_write_until(Instant::now() + TIMEOUT)
        });
    }
}

pub(crate) fn waiter_reads_what_the_one_before_it_stored(place: &Place) {
    let (here, there) = (config(place), config(&place.other()));
    for (waiting, value) in [&here, &there].into_iter().zip(8..) {
        let mut writing = here.write().unwrap();
        *writing = value;
        let read = release_meanwhile(writing, || waiting.read().map(|guard| *guard));
        assert_eq!(read.unwrap(), value);
        let mut writing = here.write().unwrap();
        *writing = 10 * value;
        let timed = || waiting.try_read_for(PATIENCE);
        let read = release_meanwhile(writing, timed).unwrap();
        assert_eq!(*read.expect("it was released"), 10 * value);
    }
}

pub(crate) fn readers_never_see_a_change_that_is_undone_or_half(place: &Place) {
    const EACH: u64 = 40;
    let other = place.other();
    let committed = AtomicU64::new(0);
    let write = |pair: &RwLock<(u64, u64)>| {
        for turn in 0..EACH {
            let mut guard = pair.write().unwrap();
            guard.0 += 1;
            assert_eq!(guard.0, guard.1 + 1);
            guard.1 += 1;
            if turn % 4 == 3 {
                RwLockWriteGuard::discard(guard).unwrap();
            } else {
                // While it is held, so that no reader is ahead of it.
                committed.fetch_add(1, SeqCst);
                RwLockWriteGuard::unlock(guard).unwrap();
            }
        }
    };
    let read = |pair: &RwLock<(u64, u64)>| {
        for _ in 0..EACH {
            let guard = pair.read().unwrap();
            assert_eq!((guard.0, guard.0), (guard.1, committed.load(SeqCst)));
        }
    };
    thread::scope(|scope| {
        for lock in [place as &Locker, &other] {
            let pair = || lock.rwlock("p", (0, 0)).unwrap();
            scope.spawn(move || write(&pair()));
            scope.spawn(move || read(&pair()));
            scope.spawn(move || read(&pair()));
        }
    });
    let value = committed.into_inner();
    assert_eq!(value, 2 * EACH * 3 / 4);
    assert_eq!(
        place.rwlock("p", (0, 0)).unwrap().peek().unwrap(),
        (value, value)
    );
}

pub(crate) fn guards_tell_what_that_of_a_lock_does(lock: &Locker) {
    let config = config(lock);
    let writing = config.write().unwrap();
    let lease = RwLockWriteGuard::lease(&writing);
    assert_tells_of_its_lock(lease);
    let token = lease.fencing_token();
    let mut shown = debugged(&writing) + &debugged(&config);
    RwLockWriteGuard::unlock(writing).unwrap();
    let reading = config.read().unwrap();
    let lease = RwLockReadGuard::lease(&reading);
    assert_tells_of_its_lock(lease);
    assert!(lease.fencing_token() > token);
    shown += &debugged(&reading);
    assert!(shown.contains('7'), "{shown}");
    assert_discreet(&shown);
}

pub(crate) fn guards_hide_no_method_of_their_value(lock: &Locker) {
    let flat = lock.rwlock("a", Flat::in_the("house")).unwrap();
    let mut writing = flat.write().unwrap();
    assert_eq!(writing.name(), "house");
    assert_eq!(writing.unlock(), 1);
    writing.downgrade();
    assert_eq!(RwLockWriteGuard::lease(&writing).name(), "a");
    let reading = RwLockWriteGuard::downgrade(writing).unwrap();
    assert_eq!(reading.name(), "house, in the basement");
    assert_eq!(reading.lease(), "for ten years");
    assert_eq!(reading.is_held(), "by a tenant");
    assert_eq!(RwLockReadGuard::lease(&reading).name(), "a");
    RwLockReadGuard::unlock(reading).unwrap();
}
