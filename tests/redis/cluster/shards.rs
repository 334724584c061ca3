//! Delay queues that are split into shards, on several nodes.

use std::{collections::BTreeSet, time::Duration};

use crosslock::{DelayQueue, TaskState};

use super::{open, shared};

const LONG: Duration = Duration::from_secs(10);

const SHARDS: usize = 16;

fn shard(at: usize) -> String {
    format!("{{crosslock:spread/{at}/{SHARDS}}}:shard:tasks")
}

#[test]
fn tasks_are_spread_and_another_number_of_shards_is_another_queue() {
    let cluster = shared();
    let locker = open(&cluster);
    let queue = || locker.delay_queue::<u32>("spread").expect("a queue");
    let count = |queue: &DelayQueue<u32>| queue.counts().expect("a cluster").delayed;
    let tasks: Vec<_> = (0..160).map(|value| (value, LONG * (value + 6))).collect();
    assert_eq!(queue().insert_all(&tasks).expect("a cluster").len(), 160);
    let owners = (0..SHARDS).map(|at| cluster.owner(&shard(at)));
    assert_eq!(owners.clone().collect::<BTreeSet<_>>().len(), 3);
    for (at, owner) in owners.enumerate() {
        let length: u64 = cluster.node(owner).query(&["HLEN", &shard(at)]);
        assert!(length > 0, "{at}");
    }
    // All together, in the order of their times.
    let first = queue().list(TaskState::Delayed, 20).expect("a cluster");
    assert!(first.iter().map(|task| task.value).eq(0..20), "{first:?}");
    assert!(queue().remove(&first[0].id).expect("a cluster"));
    assert_eq!(count(&queue()), 159);
    for others in [1, 8, 17] {
        let other = queue().shards(others).expect("a number");
        assert_eq!(count(&other), 0, "{others}");
    }
}
