//! Slots that one node takes over while their owner has forgotten that they go: the locks that have moved are held.

use std::time::Duration;

use crosslock::{Error, LockGuard, Locker};
use support::{Cluster, Migration, wait_until};

use super::{PATIENCE, held, held_soon, key, name_on, open, slot, start};

/// A locker whose leases aren't renewed meanwhile, nor do they end.
fn lasting(cluster: &Cluster) -> Locker {
    let builder = Locker::builder(&cluster.url()).ttl(5 * PATIENCE);
    builder.build().expect("open")
}

/// A lock that the replica has, too.
fn replicated(cluster: &Cluster, locker: &Locker, name: &str) -> LockGuard {
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

/// Brings all keys of the name to node 1, which hasn't the slot yet.
fn half_done<'a>(cluster: &'a Cluster, name: &str) -> Migration<'a> {
    let migration = cluster.migration(slot(name), 1);
    migration.import();
    migration.migrate();
    migration.move_keys();
    migration
}

/// A failover by hand, after which the new master knows nothing of the slot.
fn fail_over(cluster: &Cluster) {
    // The replica has none of the keys any more.
    wait_until("the replica to have caught up", PATIENCE, || {
        cluster.node(3).keys().is_empty()
    });
    cluster.failover(3);
}

#[track_caller]
fn assert_refused(locker: &Locker, name: &str) {
    let limit = Duration::from_secs(1);
    match locker.try_lock_for(name, limit) {
        Ok(got) => assert!(got.is_none(), "two have it: {got:?}"),
        Err(error) => assert!(matches!(error, Error::Unavailable { .. }), "{error:?}"),
    }
}

#[test]
fn lock_that_moved_is_not_granted_by_the_successor_of_its_old_node() {
    let cluster = start();
    let (locker, known, name) = (lasting(&cluster), open(&cluster), name_on(&cluster, 0, 0));
    // One process knows the old map.
    drop(held(&known, &name));
    let guard = replicated(&cluster, &locker, &name);
    let token = guard.fencing_token();
    half_done(&cluster, &name);
    fail_over(&cluster);
    assert_refused(&known, &name);
    for _ in 0..3 {
        assert_refused(&open(&cluster), &name);
    }
    assert!(guard.is_held());
    // Nothing is in the way of mending it.
    wait_until("what was refused to be given back", PATIENCE, || {
        cluster.node(3).keys().is_empty()
    });
    cluster.fix();
    assert!(open(&cluster).try_lock(&name).expect("try_lock").is_none());
    guard.unlock().expect("it was held");
    assert!(held_soon(&known, &name).fencing_token() > token);
}

#[test]
fn lock_that_moved_is_refused_where_its_new_node_is_gone_to_those_that_were_sent_there() {
    let cluster = start();
    // It looks nothing up meanwhile.
    let (locker, sent, name) = (
        lasting(&cluster),
        lasting(&cluster),
        name_on(&cluster, 0, 0),
    );
    drop(held(&sent, &name));
    let guard = held(&locker, &name);
    half_done(&cluster, &name);
    assert_refused(&sent, &name);
    cluster.node(1).stop();
    let slot = slot(&name).to_string();
    let forget = ["CLUSTER", "SETSLOT", &slot, "STABLE"];
    cluster.node(0).query::<()>(&forget);
    assert_refused(&sent, &name);
    assert!(guard.is_held());
    cluster.node(1).cont();
}
