//! The one thread and connection that hear of grants, for threads that come and go.

use super::*;
use support::{Child, RedisServer};

#[test]
fn one_inbox_serves_all_threads_names_and_namespaces_and_ends_with_the_last_clone() {
    let server = RedisServer::start();
    let args = [(URL, server.url()), (TTL, "60000".into())];
    let args = args.each_ref().map(|(name, value)| (*name, value.as_str()));
    let mut child = Child::spawn("waits for many", &args);
    assert_eq!(child.wait_for("before", PATIENCE), "0");
    assert_eq!(inboxes(&server), 0);
    child.tell("go");
    child.wait_for("wait", PATIENCE);
    wait_until("nine lines of one", PATIENCE, || {
        let keys = server.keys();
        let lines = keys.iter().filter(|key| key.ends_with(":queue"));
        lines
            .filter(|key| server.query::<u64>(&["LLEN", key]) == 1)
            .count()
            == 9
    });
    let clients: String = server.query(&["CLIENT", "LIST", "TYPE", "pubsub"]);
    assert_eq!(clients.lines().count(), 1, "{clients}");
    // Two channels for each namespace: its own, and that of leases that were broken.
    assert!(clients.contains(" sub=6 "), "{clients}");
    child.tell("go");
    assert_eq!(child.wait_for("waiting", PATIENCE), "1");
    assert_eq!(child.wait_for("after", PATIENCE), "1");
    assert_eq!(inboxes(&server), 1);
    child.tell("go");
    assert_eq!(child.wait_for("clone", PATIENCE), "1");
    let ended: u64 = child.wait_for("ended", PATIENCE).parse().unwrap();
    report("the inbox ended so many ms after its locker", ended);
    wait_for_inboxes(&server, 0);
    assert_nothing_left(&server);
}
