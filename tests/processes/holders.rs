//! Holders that stall.

use std::time::Duration;

#[cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]
use super::places::Place;
use super::places::in_each_place;
use super::*;
use support::puppet::Puppet;

pub(super) fn holder(url: &str, ttl: Duration) -> (Puppet, u64) {
    let mut holder = Puppet::start(url, ttl);
    holder.lock("a");
    let token = holder.holding().token;
    (holder, token)
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
