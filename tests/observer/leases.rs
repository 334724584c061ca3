//! Leases: renewed, lost, and found to be lost.

#[cfg(feature = "redis")]
use crosslock::LockGuard;

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

/// The server forgets a lease, and its holder finds that by a look, by its release, or by a downgrade.
#[cfg(feature = "redis")]
#[test]
fn loss_that_its_holder_finds_is_told_once() {
    let server = RedisServer::start();
    let finds: [fn(LockGuard) -> bool; 3] = [
        |guard| guard.verify().is_err() && guard.verify().is_err(),
        |guard| guard.unlock().is_err(),
        |guard| guard.downgrade().is_err(),
    ];
    for find in finds {
        let (locker, kept) = observed(&server.url(), |builder| builder);
        let guard = locker.write("forgotten").unwrap();
        let _: () = server.query(&["FLUSHALL"]);
        assert!(find(guard));
        assert_lost(&kept.of("forgotten"), LostReason::NotOwner, "redis:");
    }
}

/// In a process of its own: the other threads of this one may hold anything.
#[test]
fn guard_that_a_forked_child_inherits_tells_nothing_there() {
    let args = [
        (support::puppet::URL, "memory:"),
        (support::puppet::TTL, "100"),
    ];
    let mut child = support::Child::spawn("forks with an observer", &args);
    assert!(child.wait(PATIENCE).success());
}
