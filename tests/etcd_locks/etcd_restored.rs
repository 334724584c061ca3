//! Servers come back with older data, as after a snapshot was restored: what the data says is true, and nobody hangs.

use crosslock::{LockGuard, Locker};
use support::Etcd;

use crate::{LONG, PATIENCE, take, wait_for, with};

fn patient(server: &Etcd) -> Locker {
    with(server, |builder| builder.ttl(LONG))
}

/// It would wait for itself.
#[test]
fn lock_that_came_back_is_not_kept_by_whoever_released_it() {
    let server = Etcd::start();
    let locker = patient(&server);
    type Take = fn(&Locker) -> LockGuard;
    let takes: [Take; 3] = [
        wait_for,
        |locker| locker.try_read_for("n", PATIENCE).unwrap().expect("free"),
        |locker| {
            let both = locker.try_lock_all_for(&["m", "n"], PATIENCE);
            drop(both.unwrap().expect("free"));
            wait_for(locker)
        },
    ];
    for again in takes {
        let guard = take(&locker);
        let backup = server.back_up();
        guard.unlock().unwrap();
        server.roll_back(&backup);
        again(&locker).unlock().unwrap();
        assert!(server.keys("crosslock/n/w/").is_empty());
    }
}
