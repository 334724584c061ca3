//! The threads of one process.

use crosslock::Error;

use super::watch::{
    FENCE, LOCK, assert_nothing_left, holder, inboxes, line, wait_for_inboxes, wait_for_line,
};
use super::*;
use support::puppet::Puppet;
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
fn place_in_line_passes_to_the_next_thread_when_the_first_gives_up() {
    const TTL: Duration = millis(600);
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let lock = opened(&server, TTL);
    let first = calling(&lock, |lock| lock.try_lock_for("a", millis(500)));
    wait_for_line(&server, 1);
    let owner = line(&server).remove(0);
    let second = calling(&lock, |lock| lock.try_lock_for("a", millis(900)));
    second.wait_until_asleep();
    let third = waiting(&lock, "a");
    third.wait_until_asleep();
    let mut other = Puppet::start(&server.url(), LONG);
    other.pass("a");
    wait_for_line(&server, 2);

    assert!(first.result().is_none());
    assert!(second.result().is_none());
    // The heartbeats of the third keep the place: without them it would be lost by now.
    thread::sleep(2 * TTL);
    assert_eq!(line(&server).first(), Some(&owner));
    assert_eq!(line(&server).len(), 2);
    guard.unlock().unwrap();
    assert_eq!(server.get(LOCK), Some(owner));
    let guard = third.result();
    assert!(!other.has_said_that_it_holds());
    let token = guard.fencing_token();
    guard.unlock().unwrap();
    assert!(other.holding().token > token);
    other.unlocked();
    assert_nothing_left(&server);
}

#[test]
fn last_thread_to_give_up_takes_the_process_out_of_the_line() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let lock = opened(&server, LONG);
    let threads: Vec<Pending<()>> = (0..6)
        .map(|at| {
            calling(&lock, move |lock| {
                wait_in_vain(lock, "a", millis(200 + 30 * at));
                Ok(())
            })
        })
        .collect();
    threads.iter().for_each(Pending::result);
    wait_until("the last to leave", PATIENCE, || {
        server.keys() == [LOCK, FENCE]
    });
    guard.unlock().unwrap();
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

#[test]
fn names_and_namespaces_have_queues_of_their_own() {
    let server = RedisServer::start();
    let lock = opened(&server, LONG);
    let _held = lock.lock("a").unwrap();
    let waiter = waiting(&lock, "a");
    waiter.wait_until_asleep();
    assert!(lock.try_lock("b").unwrap().is_some());
    assert!(
        lock.with_namespace("other")
            .unwrap()
            .try_lock("a")
            .unwrap()
            .is_some()
    );
    assert!(!waiter.is_over());
}

#[test]
fn thread_that_panics_with_the_lock_serves_the_next() {
    let server = RedisServer::start();
    let lock = opened(&server, LONG);
    let guard = lock.lock("a").unwrap();
    let next = waiting(&lock, "a");
    next.wait_until_asleep();
    let panicked = thread::spawn(move || {
        let _guard = guard;
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    panicked.join().unwrap_err();
    next.result().unlock().unwrap();
    assert_nothing_left(&server);
}

#[test]
fn attempts_count_in_the_local_queue_as_well() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).attempts(3);
    let lock = builder.build().unwrap();
    let _guard = lock.lock("a").unwrap();
    let error = calling(&lock, |lock| lock.lock("a")).outcome().unwrap_err();
    assert!(matches!(error, Error::Busy { attempts: 3, .. }), "{error}");
    let outcome = calling(&lock, |lock| lock.try_lock_for("a", PATIENCE));
    assert!(outcome.result().is_none());
    assert_eq!(server.keys(), [LOCK, FENCE]);
}
