//! Slots that Valkey 9 moves whole (`CLUSTER MIGRATESLOTS`), with locks held, renewed and waited for.

use std::thread;

use crosslock::Locker;
use support::{Cluster, Setup, valkey, wait_until};

use super::{PATIENCE, held, key, name_on, slot};

/// `None` where there is no server that can do it.
fn start() -> Option<Cluster> {
    Some(Setup::new().calm().program(&valkey()?).cluster())
}

#[test]
fn held_lock_and_its_waiters_come_along() {
    let Some(cluster) = start() else { return };
    // A waiter's heartbeats play no part.
    let patient = Locker::builder(&cluster.url()).ttl(10 * PATIENCE);
    let lockers = [0, 1].map(|_| patient.clone().build().expect("open"));
    let name = name_on(&cluster, 0, 0);
    let mut guard = held(&lockers[0], &name);
    for (number, to) in [1, 2, 0].into_iter().enumerate() {
        let other = &lockers[(number + 1) % 2];
        let token = guard.fencing_token();
        guard = thread::scope(|scope| {
            let waiting = scope.spawn(|| other.try_lock_for(&name, PATIENCE));
            wait_for_waiter(other, &name);
            cluster.migrate_slots(slot(&name), slot(&name), to);
            guard.verify().expect("it is held");
            assert!(!waiting.is_finished());
            guard.unlock().expect("it was held");
            let next = waiting.join().expect("no panic").expect("lock");
            next.expect("in time")
        });
        assert!(guard.fencing_token() > token && !guard.was_abandoned());
        assert_eq!(cluster.owner(&key(&name)), to);
    }
}

#[track_caller]
fn wait_for_waiter(locker: &Locker, name: &str) {
    wait_until("a waiter", PATIENCE, || {
        !locker.inspect(name).expect("inspect").waiters.is_empty()
    });
}
