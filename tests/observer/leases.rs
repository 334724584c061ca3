//! Leases: renewed, lost, and found to be lost.

#[cfg(feature = "redis")]
use crosslock::{LockGuard, Result};

use super::*;

const LEASE: Duration = Duration::from_millis(200);

#[test]
fn lease_that_runs_out_is_lost_once_and_its_drop_tells_nothing() {
    each_url(|url| {
        let (locker, kept) = observed(url, |builder| builder.ttl(LEASE).renew(false));
        let guard = locker.lock("expired").unwrap();
        guard.lost().recv().unwrap();
        assert!(!guard.is_held());
        kept.wait_for("the loss", "expired", |told| {
            matches!(told, Told::Lost { .. })
        });
        assert!(guard.unlock().is_err());
        let held = assert_lost(&kept.of("expired"), LostReason::Expired, url);
        assert!(held >= LEASE / 2, "{url}: {held:?}");
    });
}

#[test]
fn each_renewal_is_told() {
    each_url(|url| {
        let often = |builder: LockerBuilder| builder.ttl(PATIENCE).renew_every(SHORT);
        let (locker, kept) = observed(url, often);
        let guard = locker.lock("renewed").unwrap();
        let token = guard.fencing_token();
        if url.starts_with("file:") {
            // Nothing is renewed there.
            drop(guard);
            assert_eq!(kept.of("renewed").len(), 2);
            return;
        }
        wait_until("renewals", PATIENCE, || {
            kept.count("renewed", |told| *told == Told::Renewed { token }) >= 3
        });
        drop(guard);
        let told = kept.of("renewed");
        let renewed = |told: &&Told| matches!(told, Told::Renewed { .. });
        let renewals = told.iter().filter(renewed).count();
        assert_eq!(told.len(), renewals + 2, "{url}: {told:?}");
    });
}

/// The server forgets a lease, and its holder finds that.
#[cfg(feature = "redis")]
#[track_caller]
fn assert_told_once(take: fn(&Locker) -> Result<LockGuard>, find: fn(LockGuard)) {
    let server = RedisServer::start();
    let (locker, kept) = observed(&server.url(), |builder| builder);
    let guard = take(&locker).unwrap();
    let _: () = server.query(&["FLUSHALL"]);
    find(guard);
    assert_lost(&kept.of("forgotten"), LostReason::NotOwner, "redis:");
}

#[cfg(feature = "redis")]
#[test]
fn loss_that_a_look_finds_is_told_once() {
    assert_told_once(
        |locker| locker.lock("forgotten"),
        |guard| (0..2).for_each(|_| assert!(guard.verify().is_err())),
    );
}

#[cfg(feature = "redis")]
#[test]
fn loss_that_the_release_finds_is_told_in_place_of_it() {
    assert_told_once(
        |locker| locker.lock("forgotten"),
        |guard| assert!(guard.unlock().is_err()),
    );
}

#[cfg(feature = "redis")]
#[test]
fn loss_that_a_downgrade_finds_is_told_in_place_of_it() {
    assert_told_once(
        |locker| locker.write("forgotten"),
        |guard| assert!(guard.downgrade().is_err()),
    );
}
