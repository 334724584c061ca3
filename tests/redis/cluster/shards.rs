//! Delay queues that are split into shards, on several nodes.

use std::{collections::BTreeSet, time::Duration};

use crosslock::{DelayQueue, Locker, TaskState};
use support::Cluster;

use super::{open, shared};

/// Longer than a worker needs, and shorter than until its next heartbeat.
const LONG: Duration = Duration::from_secs(10);

const SHARDS: usize = 16;

fn queue(locker: &Locker, name: &str) -> DelayQueue<u32> {
    locker.delay_queue(name).expect("a queue")
}

fn shard(name: &str, at: usize) -> String {
    format!("{{crosslock:{name}/{at}/{SHARDS}}}:shard:tasks")
}

/// How many tasks each shard has.
fn lengths(cluster: &Cluster, name: &str) -> Vec<u64> {
    let length = |at| {
        let key = shard(name, at);
        cluster.node(cluster.owner(&key)).query(&["HLEN", &key])
    };
    (0..SHARDS).map(length).collect()
}

#[test]
fn tasks_are_spread_and_another_number_of_shards_is_another_queue() {
    let cluster = shared();
    let locker = open(&cluster);
    let tasks: Vec<_> = (0..160).map(|value| (value, LONG * (value + 6))).collect();
    let all = queue(&locker, "spread");
    assert_eq!(all.insert_all(&tasks).expect("a cluster").len(), 160);
    let lengths = lengths(&cluster, "spread");
    assert_eq!(lengths.iter().sum::<u64>(), 160);
    assert!(lengths.iter().all(|length| *length > 0), "{lengths:?}");
    let owners = (0..SHARDS).map(|at| cluster.owner(&shard("spread", at)));
    assert_eq!(owners.collect::<BTreeSet<_>>().len(), 3);
    assert_eq!(all.counts().expect("a cluster").delayed, 160);
    // All together, in the order of their times.
    let first = all.list(TaskState::Delayed, 20).expect("a cluster");
    let values: Vec<_> = first.iter().map(|task| task.value).collect();
    assert_eq!(values, (0..20).collect::<Vec<_>>());
    for task in &first {
        assert!(all.remove(&task.id).expect("a cluster"));
    }
    assert_eq!(all.counts().expect("a cluster").delayed, 140);
    for others in [1, 8, 17] {
        let other = queue(&locker, "spread").shards(others).expect("a number");
        assert_eq!(other.counts().expect("a cluster").delayed, 0, "{others}");
    }
}
