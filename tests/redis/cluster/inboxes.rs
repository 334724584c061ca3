//! Where waiters hear of grants when the slot of their lock moves.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crosslock::Locker;
use support::wait_until;

use super::{PATIENCE, held, key, name_on, slot, start};

#[test]
fn waiters_keep_their_order_when_the_slot_moves() {
    let cluster = start();
    let name = &name_on(&cluster, 0, 0);
    // Each is connected to another node first. Heartbeats, after 140 s at the earliest, play no part.
    let open = |number: usize| {
        let url = format!(
            "redis+cluster://{}/",
            cluster.node(number % 3).public_addr()
        );
        let builder = Locker::builder(&url).ttl(Duration::from_secs(600));
        builder.build().expect("open")
    };
    let mut guard = held(&open(1), name);
    let (tell, granted) = mpsc::channel();
    let hearing = || {
        let waiters = format!("{}:waiters", key(name));
        let waiters: Vec<String> = cluster.node(0).query(&["HVALS", &waiters]);
        waiters.iter().filter(|one| one.contains(":inbox:")).count()
    };
    for number in 0..4 {
        let (locker, tell, wanted) = (open(number), tell.clone(), name.clone());
        // Nobody listens when the test has failed.
        thread::spawn(move || {
            tell.send((number, locker.lock(&wanted).expect("lock")))
                .is_ok()
        });
        wait_until("the next to hear", PATIENCE, || hearing() > number);
    }
    cluster.move_slot(slot(name), 1);
    assert!(granted.try_recv().is_err());
    for expected in 0..4 {
        let token = guard.fencing_token();
        // Its process may find first that its node has changed.
        drop(guard.unlock());
        let next = granted.recv_timeout(PATIENCE).expect("the next has it");
        guard = next.1;
        assert_eq!(next.0, expected);
        assert!(guard.fencing_token() > token && !guard.was_abandoned());
    }
    wait_until("nobody to hear at the old node", PATIENCE, || {
        let clients: String = cluster.node(0).query(&["CLIENT", "LIST", "TYPE", "pubsub"]);
        clients.lines().count() == 0
    });
}
