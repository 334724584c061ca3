//! Names on several masters, all or none.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::Locker;
use support::{Cluster, wait_until};

use super::{PATIENCE, held, millis, name_on, open, shared};

/// A name on each master, in the order of their slots: others each time.
pub(super) fn names(cluster: &Cluster) -> [String; 3] {
    static NEXT: AtomicUsize = AtomicUsize::new(10);
    let number = NEXT.fetch_add(1, SeqCst);
    [0, 1, 2].map(|node| name_on(cluster, node, number))
}

fn is_free(locker: &Locker, name: &str) -> bool {
    locker.try_lock(name).expect("try_lock").is_some()
}

/// Whether nobody has the name and nobody waits for it.
pub(super) fn is_left_alone(locker: &Locker, name: &str) -> bool {
    let seen = locker.inspect(name).expect("inspect");
    seen.holders.is_empty() && seen.waiters.is_empty()
}

#[track_caller]
pub(super) fn wait_for_waiter(locker: &Locker, name: &str) {
    wait_until("a waiter", PATIENCE, || {
        !locker.inspect(name).expect("inspect").waiters.is_empty()
    });
}

#[test]
fn waiter_keeps_what_is_in_front_and_nothing_behind() {
    let cluster = shared();
    let builder = Locker::builder(&cluster.url()).ttl(millis(1_500));
    let (locker, other) = (open(&cluster), builder.build().expect("open"));
    let [a, b, c] = &names(&cluster);
    let middle = held(&locker, b);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| other.try_lock_all_for(&[c, b, a], PATIENCE));
        wait_for_waiter(&locker, b);
        // For longer than its leases last without a renewal.
        let until = Instant::now() + Duration::from_secs(3);
        while Instant::now() < until {
            assert!(!is_free(&locker, a) && is_free(&locker, c));
            thread::sleep(millis(50));
        }
        middle.unlock().expect("it was held");
        let all = waiting.join().unwrap().expect("lock_all").expect("it came");
        all.verify().expect("it is held");
        assert!([a, b, c].iter().all(|name| !is_free(&locker, name)));
    });
    assert!([a, b, c].iter().all(|name| is_left_alone(&locker, name)));
}
