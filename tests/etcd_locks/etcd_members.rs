//! Three members, of which some are lost: a lock is never had twice, and goes on as long as most of them do.

use std::thread;
use std::time::Duration;

use crosslock::{Error, LockGuard, Locker};
use support::{Etcd, EtcdCluster, wait_until};

use crate::{PATIENCE, wait_for};

/// Longer than it takes to choose another leader, on a busy machine too.
const TTL: Duration = Duration::from_secs(30);

fn cluster() -> EtcdCluster {
    Etcd::setup().proxies().cluster(3)
}

fn open(url: &str, ttl: Duration) -> Locker {
    let builder = Locker::builder(url).ttl(ttl);
    builder.outage_timeout(PATIENCE).build().expect("it opens")
}

/// Waits until the members, which may be choosing a leader, say that it is held.
#[track_caller]
fn verify_soon(guard: &LockGuard) {
    wait_until("it answers", PATIENCE, || match guard.verify() {
        Err(Error::Unavailable { .. }) => false,
        verified => verified.is_ok() || panic!("{verified:?}"),
    });
}

#[test]
fn lease_outlives_its_leader() {
    let cluster = cluster();
    let [locker, other] = [(); 2].map(|()| open(&cluster.url(), TTL));
    let guard = wait_for(&locker);
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            other
                .try_lock_for("n", 3 * PATIENCE)
                .unwrap()
                .unwrap()
                .fencing_token()
        });
        for kill in [true, false] {
            let leader = cluster.leader();
            if kill {
                cluster.kill(leader);
            } else {
                cluster.stop(leader);
            }
            cluster.wait_for_other_leader(leader);
            verify_soon(&guard);
            if kill {
                cluster.restart(leader);
            } else {
                cluster.go_on(leader);
            }
        }
        let token = guard.fencing_token();
        assert!(guard.is_held() && !waits.is_finished());
        // The members may be at it again: then a thread releases it.
        drop(guard);
        assert!(waits.join().unwrap() > token);
    });
}
