//! Sessions that end.

use std::thread;

use support::eventually;

use crate::{PATIENCE, line, locker, setup};

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
