//! The line of processes, and the hand-off from one to the next.

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

/// Who waits for a lock that is kept gets it when the time is over, not with its next heartbeat. What a reader keeps
/// for less than its ttl ends, too.
#[test]
fn kept_lock_that_is_free_again_wakes_who_waits() {
    let server = RedisServer::start();
    let url = server.url();
    type Take = fn(&Locker, &str) -> Result<LockGuard>;
    let takes: [(&str, Take); 3] = [
        ("memory:attack", Locker::lock),
        (&url, Locker::lock),
        (&url, Locker::read),
    ];
    for (url, take) in takes {
        let [holder, other] = [(); 2].map(|()| Locker::builder(url).ttl(LONG).build().unwrap());
        let guard = take(&holder, "a").unwrap();
        guard.at_least_for(millis(1500));
        let pending = waiting(&other, "a");
        wait_until("it to wait", PATIENCE, || {
            holder.inspect("a").unwrap().waiters.len() == 1
        });
        thread::sleep(millis(300));
        guard.unlock().unwrap();
        let got = pending.outcome.recv_timeout(PATIENCE);
        assert!(got.is_ok(), "nobody woke who waits for a lock of {url}");
    }
}

/// Puts so many into the line of "b", who live and hear nothing.
fn fill_line(server: &RedisServer, count: usize) {
    let mut fill = redis::pipe();
    for at in 0..count {
        let owner = format!("other-{at}");
        fill.cmd("RPUSH")
            .arg("{crosslock:b}:queue")
            .arg(&owner)
            .ignore();
        fill.cmd("HSET")
            .arg("{crosslock:b}:waiters")
            .arg(&owner)
            .arg("99999999999999 1000 x ")
            .ignore();
    }
    let counter: String = server.query(&["GET", "{crosslock:b}:fence"]);
    fill.cmd("SET")
        .arg("{crosslock:b}:fence")
        .arg(counter + "q")
        .arg("PX")
        .arg("86400000")
        .ignore();
    fill.query::<()>(&mut server.connection()).unwrap();
}

/// Who has one of several names, and waits for another in a long line, goes on having it.
#[test]
fn heartbeats_of_a_long_line_keep_what_is_held_of_several() {
    const OTHERS: usize = 2_000;
    let server = RedisServer::start();
    let ttl = millis(1_000);
    let holder = Locker::builder(&server.url()).ttl(LONG).build().unwrap();
    let lock = Locker::builder(&server.url()).ttl(ttl).build().unwrap();
    let _guard = holder.lock("b").unwrap();
    fill_line(&server, OTHERS);
    let pending = calling(&lock, |lock| lock.lock_all(&["a", "b"]));
    wait_until("one to be held", PATIENCE, || {
        server.query::<i64>(&["EXISTS", "{crosslock:a}"]) == 1
    });
    for _ in 0..250 {
        let held: i64 = server.query(&["EXISTS", "{crosslock:a}"]);
        let place: Option<i64> = server.query(&["LLEN", "{crosslock:b}:queue"]);
        assert_eq!(held, 1, "its lease ran out while it waited, line {place:?}");
        thread::sleep(millis(20));
    }
    drop(pending);
}
