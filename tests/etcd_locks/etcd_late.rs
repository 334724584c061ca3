//! A request comes to the server long after it was given up: it takes nothing from those that have something by then.

use std::thread;

use crosslock::Locker;
use support::Etcd;

use crate::detour::Detour;
use crate::{LONG, PATIENCE, await_places, open, take};

/// Its leases end by themselves only after the test.
fn patient(url: &str) -> Locker {
    Locker::builder(url).ttl(LONG).build().expect("it opens")
}

#[test]
fn places_that_are_given_up_late_are_not_those_of_the_holder() {
    let server = Etcd::start();
    let detour = Detour::to(&server);
    let (holder, waiter) = (open(&server), patient(&detour.url()));
    let guard = take(&holder);
    thread::scope(|scope| {
        let names = ["m", "n"];
        let waits = scope.spawn(move || waiter.try_lock_all_for(&names, PATIENCE));
        await_places(&server, 2);
        // It finds that it can't have both, and gives up the other.
        detour.hold("request_delete_range", "request_put");
        server.delete_all("crosslock/m/w/");
        guard.unlock().unwrap();
        detour.await_held();
        let both = waits.join().unwrap().unwrap().expect("nobody has them");
        detour.deliver();
        assert!(
            open(&server).try_lock("n").unwrap().is_none(),
            "two have it"
        );
        both.verify().unwrap();
        both.unlock().unwrap();
    });
    assert!(server.keys("").is_empty());
}

#[test]
fn question_that_comes_late_takes_no_lock_that_was_passed_on() {
    let server = Etcd::start();
    let detour = Detour::to(&server);
    let (one, other) = (patient(&detour.url()), open(&server));
    detour.hold("request_put", "no such text");
    let guard = one.try_lock_for("n", PATIENCE).unwrap().expect("free");
    detour.await_held();
    let adopted = other.adopt("n", guard.into_owner()).unwrap();
    detour.deliver();
    adopted.verify().unwrap();
    // What the late question would have had it end with.
    drop(one);
    assert!(open(&server).try_lock("n").unwrap().is_none());
    adopted.unlock().unwrap();
    assert!(server.keys("").is_empty());
}

#[cfg(feature = "value")]
#[test]
fn removal_that_comes_late_removes_no_newer_value() {
    let server = Etcd::start();
    let detour = Detour::to(&server);
    let counter = patient(&detour.url()).mutex("n", 0).unwrap();
    counter.set(1).unwrap();
    detour.hold("request_delete_range", "request_put");
    counter.remove().unwrap();
    detour.await_held();
    counter.set(2).unwrap();
    detour.deliver();
    assert_eq!(counter.get().unwrap(), 2);
}
