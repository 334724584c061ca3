//! Who is served first when a master fails while others wait.

use std::time::Duration;

use support::{Cluster, wait_until};

use super::{PATIENCE, key, millis, name_on, order, start};

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
fn keeps_order_through_a_failover(ttl: Option<Duration>) {
    let cluster = start();
    for _ in 0..order::rounds() {
        let master = [0, 3].into_iter().find(|node| cluster.is_master(*node));
        let master = master.expect("one of them is");
        let replica = 3 - master;
        let name = name_on(&cluster, master, 0);
        let open = || {
            let builder = crosslock::Locker::builder(&cluster.url()).outage_timeout(PATIENCE);
            let builder = ttl
                .into_iter()
                .fold(builder, |builder, ttl| builder.ttl(ttl));
            builder.build().expect("open")
        };
        let fail = |guard| {
            cluster.node(master).kill();
            // For longer than any waiter of a ttl of 3 s has announced; left to themselves, nodes may need several
            // elections.
            std::thread::sleep(millis(2_600));
            let take_over = ["CLUSTER", "FAILOVER", "TAKEOVER"];
            cluster.node(replica).query::<()>(&take_over);
            cluster.wait_for_other_owner(&key(&name), master);
            drop(guard);
        };
        let waiting = |length| wait_for_queue(&cluster, [master, replica], &name, length);
        let order = order::order_of_service(&name, open, waiting, fail);
        assert_eq!(order, order::in_order());
        cluster.node(master).restart();
        cluster.wait_until_ok();
    }
}

#[test]
fn failover_keeps_the_order_of_waiters_with_a_short_ttl() {
    keeps_order_through_a_failover(Some(Duration::from_secs(3)));
}

#[test]
fn failover_keeps_the_order_of_waiters() {
    keeps_order_through_a_failover(None);
}
