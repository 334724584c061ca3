//! Holders that crash, stall or exit.

use std::time::Duration;

#[cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]
use super::places::Place;
use super::places::in_each_place;
use super::*;
use support::puppet::Puppet;

#[cfg(feature = "redis")]
use std::time::Instant;
#[cfg(feature = "redis")]
use support::{RedisServer, Stopwatch};

/// A process that holds "a", and its token.
pub(super) fn holder(url: &str, ttl: Duration) -> (Puppet, u64) {
    let mut holder = Puppet::start(url, ttl);
    holder.lock("a");
    let token = holder.holding().token;
    (holder, token)
}

/// Ends the holder by `end`; the next one gets in when the lease is over, neither earlier nor much later.
#[cfg(feature = "redis")]
fn next_gets_in_after_the_remaining_ttl(end: impl FnOnce(&mut Puppet)) {
    const LEASE: Duration = Duration::from_millis(900);
    let server = RedisServer::start();
    let lock = Locker::open(&server.url()).unwrap();
    let (mut child, token) = holder(&server.url(), LEASE);
    end(&mut child);
    let watch = Stopwatch::start();
    // Read before asking: the lock can't be free earlier than so much later.
    let asked = Instant::now();
    let remaining = u64::try_from(server.pttl("{crosslock:a}")).expect("the lock is still there");
    let remaining = Duration::from_millis(remaining);
    let guard = lock.lock("a").unwrap();
    let waited = asked.elapsed();
    // The server's time to live is rounded to milliseconds.
    let least = remaining.saturating_sub(Duration::from_millis(1));
    assert!(
        waited >= least,
        "in after {waited:?}, not after {remaining:?}"
    );
    watch.assert_took(waited, remaining);
    assert!(guard.was_abandoned());
    assert!(guard.fencing_token() > token);
    guard.unlock().unwrap();
    assert!(!lock.lock("a").unwrap().was_abandoned());
}

/// Ends the holder by `end`, which frees the lock.
#[cfg(feature = "file")]
fn next_gets_in_at_once(end: impl FnOnce(&mut Puppet)) {
    let dir = temp_dir();
    let lock = Locker::open(&file_url(&dir)).unwrap();
    let (mut child, token) = holder(&file_url(&dir), Duration::from_secs(3600));
    assert!(lock.try_lock("a").unwrap().is_none());
    end(&mut child);
    let guard = lock.try_lock("a").unwrap().expect("its holder is gone");
    assert!(guard.was_abandoned());
    assert!(guard.fencing_token() > token);
    guard.unlock().unwrap();
    assert!(!lock.lock("a").unwrap().was_abandoned());
}

#[cfg(feature = "redis")]
#[test]
fn killed_holder_leaves_its_lock_to_the_ttl_on_redis() {
    next_gets_in_after_the_remaining_ttl(Puppet::kill);
}

#[cfg(feature = "file")]
#[test]
fn killed_holder_frees_its_lock_at_once_on_file() {
    next_gets_in_at_once(Puppet::kill);
}

#[cfg(feature = "redis")]
#[test]
fn process_that_exits_with_a_guard_leaves_its_lock_to_the_ttl_on_redis() {
    next_gets_in_after_the_remaining_ttl(Puppet::exit);
}

#[cfg(feature = "file")]
#[test]
fn process_that_exits_with_a_guard_frees_its_lock_at_once_on_file() {
    next_gets_in_at_once(Puppet::exit);
}

in_each_place! {
    #[cfg(feature = "redis")]
    redis: holder_that_was_stopped_past_its_ttl_knows_that_it_lost;
    #[cfg(feature = "etcd")]
    etcd: holder_that_was_stopped_past_its_ttl_knows_that_it_lost;
    #[cfg(feature = "zookeeper")]
    zookeeper: holder_that_was_stopped_past_its_ttl_knows_that_it_lost;
}

#[cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]
fn holder_that_was_stopped_past_its_ttl_knows_that_it_lost(place: &Place) {
    let lock = Locker::open(&place.url).unwrap();
    let (mut child, token) = holder(&place.url, place.lease);
    child.stop();
    let guard = lock.try_lock_for("a", PATIENCE).unwrap();
    let guard = guard.expect("its lease or session has ended");
    assert!(guard.was_abandoned());
    assert!(guard.fencing_token() > token);

    child.cont();
    assert_eq!(child.ask("state"), "held=false told=true verified=false");
    assert!(child.ask("unlock").starts_with("Lost"));
    guard.verify().unwrap();
    assert!(lock.try_lock("a").unwrap().is_none());
    guard.unlock().unwrap();
}

#[cfg(feature = "file")]
#[test]
fn holder_that_was_stopped_keeps_its_lock_on_file() {
    const LEASE: Duration = Duration::from_millis(100);
    let dir = temp_dir();
    let lock = Locker::open(&file_url(&dir)).unwrap();
    let (mut child, _) = holder(&file_url(&dir), LEASE);
    child.stop();
    assert!(lock.try_lock_for("a", 4 * LEASE).unwrap().is_none());

    child.cont();
    assert_eq!(child.ask("state"), "held=true told=false verified=true");
    assert!(lock.try_lock("a").unwrap().is_none());
    assert_eq!(child.ask("unlock"), "ok");
    assert!(!lock.try_lock("a").unwrap().unwrap().was_abandoned());
}

/// It is released, and stays taken when its process has gone.
fn lock_stays_taken(url: &str) {
    let lock = Locker::open(url).unwrap();
    let (mut child, token) = holder(url, Duration::from_millis(200));
    assert_eq!(child.ask("keep-an-hour"), "ok");
    assert_eq!(child.ask("unlock"), "ok");
    child.exit();
    // Longer than the lease would have lasted.
    let next = lock.try_lock_for("a", Duration::from_millis(500)).unwrap();
    assert!(next.is_none(), "{token}");
}

#[cfg(feature = "redis")]
#[test]
fn lock_that_is_released_early_stays_taken_after_its_process_on_redis() {
    let server = RedisServer::start();
    lock_stays_taken(&server.url());
    // Freed by deleting its key, as any lock.
    assert_eq!(server.query::<u64>(&["DEL", "{crosslock:a}"]), 1);
    let lock = Locker::open(&server.url()).unwrap();
    assert!(!lock.try_lock("a").unwrap().unwrap().was_abandoned());
}

#[cfg(feature = "file")]
#[test]
fn lock_that_is_released_early_stays_taken_after_its_process_on_file() {
    let dir = temp_dir();
    lock_stays_taken(&file_url(&dir));
}
