//! The line of processes, and the hand-off from one to the next.

use super::*;
use support::RedisServer;
use support::puppet::Puppet;

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

/// A process that is alone in line for "a", stopped, granted the lock and still stopped.
fn granted_while_stopped(server: &RedisServer, ttl: Duration) -> Puppet {
    let (_, guard) = holder(server);
    let mut process = Puppet::start(&server.url(), ttl);
    process.lock("a");
    wait_for_line(server, 1);
    process.stop();
    let owner = line(server).remove(0);
    guard.unlock().unwrap();
    assert_eq!(server.get("{crosslock:a}"), Some(owner));
    process
}

#[test]
fn grant_that_has_run_out_is_not_believed() {
    let server = RedisServer::start();
    let mut process = granted_while_stopped(&server, millis(500));
    let lock = Locker::open(&server.url()).unwrap();
    let guard = lock.try_lock_for("a", PATIENCE).unwrap();
    let guard = guard.expect("the lease ran out");
    assert!(guard.was_abandoned());

    process.cont();
    // It asks, and stands in line again.
    wait_for_line(&server, 1);
    guard.verify().unwrap();
    assert!(!process.has_said_that_it_holds());
    let token = guard.fencing_token();
    guard.unlock().unwrap();
    let holding = process.holding();
    assert!(holding.token > token && !holding.abandoned, "{holding:?}");
    process.unlock();
    assert_nothing_left(&server);
}

/// One that comes late, or twice: the last answer is newer, and tells that another has the lock.
#[test]
fn grant_that_is_older_than_the_last_answer_is_not_believed() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let other = Locker::builder(&server.url()).ttl(LONG).build().unwrap();
    let waiter = waiting(&other, "a");
    wait_for_line(&server, 1);
    wait_for_inboxes(&server, 1);
    server.reset_stats();
    let grant = format!("{} {}", line(&server)[0], guard.fencing_token());
    let channels: Vec<String> = server.query(&["PUBSUB", "CHANNELS"]);
    let heard = |channel| server.query::<u64>(&["PUBLISH", channel, &grant]);
    assert!(channels.iter().map(|one| heard(one)).sum::<u64>() > 0);
    wait_until("it to ask the server", PATIENCE, || {
        server.command_calls("evalsha") > 0
    });
    assert!(waiter.outcome.try_recv().is_err());
    guard.verify().unwrap();
    guard.unlock().unwrap();
    waiter.result().unlock().unwrap();
    assert_nothing_left(&server);
}
