//! Values that many read.

use std::time::{Duration, Instant};

use crosslock::{Locker, Result, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::waiting::assert_times_out;
use crate::{PATIENCE, Place};

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

pub(crate) fn each_call_takes_it_when_it_is_free_and_none_when_it_is_not(place: &Place) {
    const TIMEOUT: Duration = Duration::from_millis(40);
    let (here, there) = (config(place), config(&place.other()));
    let soon = || Instant::now() + PATIENCE;
    for read in [
        here.try_read(),
        here.try_read_for(PATIENCE),
        there.try_read_until(soon()),
    ] {
        assert_eq!(*read.unwrap().expect("all read"), 7);
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
    assert_times_out(TIMEOUT, || there.try_read_for(TIMEOUT));
    assert_times_out(TIMEOUT, || here.try_read_until(Instant::now() + TIMEOUT));
    assert_times_out(TIMEOUT, || here.try_write_for(TIMEOUT));
    assert_times_out(TIMEOUT, || there.try_write_until(Instant::now() + TIMEOUT));
}
