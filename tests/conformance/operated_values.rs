//! What operators do with locks that protect values.

use super::list::listed;
use crate::Place;

pub(crate) fn value_that_nobody_locks_is_not_listed(place: &Place) {
    let mutex = place.mutex("a", 0).unwrap();
    mutex.update(|value| *value += 1).unwrap();
    assert_eq!(listed(place, ""), [""; 0]);
    let _guard = mutex.lock().unwrap();
    assert_eq!(listed(place, ""), ["a"]);
}

pub(crate) fn broken_guard_stores_nothing(place: &Place) {
    let mutex = place.mutex("a", 1).unwrap();
    mutex.update(|value| *value = 2).unwrap();
    let mut guard = mutex.lock().unwrap();
    *guard = 3;
    place.break_lock("a").unwrap();
    let other = place.builder().build().unwrap();
    let other = other.mutex("a", 1).unwrap();
    let next = other.try_lock().unwrap().expect("it is free");
    assert_eq!(*next, 2);
    drop(guard);
    drop(next);
    assert_eq!(*mutex.lock().unwrap(), 2);
}
