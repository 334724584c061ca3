//! Leases: renewed, lost, broken, and in an outage.

use super::*;

const LEASE: Duration = Duration::from_millis(200);

/// How a lease is lost, which is told once, also if its guard is asked, and dropped, later.
#[test]
fn lease_that_is_lost_is_told_once() {
    each_url(|url| {
        let (locker, kept) = observed(url, |builder| builder.ttl(LEASE).renew(false));
        let guard = locker.lock("expired").unwrap();
        guard.lost().recv().unwrap();
        kept.wait_for("expired", "Lost");
        assert!(!guard.is_held() && guard.unlock().is_err());
        kept.assert_lost("expired", "Expired");

        let [(holder, theirs), (operator, own)] =
            [(); 2].map(|()| observed(url, |builder| builder));
        let guard = holder.lock("broken").unwrap();
        operator.break_lock("broken").unwrap();
        assert_eq!(own.kinds("broken"), "Broken");
        assert_eq!(field(&own.of("broken")[0], "holders"), "1");
        assert!(operator.break_lock("free").unwrap().is_empty());
        assert!(own.of("free").is_empty());
        assert!(guard.verify().is_err());
        drop(guard);
        theirs.assert_lost("broken", "Broken");

        let guard = holder.lock("closed").unwrap();
        holder.close();
        assert!(guard.unlock().is_err() && holder.lock("closed").is_err());
        theirs.assert_lost("closed", "Closed");
    });
}

#[test]
fn each_renewal_is_told() {
    each_url(|url| {
        let often = |builder: LockerBuilder| builder.ttl(PATIENCE).renew_every(SHORT);
        let (locker, kept) = observed(url, often);
        let guard = locker.lock("renewed").unwrap();
        let token = guard.fencing_token();
        // Nothing is renewed in a directory.
        if !url.starts_with("file:") {
            kept.wait_for("renewed", "Renewed");
        }
        drop(guard);
        let kinds = kept.kinds("renewed").replace(" Renewed", "");
        assert_eq!(kinds, "Acquired Released", "{url}");
        let tokens = kept.tokens("renewed");
        assert!(tokens.iter().all(|one| *one == token), "{url}");
    });
}

/// The server forgets a lease, and its holder finds that by a look, by its release, or by a downgrade.
#[cfg(feature = "redis")]
#[test]
fn loss_that_its_holder_finds_is_told_once() {
    let server = RedisServer::start();
    let finds: [fn(crosslock::LockGuard) -> bool; 3] = [
        |guard| guard.verify().is_err() && guard.verify().is_err(),
        |guard| guard.unlock().is_err(),
        |guard| guard.downgrade().is_err(),
    ];
    for find in finds {
        let (locker, kept) = observed(&server.url(), |builder| builder);
        let guard = locker.write("forgotten").unwrap();
        let _: () = server.query(&["FLUSHALL"]);
        assert!(find(guard));
        kept.assert_lost("forgotten", "NotOwner");
    }
}

#[cfg(feature = "redis")]
#[test]
fn call_that_goes_on_in_an_outage_tells_of_its_beginning_and_end() {
    let server = RedisServer::start();
    let (locker, kept) = observed(&server.url(), |builder| builder.outage_timeout(PATIENCE));
    server.kill();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| locker.lock("going-on").unwrap());
        kept.wait_for("going-on", "OutageBegan");
        server.restart();
        drop(call.join().unwrap());
    });
    let kinds = "OutageBegan OutageEnded Acquired Released";
    assert_eq!(kept.kinds("going-on"), kinds);
    let told = kept.of("going-on");
    assert_eq!(field(&told[0], "engine"), field(&told[1], "engine"));
    assert!(field(&told[0], "engine").starts_with("\"redis://"));
    assert!(told[0].contains("(Unavailable {"), "{}", told[0]);
}

#[cfg(feature = "redis")]
#[test]
fn lease_that_is_lost_in_an_outage_tells_of_renewals_that_fail_and_of_no_end() {
    let server = RedisServer::start();
    let (locker, kept) = observed(&server.url(), |builder| {
        builder.ttl(10 * SHORT).renew_every(SHORT).io_timeout(SHORT)
    });
    let guard = locker.lock("lost").unwrap();
    server.stop();
    kept.wait_for("lost", "Lost");
    server.cont();
    drop(guard);
    let told = kept.of("lost");
    let of = |kind: &str| -> Vec<_> {
        let is_it = |told: &&String| told.starts_with(&format!("{kind} "));
        told.iter().filter(is_it).collect()
    };
    // A busy machine may have had another outage before.
    assert_eq!(of("OutageBegan").len(), of("OutageEnded").len() + 1);
    let failed = of("RenewalFailed");
    assert!(!failed.is_empty(), "{told:?}");
    let is_outage = |told: &&String| told.contains("(Unavailable {");
    assert!(failed.iter().all(is_outage), "{failed:?}");
    let ends = (of("Lost").len(), of("Released").len());
    assert_eq!(ends, (1, 0), "{told:?}");
    assert_eq!(field(of("Lost")[0], "reason"), "Expired");
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
