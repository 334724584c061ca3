//! Guards that are lost while other threads of the process wait.

use crosslock::{Error, LostReason};

use super::watch::{LOCK, assert_nothing_left, wait_for_line};
use super::*;
use support::RedisServer;

const SLICE: Duration = Duration::from_secs(600);

fn locker(server: &RedisServer) -> Locker {
    let builder = Locker::builder(&server.url()).hand_over(SLICE);
    builder.build().unwrap()
}

#[test]
fn guard_found_lost_hands_nothing_over() {
    let server = RedisServer::start();
    let lock = locker(&server);
    let guard = lock.lock("a").unwrap();
    let threads = queued(&lock, "a", 2);
    server.query::<()>(&["DEL", LOCK]);
    assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
    // It isn't dropped: the next asks the server all the same.
    let next = threads[0].result();
    assert!(next.was_abandoned() && next.fencing_token() > guard.fencing_token());
    next.verify().unwrap();
    drop(guard);
    next.verify().unwrap();
    assert!(!threads[1].is_over());
    next.unlock().unwrap();
    threads[1].result().unlock().unwrap();
    assert_nothing_left(&server);
}

#[test]
fn guard_whose_loss_is_found_by_its_release_hands_nothing_over() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).hand_over(Duration::ZERO);
    let lock = builder.build().unwrap();
    let guard = lock.lock("a").unwrap();
    let token = guard.fencing_token();
    let threads = queued(&lock, "a", 1);
    server.query::<()>(&["DEL", LOCK]);
    assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
    let next = threads[0].result();
    assert!(next.fencing_token() > token);
    next.verify().unwrap();
    next.unlock().unwrap();
    assert_nothing_left(&server);
}

#[test]
fn guard_that_expires_hands_nothing_over_and_blocks_nobody() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).ttl(millis(250)).renew(false);
    let lock = builder.hand_over(SLICE).build().unwrap();
    let mut kept = vec![lock.lock("a").unwrap()];
    for thread in queued(&lock, "a", 3) {
        // Nobody drops anything.
        let guard = thread.result();
        let before = kept.last().unwrap();
        assert!(guard.was_abandoned() && guard.fencing_token() > before.fencing_token());
        assert!(!before.is_held());
        let lost = before.lost().recv_timeout(PATIENCE).unwrap();
        assert_eq!(lost.reason, LostReason::Expired);
        guard.check().unwrap();
        kept.push(guard);
    }
    let last = kept.pop().unwrap();
    for guard in kept {
        assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
    }
    drop(last);
    wait_until("the last lease to end", PATIENCE, || {
        server.get(LOCK).is_none()
    });
    assert_nothing_left(&server);
}

#[test]
fn stolen_lock_is_waited_for_at_the_server() {
    let server = RedisServer::start();
    let lock = locker(&server);
    let guard = lock.lock("a").unwrap();
    let threads = queued(&lock, "a", 2);
    server.query::<()>(&["SET", LOCK, "a thief", "PX", "60000"]);
    assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
    wait_for_line(&server, 1);
    drop(guard);
    assert_eq!(server.get(LOCK).as_deref(), Some("a thief"));
    assert!(!threads[0].is_over() && !threads[1].is_over());
    server.query::<()>(&["DEL", LOCK]);
    for thread in &threads {
        let guard = thread.result();
        guard.verify().unwrap();
        guard.unlock().unwrap();
    }
    assert_nothing_left(&server);
}

#[test]
fn loss_after_a_hand_over_is_told_to_the_new_holder_only() {
    let server = RedisServer::start();
    let lock = locker(&server);
    let guard = lock.lock("a").unwrap();
    let lost_before = guard.lost().clone();
    let next = waiting(&lock, "a");
    next.wait_until_asleep();
    guard.unlock().unwrap();
    let guard = next.result();
    server.query::<()>(&["DEL", LOCK]);
    assert!(guard.verify().is_err());
    assert_eq!(
        guard.lost().recv_timeout(PATIENCE).unwrap().reason,
        LostReason::NotOwner
    );
    // Closed without a message: that one was released.
    assert!(lost_before.recv_timeout(PATIENCE).is_err());
    assert!(lost_before.is_empty());
}
