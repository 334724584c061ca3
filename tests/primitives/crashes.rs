//! Those that read, write or hold permits, killed and stopped.

use crosslock::MutexGuard;

use super::*;
use support::RedisServer;
use support::puppet::Puppet;

/// How long the next one waits for what `dead` held in vain, after it was killed.
fn comes_back(dead: &str, next: &str) -> bool {
    const LEASE: Duration = millis(600);
    let server = RedisServer::start();
    let mut holder = Puppet::start(&server.url(), LEASE);
    let mut waiter = Puppet::start(&server.url(), Duration::from_secs(10));
    holder.tell(dead);
    let token = holder.holding().token;
    holder.kill();
    let watch = Stopwatch::start();
    waiter.tell(next);
    let holding = waiter.holding();
    watch.assert_within(LEASE);
    assert!(holding.token > token);
    waiter.unlock();
    assert_nothing_left(&server);
    holding.abandoned
}

#[test]
fn writer_waits_for_a_killed_reader_for_its_ttl() {
    assert!(!comes_back("read n", "write n"));
}

#[test]
fn reader_waits_for_a_killed_writer_for_its_ttl_and_is_told() {
    assert!(comes_back("write n", "read n"));
}

#[test]
fn writer_waits_for_a_killed_writer_for_its_ttl_and_is_told() {
    assert!(comes_back("write n", "write n"));
}

#[test]
fn permits_of_a_killed_holder_come_back_after_its_ttl() {
    assert!(!comes_back("permits 2/2 n", "permits 1/2 n"));
    assert!(!comes_back("permits 1/2 n", "permits 2/2 n"));
}

/// `dead` waits behind `holding` and is killed; what `next` wants is free.
fn is_not_in_the_way(holding: &str, dead: &str, next: &str) {
    let server = RedisServer::start();
    let lease = Duration::from_secs(10);
    let mut processes: Vec<_> = (0..3)
        .map(|_| Puppet::start(&server.url(), lease))
        .collect();
    processes[0].tell(holding);
    processes[0].holding();
    processes[1].tell(dead);
    wait_for_queue(&server, 1);
    processes[1].kill();
    let watch = Stopwatch::start();
    processes[2].tell(next);
    processes[2].holding();
    watch.assert_within(Duration::ZERO);
}

#[test]
fn killed_waiting_writer_is_not_in_the_way_of_readers() {
    is_not_in_the_way("read n", "write n", "read n");
}

#[test]
fn killed_waiting_large_request_is_not_in_the_way_of_small_ones() {
    is_not_in_the_way("permits 1/3 n", "permits 3/3 n", "permits 1/3 n");
}

#[test]
fn writer_that_was_stopped_past_its_ttl_stores_nothing() {
    let server = RedisServer::start();
    let mut stale = Puppet::start(&server.url(), millis(300));
    stale.tell("store-1-when-lost n");
    stale.holding();
    stale.stop();
    let next = open(&server).mutex(NAME, 0).unwrap();
    let mut guard = next.lock().unwrap();
    assert!(MutexGuard::lease(&guard).was_abandoned());
    assert_eq!(*guard, 0);
    *guard = 2;
    stale.cont();
    assert!(stale.answer().starts_with("Lost"));
    MutexGuard::unlock(guard).unwrap();
    assert_eq!(next.peek().unwrap(), 2);
    assert_nothing_left(&server);
}

#[test]
fn dead_reader_does_not_live_on_through_others() {
    const LEASE: Duration = millis(1_000);
    let server = RedisServer::start();
    let mut dead = Puppet::start(&server.url(), Duration::from_secs(10));
    let mut living = Puppet::start(&server.url(), LEASE);
    dead.tell("read n");
    dead.holding();
    living.tell("read n");
    living.holding();
    // Renewals of the short one shorten nothing, and those of neither make the other's longer.
    // A token stands below zero beside each.
    let readers = || server.query::<u64>(&["ZCOUNT", "{crosslock:n}:holders", "0", "+inf"]);
    let dead_until: Vec<(String, u64)> =
        server.query(&["ZRANGE", "{crosslock:n}:holders", "-1", "-1", "WITHSCORES"]);
    dead.kill();
    std::thread::sleep(2 * LEASE);
    assert_eq!(readers(), 2);
    let later: Vec<(String, u64)> =
        server.query(&["ZRANGE", "{crosslock:n}:holders", "-1", "-1", "WITHSCORES"]);
    assert_eq!(dead_until, later);
    assert!(server.pttl(LOCK) > 5_000);
    living.unlock();
    assert_eq!(readers(), 1);
    assert!(open(&server).try_write(NAME).unwrap().is_none());
}
