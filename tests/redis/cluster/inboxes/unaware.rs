//! Waiters that don't know yet at the release that another server has the name: they stand still meanwhile, or the
//! sentinels have just named it.

use support::SentinelSet;
use support::puppet::Puppet;

use super::*;

/// Processes that wait for a name at that server, in this order, and stand still.
fn stopped_in_line(url: &str, name: &str, server: &Member) -> Vec<Puppet> {
    let mut processes = Puppet::start_many(5, url, LONG);
    for (number, process) in processes.iter_mut().enumerate() {
        process.pass(name);
        wait_until("the next to wait and to hear", PATIENCE, || {
            hearing(server, name) > number
        });
    }
    processes.iter().for_each(Puppet::stop);
    processes
}

/// Lets the name go, which nobody hears, has the processes go on, and asserts that they have it in their order.
#[track_caller]
fn assert_served_in_order(guard: LockGuard, mut processes: Vec<Puppet>) {
    let mut last = guard.fencing_token();
    guard.unlock().expect("unlock");
    processes.iter().for_each(Puppet::cont);
    for (number, process) in processes.iter_mut().enumerate() {
        let holding = process.holding();
        assert!(holding.token > last, "{number}: {holding:?} after {last}");
        assert!(!holding.abandoned, "{number}");
        last = holding.token;
        process.unlocked();
    }
}

#[test]
fn release_at_a_new_node_passes_nobody_over_who_does_not_know_of_it() {
    for moves in [true, false] {
        let cluster = start();
        let name = name_on(&cluster, 0, 0);
        let guard = held(&open(&cluster.url()), &name);
        let processes = stopped_in_line(&cluster.url(), &name, cluster.node(0));
        if moves {
            cluster.move_slot(slot(&name), 1);
        } else {
            cluster.failover(3);
        }
        assert_served_in_order(guard, processes);
    }
}

#[test]
fn release_at_the_new_master_of_sentinels_passes_nobody_over_who_does_not_know_of_it() {
    let set = SentinelSet::start();
    let guard = held(&open(&set.url()), "n");
    let processes = stopped_in_line(&set.url(), "n", set.member(set.master()));
    set.failover();
    // The old master takes releases until it is told.
    set.wait_until_settled();
    assert_served_in_order(guard, processes);
}

#[test]
fn waiters_keep_their_order_when_sentinels_replace_the_master() {
    let set = SentinelSet::start();
    let old = set.master();
    let guard = held(&open(&set.url()), "n");
    let queue = Queue::of(4, &[set.url()], "n", set.member(old));
    let new = set.failover();
    assert_ne!(new, old);
    // The old master takes releases until it is told.
    set.wait_until_settled();
    queue.assert_still_waiting();
    queue.assert_served_in_order(guard);
    // Sentinels themselves listen there.
    wait_until("nobody to hear at the old master", PATIENCE, || {
        let words = ["PUBSUB", "CHANNELS", "crosslock:*"];
        set.member(old).query::<Vec<String>>(&words).is_empty()
    });
}
