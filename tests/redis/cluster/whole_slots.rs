//! Slots that Valkey 9 moves whole (`CLUSTER MIGRATESLOTS`), with locks held, renewed and waited for.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crosslock::Locker;
use support::{Cluster, Setup, valkey, wait_until};

use super::several::{names, wait_for_waiter};
use super::{PATIENCE, held, key, name_on, open, slot};

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

#[test]
fn renewals_go_on_while_half_of_a_masters_slots_move() {
    let Some(cluster) = start() else { return };
    let builder = Locker::builder(&cluster.url()).ttl(Duration::from_secs(3));
    let [locker, other] = [0, 1].map(|_| builder.clone().build().expect("open"));
    let all = locker.lock_all(&names(&cluster)).expect("lock_all");
    let several = (100..120).map(|number| name_on(&cluster, 0, number));
    let several: Vec<_> = several.collect();
    let guards: Vec<_> = several.iter().map(|name| held(&locker, name)).collect();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let trying = scope.spawn(|| {
            while !done.load(SeqCst) {
                for name in &several {
                    // While a slot is handed over, its node lets commands wait.
                    let got = other.try_lock_for(name, Duration::from_millis(100));
                    assert!(!matches!(got, Ok(Some(_))), "{got:?}");
                }
            }
        });
        for to in [1, 0, 2, 0] {
            cluster.migrate_slots(0, 2_700, to);
            for guard in &guards {
                guard.verify().expect("it is held");
            }
            all.verify().expect("it is held");
        }
        done.store(true, SeqCst);
        trying.join().expect("nobody got in");
    });
    all.unlock().expect("it was held");
    for guard in guards {
        guard.unlock().expect("it was held");
    }
    wait_until("all to be free", PATIENCE, || {
        let locker = open(&cluster);
        several
            .iter()
            .all(|name| locker.try_lock(name).is_ok_and(|got| got.is_some()))
    });
}
