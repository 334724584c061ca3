//! What it costs to hear: commands, connections and threads.

use support::puppet::URL;
use support::{Child, RedisServer};

use super::*;

#[test]
fn hand_off_in_a_cluster_is_one_command_and_a_message() {
    let cluster = start();
    // Holder and waiter were connected to different nodes first, neither of which has the name.
    let urls = urls(&cluster);
    let name = name_on(&cluster, 0, 0);
    let holder = open(&urls[1]);
    // The node knows the scripts from now on.
    held(&holder, &name).unlock().expect("unlock");
    let guard = held(&holder, &name);
    let queue = Queue::of(1, &urls[2..], &name, cluster.node(0));
    let calls = |node: usize| {
        let commands = ["evalsha", "spublish", "publish"];
        commands.map(|command| cluster.node(node).command_calls(command))
    };
    let [scripts, messages, others] = calls(0);
    guard.unlock().expect("unlock");
    let (_, next) = queue.next();
    assert_eq!(calls(0), [scripts + 1, messages + 1, others]);
    for other in 1..6 {
        assert_eq!(calls(other), [0; 3], "node {other}");
    }
    next.unlock().expect("unlock");
}

/// As many as the helper waits for.
const NAMES: usize = 100;

#[test]
fn process_that_waits_for_many_names_has_one_connection_for_each_master() {
    let cluster = start();
    let holder = open(&cluster.url());
    let names: Vec<_> = (0..NAMES).map(|number| format!("name-{number}")).collect();
    let guards: Vec<_> = names.iter().map(|name| held(&holder, name)).collect();
    let url = cluster.url();
    let mut child = Child::spawn("waits for many names", &[(URL, &url)]);
    child.wait_for("waits", PATIENCE);
    wait_until("all to hear", PATIENCE, || {
        let all = names.iter().map(|name| (cluster.owner(&key(name)), name));
        all.map(|(node, name)| hearing(cluster.node(node), name))
            .sum::<usize>()
            == NAMES
    });
    let open = || -> Vec<_> { (0..6).map(|node| inboxes(cluster.node(node))).collect() };
    assert_eq!(open(), [1, 1, 1, 0, 0, 0]);
    child.tell("");
    assert_eq!(child.wait_for("threads", PATIENCE), "3");
    // One master has another in its place: the connection and the thread for it end.
    cluster.failover(3);
    wait_until("the inbox to follow", PATIENCE, || {
        open() == [0, 1, 1, 1, 0, 0]
    });
    for guard in guards {
        drop(guard.unlock());
    }
    child.tell("");
    child.wait_for("clean", PATIENCE);
    wait_until("all inboxes to end", PATIENCE, || open() == [0; 6]);
}

#[test]
#[allow(clippy::too_many_lines, reason = "one scene, step by step")]
fn channels_of_slots_that_are_not_waited_for_end_while_others_go_on() {
    let cluster = start();
    let urls = urls(&cluster);
    let (holder, waiter) = (open(&urls[0]), open(&urls[1]));
    let names: Vec<_> = (0..30).map(|number| name_on(&cluster, 0, number)).collect();
    let slots: std::collections::HashSet<_> = names.iter().map(|name| slot(name)).collect();
    let guards: Vec<_> = names.iter().map(|name| held(&holder, name)).collect();
    let (locker, last) = (waiter.clone(), names[0].clone());
    let waiting = thread::spawn(move || locker.try_lock_for(&last, 5 * PATIENCE));
    wait_until("the first to wait", PATIENCE, || {
        hearing(cluster.node(0), &names[0]) == 1
    });
    let timed: Vec<_> = names[1..]
        .iter()
        .map(|name| {
            let (locker, name) = (waiter.clone(), name.clone());
            thread::spawn(move || locker.try_lock_for(&name, Duration::from_secs(5)).map(drop))
        })
        .collect();
    wait_until("all channels", PATIENCE, || {
        channels(cluster.node(0)) == 2 * slots.len()
    });
    for thread in timed {
        let _ = thread.join().expect("no panic");
    }
    // One of them leaves the node meanwhile.
    cluster.move_slot(slot(&names[1]), 1);
    wait_until("the unused channels to end", PATIENCE, || {
        channels(cluster.node(0)) == 2
    });
    assert_eq!(inboxes(cluster.node(0)), 1, "the connection lives");
    // A slot whose channels have ended is heard of again.
    let queue = Queue::of(1, &urls, &names[2], cluster.node(0));
    for guard in guards {
        drop(guard.unlock());
    }
    drop(queue.next());
    let first = waiting.join().expect("no panic").expect("lock");
    drop(first.expect("it has the lock"));
}

#[test]
fn process_without_descriptors_for_an_inbox_is_warned_once() {
    let server = RedisServer::start();
    let url = server.url();
    let _guard = held(&open(&url), "taken");
    let args = [(URL, &*url), ("TEST_FILE", "taken")];
    let mut child = Child::spawn("waits without descriptors", &args);
    assert_eq!(child.wait_for("warned", PATIENCE), "1");
}
