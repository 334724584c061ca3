//! What it costs to hear: commands, connections and threads.

use support::Child;
use support::puppet::URL;

use super::moved::urls;
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
    let node = cluster.node(0);
    let queue = Queue::of(1, &urls[2..], &name, node);
    let calls = |node: usize, command: &str| cluster.node(node).command_calls(command);
    let before = [
        calls(0, "evalsha"),
        calls(0, "spublish"),
        calls(0, "publish"),
    ];
    guard.unlock().expect("unlock");
    let (_, next) = queue
        .granted
        .recv_timeout(PATIENCE)
        .expect("it has the lock");
    let after = [
        calls(0, "evalsha"),
        calls(0, "spublish"),
        calls(0, "publish"),
    ];
    assert_eq!(after, [before[0] + 1, before[1] + 1, before[2]]);
    for other in 1..6 {
        let told = ["evalsha", "spublish", "publish"].map(|command| calls(other, command));
        assert_eq!(told, [0; 3], "node {other}");
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
