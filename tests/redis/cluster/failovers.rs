//! Masters that fail, are stopped, or hand over to their replicas, with locks held and waited for.

use std::time::Duration;

use crosslock::{LockGuard, Locker};
use support::{Cluster, wait_until};

use super::{PATIENCE, held, held_soon, key, name_on};

/// A lease that outlives a failover.
const TTL: Duration = Duration::from_secs(20);

fn patient(cluster: &Cluster) -> Locker {
    Locker::builder(&cluster.url())
        .ttl(TTL)
        .build()
        .expect("open")
}

/// A lock that the replica has, too.
pub(crate) fn replicated(cluster: &Cluster, locker: &Locker, name: &str) -> LockGuard {
    let guard = held(locker, name);
    let owner = cluster.node(cluster.owner(&key(name)));
    wait_until("the replica to have it", PATIENCE, || {
        let offset = |field: &str| -> Option<u64> { owner.info(field)?.parse().ok() };
        let replica = owner.info("slave0").unwrap_or_default();
        let acknowledged = replica
            .split(',')
            .find_map(|part| part.strip_prefix("offset="));
        acknowledged.and_then(|offset| offset.parse().ok()) >= offset("master_repl_offset")
    });
    guard
}

#[test]
fn cluster_is_found_again_by_any_node_that_is_left() {
    let cluster = Cluster::start();
    let locker = patient(&cluster);
    let name = name_on(&cluster, 0, 0);
    drop(held(&locker, &name));
    // Two of the masters, and a replica of the third.
    cluster.node(0).kill();
    cluster.wait_for_other_owner(&key(&name), 0);
    cluster.failover(4);
    drop(held_soon(&locker, &name));
    for node in 0..3 {
        let name = format!("any-{node}");
        drop(held_soon(&locker, &name));
    }
}
