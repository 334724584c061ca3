//! Nodes that others delete or make.

use std::thread;

use crosslock::LostReason;
use support::eventually;

use crate::{PATIENCE, line, locker, setup};

#[test]
fn holder_whose_node_is_deleted_hears_at_once() {
    let server = setup().start();
    let guard = locker(&server).lock("a").unwrap();
    let [node] = &line(&server, "a")[..] else {
        panic!("one has it")
    };
    let lost = guard.lost().clone();
    let mut session = server.session();
    session.delete(&format!("/locks/ns/a/{node}")).unwrap();
    let lost = lost.recv_timeout(PATIENCE).unwrap();
    assert_eq!(lost.reason, LostReason::NotOwner);
    let next = locker(&server).lock("a").unwrap();
    assert!(next.was_abandoned());
}

#[test]
fn name_that_servers_have_deleted_is_made_again() {
    let server = setup().start();
    let lock = locker(&server);
    for _ in 0..3 {
        lock.lock("a").unwrap().unlock().unwrap();
        let mut session = server.session();
        session.delete("/locks/ns/a").unwrap();
        session.delete("/locks/ns").unwrap();
        assert!(lock.inspect("a").unwrap().holders.is_empty());
        drop(lock.read("a").unwrap());
        drop(lock.lock_all(&["a", "b"]).unwrap());
        for name in ["/locks/ns/a", "/locks/ns/b"] {
            session.delete(name).unwrap();
        }
    }
}

#[test]
fn locks_of_curator_stand_in_the_same_line() {
    let server = setup().start();
    let lock = locker(&server);
    let guard = lock.lock("a").unwrap();
    let mut curator = server.session();
    let path = "/locks/ns/a/_c_01234567-89ab-4def-8123-456789abcdef-lock-";
    // Ephemeral and sequential.
    let node = curator.create(path, "127.0.0.1", 3).unwrap();
    assert!(node.starts_with(path), "{node}");
    let seen = lock.inspect("a").unwrap();
    assert_eq!((seen.holders.len(), seen.waiters.len()), (1, 1));
    guard.unlock().unwrap();
    assert!(lock.try_lock("a").unwrap().is_none());
    thread::scope(|scope| {
        let waits = scope.spawn(|| lock.try_lock_for("a", PATIENCE));
        assert!(eventually(PATIENCE, || line(&server, "a").len() == 2));
        curator.delete(&node).unwrap();
        let guard = waits.join().unwrap().unwrap().expect("it was released");
        assert!(!guard.was_abandoned());
    });
}
