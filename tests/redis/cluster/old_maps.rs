//! Nodes that are cut off, and go on telling what they knew: whom a client believes.

use std::time::{Duration, Instant};

use crosslock::Locker;
use support::{Cluster, Fault, Setup, wait_until};

use super::{PATIENCE, held_soon, key, millis, name_on};

/// Cuts the masters off from their replicas, each of which takes over without asking anybody.
fn split(cluster: &Cluster) {
    for master in 0..3 {
        for replica in 3..6 {
            cluster.node(master).cut_from(cluster.node(replica));
        }
    }
    for replica in 3..6 {
        let take_over = ["CLUSTER", "FAILOVER", "TAKEOVER"];
        cluster.node(replica).query::<()>(&take_over);
    }
    let is_up = |node| {
        let info: String = cluster.node(node).query(&["CLUSTER", "INFO"]);
        cluster.is_master(node) && info.contains("cluster_state:ok")
    };
    wait_until("the replicas to be masters", PATIENCE, || (3..6).all(is_up));
}

fn fault(cluster: &Cluster, nodes: std::ops::Range<usize>, fault: Fault) {
    nodes.for_each(|node| cluster.node(node).proxy().set(fault));
}

#[test]
fn older_masters_that_answer_first_are_not_believed_again() {
    let cluster = Setup::new().calm().proxies().cluster();
    let name = name_on(&cluster, 0, 0);
    // It looks nodes up each half a second.
    let builder = Locker::builder(&cluster.url()).ttl(Duration::from_secs(2));
    let asking = builder.build().expect("open");
    let patient = Locker::builder(&cluster.url()).ttl(2 * PATIENCE);
    let holding = patient.build().expect("open");
    drop(held_soon(&asking, &name));
    split(&cluster);
    fault(&cluster, 0..3, Fault::Refuse);
    drop(held_soon(&asking, &name));
    let guard = held_soon(&holding, &name);
    assert!(cluster.node(3).query::<bool>(&["EXISTS", &key(&name)]));
    // The older ones are nearer from now on.
    fault(&cluster, 3..6, Fault::Delay(millis(80)));
    fault(&cluster, 0..3, Fault::None);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(4) {
        let got = asking.try_lock_for(&name, millis(400));
        assert!(!matches!(got, Ok(Some(_))), "{got:?}");
    }
    assert!(guard.is_held());
    fault(&cluster, 3..6, Fault::None);
    guard.verify().expect("it is held");
}
