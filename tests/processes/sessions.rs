//! Holders that crash or exit, where servers end what a process holds: etcd its leases, ZooKeeper its session.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use support::Stopwatch;
use support::puppet::Puppet;

use super::holders::{ENDS, holder};
use super::places::{Place, in_each_place};
use super::*;

/// How soon after the end of a holder's lease or session the next one has the lock.
const BOUND: Duration = Duration::from_millis(300);

in_each_place! {
    #[cfg(feature = "etcd")]
    etcd: holder_that_ends_leaves_its_lock_to_the_next_when_the_server_ends_it;
    #[cfg(feature = "zookeeper")]
    zookeeper: holder_that_ends_leaves_its_lock_to_the_next_when_the_server_ends_it;
}

fn holder_that_ends_leaves_its_lock_to_the_next_when_the_server_ends_it(place: &Place) {
    ENDS.into_iter()
        .for_each(|end| next_gets_in_when_the_server_ends_it(place, end));
}

/// Ends the holder by `end`; the next one gets in at once when the server has ended its lease or session.
fn next_gets_in_when_the_server_ends_it(place: &Place, end: fn(&mut Puppet)) {
    let lock = Locker::open(&place.url).unwrap();
    let (mut child, token) = holder(&place.url, place.lease);
    let line = place.line();
    let [entry] = &line[..] else {
        panic!("{line:?}")
    };
    let (tell, told) = mpsc::channel();
    let watch = Stopwatch::start();
    thread::scope(|scope| {
        scope.spawn(|| {
            let guard = lock.lock("a").unwrap();
            tell.send((Instant::now(), guard)).unwrap();
        });
        end(&mut child);
        let mut last_seen = Instant::now();
        let (served_at, guard) = loop {
            let before = Instant::now();
            if !place.line().contains(entry) {
                break told.recv_timeout(PATIENCE).expect("its turn comes");
            }
            last_seen = before;
        };
        watch.assert_took(served_at.saturating_duration_since(last_seen), BOUND);
        assert!(guard.was_abandoned());
        assert!(guard.fencing_token() > token);
        guard.unlock().unwrap();
    });
    assert!(!lock.lock("a").unwrap().was_abandoned());
}
