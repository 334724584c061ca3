//! The line of processes, and the hand-off from one to the next.

use crosslock::Locker;

use super::watch::{
    LOCK, assert_nothing_left, assert_served_in_order, holder, line, processes_in_line,
    wait_for_inboxes, wait_for_line,
};
use super::*;
use support::RedisServer;
use support::puppet::Puppet;

#[test]
fn processes_are_served_first_come_first_served() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let mut processes = processes_in_line(&server, 6, LONG);
    let token = guard.fencing_token();
    guard.unlock().unwrap();
    assert_served_in_order(&mut processes, token, false);
    assert_nothing_left(&server);
}

#[test]
fn acquisition_by_waiting_takes_one_command_and_so_does_its_release() {
    const PROCESSES: usize = 5;
    let server = RedisServer::start();
    let (lock, guard) = holder(&server);
    let warm = lock.lock("warm").unwrap();
    let mut processes = Puppet::start_many(PROCESSES, &server.url(), LONG);
    // Opens their inboxes, and makes the server know the scripts.
    for process in &mut processes {
        process.give_up("warm");
    }
    warm.unlock().unwrap();
    wait_for_inboxes(&server, PROCESSES);
    server.reset_stats();
    for (at, process) in processes.iter_mut().enumerate() {
        process.pass("a");
        wait_for_line(&server, at + 1);
    }
    let entered = server.command_calls("evalsha");
    let token = guard.fencing_token();
    guard.unlock().unwrap();
    assert_served_in_order(&mut processes, token, false);
    assert_eq!(entered, PROCESSES as u64);
    assert_eq!(server.command_calls("evalsha"), 2 * entered + 1);
    assert_eq!(server.failed_calls("evalsha"), 0);
    assert_nothing_left(&server);
}

/// A lock that its holder has lost by a foreign hand, and three processes in line that don't look at it for long.
fn deleted_with_a_line(server: &RedisServer) -> (LockGuard, Vec<Puppet>) {
    let (_, guard) = holder(server);
    let processes = processes_in_line(server, 3, LONG);
    server.query::<()>(&["DEL", LOCK]);
    (guard, processes)
}

#[test]
fn try_lock_does_not_jump_the_line_but_serves_its_head() {
    let server = RedisServer::start();
    let other = Locker::open(&server.url()).unwrap();
    let (guard, mut processes) = deleted_with_a_line(&server);
    assert!(other.try_lock("a").unwrap().is_none());
    assert_served_in_order(&mut processes, guard.fencing_token(), true);
    guard.unlock().unwrap_err();
    assert_nothing_left(&server);
}

#[test]
fn newcomer_that_finds_the_lock_free_waits_behind_the_line() {
    let server = RedisServer::start();
    let mut last = Puppet::start_many(1, &server.url(), LONG);
    let (guard, mut processes) = deleted_with_a_line(&server);
    last[0].pass("a");
    processes.append(&mut last);
    assert_served_in_order(&mut processes, guard.fencing_token(), true);
    guard.unlock().unwrap_err();
    assert_nothing_left(&server);
}

#[test]
fn heartbeat_of_any_waiter_gives_a_free_lock_to_the_head_of_the_line() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let mut processes = processes_in_line(&server, 1, LONG);
    processes.append(&mut processes_in_line(&server, 1, millis(600)));
    server.query::<()>(&["DEL", LOCK]);
    assert_served_in_order(&mut processes, guard.fencing_token(), true);
    guard.unlock().unwrap_err();
    assert_nothing_left(&server);
}

#[test]
fn heartbeats_keep_each_in_its_place() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let mut processes = processes_in_line(&server, 3, millis(300));
    let before = line(&server);
    server.reset_stats();
    // Each of them asks several times, and would have been dropped long ago if it hadn't.
    wait_until("heartbeats", PATIENCE, || {
        server.command_calls("evalsha") >= 40
    });
    assert_eq!(line(&server), before);
    let token = guard.fencing_token();
    guard.unlock().unwrap();
    assert_served_in_order(&mut processes, token, false);
    assert_nothing_left(&server);
}
