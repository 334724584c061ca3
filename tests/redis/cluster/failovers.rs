//! Masters that fail, are stopped, or hand over to their replicas, with locks held and waited for.

use std::thread;
use std::time::{Duration, Instant};

use crosslock::{LockGuard, Locker};
use support::{Cluster, Fault, Setup, Stopwatch, wait_until, within};

use super::{
    PATIENCE, held, held_soon, key, millis, name_on, open, order, start, taken_soon, verified_soon,
};

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
fn stopped_master_that_comes_back_late_has_no_say() {
    let cluster = Cluster::start();
    let locker = patient(&cluster);
    let name = name_on(&cluster, 1, 0);
    let guard = replicated(&cluster, &locker, &name);
    let token = guard.fencing_token();
    cluster.node(1).stop();
    // Others end in time meanwhile.
    let other = patient(&cluster);
    let got = within(millis(700), || other.try_lock_for(&name, millis(700)));
    assert!(!matches!(got, Ok(Some(_))), "{got:?}");
    cluster.wait_for_other_owner(&key(&name), 1);
    verified_soon(&guard);
    drop(guard);
    let next = held_soon(&other, &name);
    assert!(next.fencing_token() > token);
    cluster.node(1).cont();
    let got = locker.try_lock(&name);
    assert!(!matches!(got, Ok(Some(_))), "{got:?}");
    cluster.wait_until_ok();
    taken_soon(&locker, &name);
    verified_soon(&next);
}

#[test]
fn waiter_is_served_soon_after_the_successor_of_a_stopped_master_answers() {
    let cluster = Cluster::start();
    let short = || {
        let builder = Locker::builder(&cluster.url()).ttl(Duration::from_secs(2));
        builder.outage_timeout(PATIENCE).build().expect("open")
    };
    let (holder, waiter) = (short(), short());
    let name = name_on(&cluster, 0, 0);
    let guard = replicated(&cluster, &holder, &name);
    let token = guard.fencing_token();
    let waiting = {
        let name = name.clone();
        thread::spawn(move || {
            let guard = waiter.lock(&name).expect("lock");
            (guard, Instant::now())
        })
    };
    wait_until("a waiter", PATIENCE, || {
        !holder.inspect(&name).expect("inspect").waiters.is_empty()
    });
    cluster.node(0).stop();
    drop(guard);
    let watch = Stopwatch::start();
    wait_until("the replica to take over", PATIENCE, || {
        cluster.is_master(3)
    });
    let answered = Instant::now();
    let (guard, got) = waiting.join().expect("no panic");
    let took = got.saturating_duration_since(answered);
    println!("the waiter had the lock {took:?} after the new master answered");
    watch.assert_took(took, Duration::from_secs(1));
    assert!(guard.fencing_token() > token);
    cluster.node(0).cont();
    guard.unlock().expect("it was held");
}

#[test]
fn nodes_that_come_and_go_take_their_locks_along() {
    let mut cluster = start();
    let locker = open(&cluster);
    let name = name_on(&cluster, 0, 0);
    let guard = held(&locker, &name);
    let new = cluster.add_node();
    // It takes no keys before.
    cluster.wait_until_ok();
    cluster.move_slot(super::slot(&name), new);
    guard.verify().expect("it is held at the new node");
    assert!(open(&cluster).try_lock(&name).expect("try_lock").is_none());
    cluster.move_slot(super::slot(&name), 2);
    cluster.remove_node(new);
    guard.verify().expect("it is held where it came to");
    drop(guard);
    drop(held_soon(&locker, &name));
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

fn delay(cluster: &Cluster, fault: Fault) {
    (1..6).for_each(|node| cluster.node(node).proxy().set(fault));
}

#[test]
fn master_that_is_cut_off_from_the_others_is_left_for_its_replica() {
    let cluster = Setup::new().proxies().cluster();
    let locker = patient(&cluster);
    let name = name_on(&cluster, 0, 0);
    let guard = replicated(&cluster, &locker, &name);
    let token = guard.fencing_token();
    cluster.isolate(0);
    wait_until("the replica to take over", PATIENCE, || {
        cluster.is_master(3)
    });
    verified_soon(&guard);
    // The old one, which clients reach, goes on telling that it is the master: nobody believes it.
    for _ in 0..10 {
        taken_soon(&patient(&cluster), &name);
    }
    // Also where all others are farther away, and answer later.
    delay(&cluster, Fault::Delay(millis(40)));
    taken_soon(&patient(&cluster), &name);
    delay(&cluster, Fault::None);
    drop(guard);
    assert!(held_soon(&locker, &name).fencing_token() > token);
    cluster.join(0);
    cluster.wait_until_ok();
    drop(held_soon(&locker, &name));
}

/// Waits until so many wait at the master and, all of them, at its replica.
#[track_caller]
fn wait_for_queue(cluster: &Cluster, nodes: [usize; 2], name: &str, length: u64) {
    let queue = format!("{}:queue", key(name));
    wait_until("the queue to be replicated", PATIENCE, || {
        nodes.iter().all(|node| {
            let mut connection = cluster.node(*node).connection();
            let readonly = redis::cmd("READONLY").exec(&mut connection);
            let found = redis::cmd("LLEN").arg(&queue).query::<u64>(&mut connection);
            readonly.is_ok() && found.is_ok_and(|found| found == length)
        })
    });
}

/// The master is killed while one process holds the lock and others wait. Their order is that of their coming.
#[test]
fn failover_keeps_the_order_of_waiters() {
    let cluster = start();
    for ttl in [3, 10].map(Duration::from_secs).repeat(order::rounds()) {
        let master = [0, 3].into_iter().find(|node| cluster.is_master(*node));
        let master = master.expect("one of them is");
        let replica = 3 - master;
        let name = name_on(&cluster, master, 0);
        let open = || {
            let builder = Locker::builder(&cluster.url()).ttl(ttl);
            builder.outage_timeout(PATIENCE).build().expect("open")
        };
        let fail = |guard| {
            cluster.node(master).kill();
            // For longer than any waiter of a ttl of 3 s has announced; left to themselves, nodes may need several
            // elections.
            thread::sleep(millis(2_600));
            let take_over = ["CLUSTER", "FAILOVER", "TAKEOVER"];
            cluster.node(replica).query::<()>(&take_over);
            cluster.wait_for_other_owner(&key(&name), master);
            drop(guard);
        };
        let waiting = |length| wait_for_queue(&cluster, [master, replica], &name, length);
        let order = order::order_of_service(&name, open, waiting, fail);
        assert_eq!(order, order::in_order(), "{ttl:?}");
        cluster.node(master).restart();
        cluster.wait_until_ok();
    }
}
