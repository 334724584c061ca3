//! Sessions that end.

use std::thread;

use support::{ZooKeeper, eventually};

use crate::{PATIENCE, line, locker, setup};

/// Nor any that has lost its connection, and isn't over.
fn has_no_sessions(server: &ZooKeeper) -> bool {
    let found = server.word("mntr").unwrap_or_default();
    found.contains("zk_global_sessions\t0\n")
}

#[test]
fn session_of_a_locker_that_ends_is_closed_unless_its_lease_goes_on() {
    let server = setup().start();
    let lock = locker(&server);
    drop((lock.lock("a").unwrap(), lock));
    assert!(eventually(PATIENCE / 10, || has_no_sessions(&server)));

    let (giver, taker) = (locker(&server), locker(&server));
    let guard = giver.lock("a").unwrap();
    let token = guard.fencing_token();
    let ticket = guard.into_ticket().expect("a ticket");
    drop(giver);
    assert_eq!(line(&server, "a").len(), 1);
    let guard = taker.adopt(ticket).unwrap();
    assert!(guard.fencing_token() > token);
    guard.unlock().unwrap();
    assert!(line(&server, "a").is_empty());
}

/// What an earlier session has sent may be carried out late, between the waiter's last look and its new node.
#[test]
fn older_node_of_the_same_owner_lets_nobody_in() {
    let server = setup().start();
    let (lock, mut earlier) = (locker(&server), server.session());
    drop(lock.lock("a").unwrap());
    let holder = format!("/locks/ns/a/x-{}-lock-", "0".repeat(36));
    let holder = earlier.create(&holder, "", 3).unwrap();
    thread::scope(|scope| {
        let waits = scope.spawn(|| lock.try_lock_for("a", PATIENCE));
        assert!(eventually(PATIENCE, || line(&server, "a").len() == 2));
        let node = line(&server, "a").pop().unwrap();
        let uuid = &node[2..38];
        let older = format!("/locks/ns/a/x-{uuid}-lock--000000001");
        earlier.create(&older, "", 1).unwrap();
        // The waiter looks again.
        earlier.set(&holder, "").unwrap();
        let got_in = eventually(PATIENCE / 10, || waits.is_finished());
        assert!(!got_in, "another has the lock");
        earlier.close();
        assert!(waits.join().unwrap().unwrap().is_some());
    });
}
