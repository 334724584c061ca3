//! The threads of one process, of which one has the lock and may lose it.

use crosslock::LostReason;

use super::*;
use support::{Proxy, RedisServer};

fn opened(server: &RedisServer, ttl: Duration) -> Locker {
    Locker::builder(&server.url()).ttl(ttl).build().unwrap()
}

#[test]
fn threads_of_a_process_stand_in_line_once_and_are_served_in_order() {
    const THREADS: usize = 8;
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let lock = opened(&server, LONG);
    let first = waiting(&lock, "a");
    wait_for_line(&server, 1);
    wait_for_inboxes(&server, 1);
    let owner = line(&server);
    server.reset_stats();
    let mut threads = vec![first];
    threads.append(&mut queued(&lock, "a", THREADS - 1));
    assert_eq!(line(&server), owner);
    assert_eq!(server.command_calls("evalsha"), 0);
    let mut token = guard.fencing_token();
    guard.unlock().unwrap();
    for thread in &threads {
        let guard = thread.result();
        assert!(guard.fencing_token() > token && !guard.was_abandoned());
        token = guard.fencing_token();
        guard.unlock().unwrap();
    }
    assert_nothing_left(&server);
}

#[test]
fn lock_that_this_process_holds_is_looked_at_without_the_server() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let lock = Locker::builder(&proxy.url()).ttl(LONG).build().unwrap();
    let guard = lock.lock("a").unwrap();
    let before = proxy.requests();
    for _ in 0..100 {
        assert!(lock.try_lock("a").unwrap().is_none());
    }
    for _ in 0..10 {
        assert!(lock.try_lock_for("a", millis(3)).unwrap().is_none());
    }
    let threads = queued(&lock, "a", 4);
    assert!(lock.clone().try_lock("a").unwrap().is_none());
    assert_eq!(proxy.requests(), before);
    drop(guard);
    threads.iter().for_each(|thread| drop(thread.result()));
    assert_nothing_left(&server);
    assert_eq!(inboxes(&server), 0);
}

#[test]
fn lock_that_this_process_waits_for_is_looked_at_without_the_server() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let proxy = Proxy::start(server.addr());
    let lock = Locker::builder(&proxy.url()).ttl(LONG).build().unwrap();
    let waiter = waiting(&lock, "a");
    wait_for_line(&server, 1);
    wait_for_inboxes(&server, 1);
    let before = proxy.requests();
    for _ in 0..100 {
        assert!(lock.try_lock("a").unwrap().is_none());
    }
    assert!(lock.try_lock_for("a", millis(20)).unwrap().is_none());
    assert_eq!(proxy.requests(), before);
    guard.unlock().unwrap();
    waiter.result().unlock().unwrap();
    assert!(lock.try_lock("a").unwrap().is_some());
    assert_nothing_left(&server);
}

const SLICE: Duration = Duration::from_secs(600);

fn locker(server: &RedisServer) -> Locker {
    let builder = Locker::builder(&server.url()).hand_over(SLICE);
    builder.build().unwrap()
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
