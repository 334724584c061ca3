//! Every call ends within its bound while no replica answers.

use support::{Stopwatch, within};

use super::*;

/// With the longest patience for replicas, which every call cuts to what it has.
fn patient(set: &Replicated) -> LockerBuilder {
    builder(set, 0, 1).replica_timeout(LONG).io_timeout(LONG)
}

#[test]
fn timed_call_ends_in_time() {
    let set = Replicated::start(1);
    stop_replicas(&set);
    let locker = patient(&set).build().unwrap();
    for timeout in [0, 30, 300].map(millis) {
        let outcome = within(timeout + millis(100), || locker.try_lock_for(NAME, timeout));
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        assert_released(&set, 0);
    }
}

#[test]
fn lock_gives_up_when_it_has_tried_for_long_enough() {
    let set = Replicated::start(1);
    stop_replicas(&set);
    let locker = builder(&set, 0, 1).outage_timeout(millis(700));
    let locker = locker.build().unwrap();
    let error = within(millis(900), || locker.lock(NAME)).unwrap_err();
    assert_too_few(&error);
    assert_released(&set, 0);
}

#[test]
fn short_io_timeout_bounds_the_wait_for_replicas() {
    let set = Replicated::start(1);
    let locker = patient(&set).io_timeout(millis(300)).build().unwrap();
    // A script that the server doesn't know is sent again only when the WAIT behind it is over.
    held(&locker).unlock().unwrap();
    stop_replicas(&set);
    let error = within(millis(400), || locker.try_lock(NAME)).unwrap_err();
    // Half of it is left for the answer: it says what is missing, and not that none came.
    assert_too_few(&error);
}

#[cfg(feature = "value")]
#[test]
fn drop_of_a_changed_value_ends_in_time() {
    let set = Replicated::start(1);
    let locker = patient(&set).build().unwrap();
    let count = locker.mutex(NAME, 0u64).unwrap();
    let mut guard = count.lock().unwrap();
    *guard += 1;
    stop_replicas(&set);
    within(millis(500), || drop(guard));
    assert_released(&set, 0);
}

#[test]
fn close_ends_a_call_that_waits_for_replicas() {
    let set = Replicated::start(1);
    let locker = patient(&set).build().unwrap();
    // A script that the server doesn't know is sent again only when the WAIT behind it is over.
    held(&locker).unlock().unwrap();
    stop_replicas(&set);
    let other = locker.clone();
    let waiter = std::thread::spawn(move || other.lock(NAME).unwrap_err());
    wait_until("the question", PATIENCE, || {
        set.member(0).get(LOCK).is_some()
    });
    let stopwatch = Stopwatch::start();
    locker.close();
    assert!(matches!(waiter.join().unwrap(), Error::Cancelled { .. }));
    stopwatch.assert_within(millis(500));
}

#[test]
fn heartbeat_costs_no_more_than_the_time_for_replicas() {
    let set = Replicated::start(1);
    let holder = held(&builder(&set, 0, 0).ttl(LONG).build().unwrap());
    stop_replicas(&set);
    let locker = builder(&set, 0, 1).ttl(millis(600)).build().unwrap();
    let outcome = within(millis(1_100), || locker.try_lock_for(NAME, millis(1_000)));
    // It is taken, and that needs no replicas.
    assert!(outcome.unwrap().is_none());
    holder.unlock().unwrap();
    assert_released(&set, 0);
}
