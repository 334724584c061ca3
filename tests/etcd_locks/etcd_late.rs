//! A request comes to the server long after it was given up: it takes nothing from those that have something by then.

use std::thread;

use crosslock::Locker;
use support::{Detour, Etcd};

use crate::{LONG, PATIENCE, await_places, open, take};

/// Its leases end by themselves only after the test.
fn patient(url: &str) -> Locker {
    Locker::builder(url).ttl(LONG).build().expect("it opens")
}

fn way(detour: &Detour) -> String {
    format!("etcd://{}/", detour.addr())
}

/// Whether a request is a transaction that puts something.
fn puts(request: &str) -> bool {
    request.contains("/v3/kv/txn") && request.contains("request_put")
}

fn only_deletes(request: &str) -> bool {
    request.contains("request_delete_range") && !request.contains("request_put")
}

#[test]
fn places_that_are_given_up_late_are_not_those_of_the_holder() {
    let server = Etcd::start();
    let detour = Detour::to(server.own_addr());
    let (holder, waiter) = (open(&server), patient(&way(&detour)));
    let guard = take(&holder);
    thread::scope(|scope| {
        let names = ["m", "n"];
        let waits = scope.spawn(move || waiter.try_lock_all_for(&names, PATIENCE));
        await_places(&server, 2);
        // It finds that it can't have both, and gives up the other.
        detour.hold(only_deletes);
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
    let detour = Detour::to(server.own_addr());
    let (one, other) = (patient(&way(&detour)), open(&server));
    detour.hold(puts);
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
    let detour = Detour::to(server.own_addr());
    let counter = patient(&way(&detour)).mutex("n", 0).unwrap();
    counter.set(1).unwrap();
    detour.hold(only_deletes);
    counter.remove().unwrap();
    detour.await_held();
    counter.set(2).unwrap();
    detour.deliver();
    assert_eq!(counter.get().unwrap(), 2);
}
