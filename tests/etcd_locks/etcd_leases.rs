//! Leases at etcd, which one lock after the other uses, also when another member leads.

use std::thread;
use std::time::{Duration, Instant};

use crosslock::{Error, Locker};
use support::{Etcd, wait_until};

use crate::{LONG, PATIENCE, take, with};

#[test]
fn lock_counts_from_when_its_lease_was_proved() {
    let server = Etcd::start();
    let locker = with(&server, |builder| builder.ttl(LONG));
    let first = take(&locker);
    let remaining = first.remaining();
    let end = Instant::now() + remaining;
    first.unlock().unwrap();
    thread::sleep(Duration::from_millis(500));
    let second = take(&locker);
    let now = Instant::now();
    assert!(now + second.remaining() <= end);
    second.unlock().unwrap();
}

/// Neither those that were asked for twice, since an answer was lost, nor those that are kept for the next lock.
#[test]
fn leases_end_with_their_locker() {
    let server = Etcd::setup().proxies().start();
    for lost in [1, 2] {
        if lost == 1 {
            server.proxy().lose_next_reply("/v3/lease/grant", true);
        }
        let locker = with(&server, |builder| builder.ttl(LONG));
        assert_eq!(server.leases().len(), 1);
        if lost == 2 {
            // That of a day, which remembers who was let in.
            server.proxy().lose_next_reply("/v3/lease/grant", true);
        }
        let [one, other] = [locker.lock("m").unwrap(), take(&locker)];
        assert_eq!(server.proxy().lost_replies(), lost);
        assert_eq!(server.leases().len(), 3);
        drop((one, other, locker));
        wait_until("all leases to end", PATIENCE, || server.leases().is_empty());
    }
}

/// Whatever is wrong with the one that was asked for.
#[test]
fn ttl_that_is_not_possible_is_answered_by_the_one_range_that_is() {
    // The servers' shortest lease is 1.5 times as long.
    let server = Etcd::setup().flag("election-timeout", "1000").start();
    for millis in [500, 1_000, 1_500, 2_500] {
        let ttl = Duration::from_millis(millis);
        let opened = Locker::builder(&server.url()).ttl(ttl).build();
        let Err(Error::InvalidOption { option, reason, .. }) = opened else {
            panic!("{ttl:?}: {opened:?}");
        };
        assert_eq!(option, "ttl");
        assert!(reason.contains("whole seconds, 2s to 24 h"), "{reason}");
    }
    assert!(server.leases().is_empty());
    with(&server, |builder| builder.ttl(Duration::from_secs(2)));
}
