//! Leases at etcd, which one lock after the other uses, also when another member leads.

use std::time::Duration;

use crosslock::{Error, Locker};
use support::Etcd;

use crate::with;

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
