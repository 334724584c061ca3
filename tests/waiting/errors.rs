//! What goes wrong with the server while one waits.

use crosslock::Error;

use super::watch::{FENCE, assert_nothing_left, holder, line, wait_for_inboxes, wait_for_line};
use super::*;
use support::RedisServer;

#[test]
fn wait_goes_on_when_all_connections_are_killed() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let lockers = [(), (), ()].map(|()| Locker::builder(&server.url()).ttl(LONG).build().unwrap());
    let mut waiters = Vec::new();
    for (at, lock) in lockers.iter().enumerate() {
        waiters.push(waiting(lock, "a"));
        wait_for_line(&server, at + 1);
    }
    let before = line(&server);
    for kind in ["normal", "pubsub"] {
        server.query::<i64>(&["CLIENT", "KILL", "TYPE", kind]);
    }
    wait_for_inboxes(&server, lockers.len());
    assert_eq!(line(&server), before);
    let mut token = guard.fencing_token();
    guard.unlock().unwrap();
    for waiter in &waiters {
        let guard = waiter.result();
        assert!(guard.fencing_token() > token && !guard.was_abandoned());
        token = guard.fencing_token();
        guard.unlock().unwrap();
    }
    assert_nothing_left(&server);
}

#[test]
fn wait_goes_on_over_a_restart_that_keeps_the_lock() {
    let server = RedisServer::builder().append_only().start();
    let (_, guard) = holder(&server);
    let other = Locker::open(&server.url()).unwrap();
    let waiter = waiting(&other, "a");
    wait_for_line(&server, 1);
    server.restart();
    guard.verify().unwrap();
    wait_for_inboxes(&server, 1);
    assert!(!waiter.is_over());
    let token = guard.fencing_token();
    guard.unlock().unwrap();
    let next = waiter.result();
    assert!(next.fencing_token() > token && !next.was_abandoned());
    next.unlock().unwrap();
    assert_nothing_left(&server);
}

#[test]
fn waiter_takes_the_lock_that_a_restarted_server_has_forgotten() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let other = Locker::open(&server.url()).unwrap();
    let waiter = waiting(&other, "a");
    wait_for_line(&server, 1);
    server.restart();
    let next = waiter.result();
    assert!(next.fencing_token() > guard.fencing_token());
    assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
    guard.unlock().unwrap_err();
    next.verify().unwrap();
    next.unlock().unwrap();
    assert_nothing_left(&server);
}

#[test]
fn waiter_of_a_server_that_stays_away_ends_with_unavailable() {
    const PATIENT_FOR: Duration = millis(700);
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let builder = Locker::builder(&server.url()).outage_timeout(PATIENT_FOR);
    let other = builder.build().unwrap();
    let waiter = waiting(&other, "a");
    wait_for_line(&server, 1);
    let behind = queued(&other, "a", 2);
    let watch = Stopwatch::start();
    server.kill();
    for waiter in [waiter].iter().chain(&behind) {
        let error = waiter.outcome().unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    }
    // Those behind the first have as long again.
    watch.assert_within(2 * PATIENT_FOR);
    drop(guard);
}

#[test]
fn timed_wait_on_a_server_that_stands_still_ends_in_time_and_leaves_the_line() {
    const TIMEOUT: Duration = millis(500);
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let other = Locker::open(&server.url()).unwrap();
    let watch = Stopwatch::start();
    let waiter = calling(&other, |lock| lock.try_lock_for("a", TIMEOUT));
    wait_for_line(&server, 1);
    server.stop();
    match waiter.outcome() {
        Ok(outcome) => assert!(outcome.is_none()),
        Err(error) => assert!(matches!(error, Error::Unavailable { .. }), "{error}"),
    }
    watch.assert_within(TIMEOUT + millis(100));
    server.cont();
    wait_until("it to leave the line", PATIENCE, || {
        line(&server).is_empty()
    });
    guard.unlock().unwrap();
    wait_until("nothing to be left", PATIENCE, || server.keys() == [FENCE]);
}

#[test]
fn waiter_whose_rights_are_taken_away_ends_with_denied_and_blocks_nobody_for_long() {
    let rule = "user app on >secret ~* &* +@all";
    let server = RedisServer::builder().acl(&[rule]).start();
    let (lock, guard) = holder(&server);
    let app = Locker::builder(&server.url_as("app:secret"));
    let app = app.ttl(millis(900)).build().unwrap();
    let waiter = waiting(&app, "a");
    wait_for_line(&server, 1);
    server.query::<()>(&["ACL", "SETUSER", "app", "-@all"]);
    let error = waiter.outcome().unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    guard.unlock().unwrap();
    // Its place is left to its next heartbeat, or what it is granted to its ttl.
    let next = lock.try_lock_for("a", PATIENCE).unwrap();
    next.expect("nobody has it").unlock().unwrap();
    assert_nothing_left(&server);
}

#[test]
fn key_of_another_type_ends_the_wait_with_conflict() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let builder = Locker::builder(&server.url()).ttl(millis(600));
    let other = builder.build().unwrap();
    let waiter = waiting(&other, "a");
    wait_for_line(&server, 1);
    server.query::<()>(&["SET", FENCE, "no counter"]);
    let error = waiter.outcome().unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
    drop(guard);
}
