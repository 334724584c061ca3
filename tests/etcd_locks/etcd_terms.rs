//! Another member leads: locks go on under the leases that they have.

use std::thread;
use std::time::Duration;

use crosslock::Locker;
use support::Etcd;

use crate::{LONG, PATIENCE, await_places, take};

#[test]
fn places_stay_under_their_leases_in_another_term() {
    let server = Etcd::start();
    let every = Duration::from_millis(200);
    let builder = Locker::builder(&server.url()).ttl(LONG).renew_every(every);
    let locker = builder.build().unwrap();
    let both = locker.try_lock_all(&["m", "n"]).unwrap().unwrap();
    let semaphore = locker.semaphore("s", 2).unwrap();
    let permit = semaphore.try_acquire().unwrap().unwrap();
    let keys = server.keys("crosslock/");
    let leases = || {
        let places = keys.iter().filter(|key| key.contains("/w/"));
        places.map(|key| server.lease_of(key)).collect::<Vec<_>>()
    };
    let before = leases();
    // A server that was started again leads itself in another term.
    server.restart();
    both.verify().unwrap();
    permit.verify().unwrap();
    thread::sleep(2 * every);
    assert!(both.is_held() && permit.is_held());
    assert_eq!(server.keys("crosslock/"), keys);
    assert_eq!(leases(), before);
    both.unlock().unwrap();
    permit.unlock().unwrap();
    assert!(server.keys("").is_empty());
}

#[test]
fn waiter_keeps_its_place_and_a_reader_its_lock_in_another_term() {
    let server = Etcd::start();
    let [holder, waiter] = [LONG, Duration::from_secs(6)]
        .map(|ttl| Locker::builder(&server.url()).ttl(ttl).build().unwrap());
    let guard = take(&holder);
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let guard = waiter.try_lock_for("n", 3 * PATIENCE).unwrap().unwrap();
            guard.verify().unwrap();
            guard.unlock().unwrap();
        });
        let places = await_places(&server, 2);
        server.restart();
        let reading = guard.downgrade().unwrap();
        reading.verify().unwrap();
        assert_eq!(await_places(&server, 2), places);
        reading.unlock().unwrap();
        waits.join().unwrap();
    });
    assert!(server.keys("").is_empty());
}
