//! Outages: of a call, and of a lease.

use std::thread;

use super::*;

fn began(told: &Told) -> bool {
    matches!(told, Told::OutageBegan { .. })
}

fn ended(told: &Told) -> bool {
    matches!(told, Told::OutageEnded { .. })
}

fn failed(told: &Told) -> bool {
    matches!(told, Told::RenewalFailed { .. })
}

/// Renewals fail soon, and the lease lasts.
fn observed_often(server: &RedisServer, ttl: Duration) -> (Locker, Arc<Kept>) {
    observed(&server.url(), |builder| {
        builder.ttl(ttl).renew_every(SHORT).io_timeout(SHORT)
    })
}

#[test]
fn call_that_goes_on_in_an_outage_tells_of_its_beginning_and_end() {
    let server = RedisServer::start();
    let (locker, kept) = observed(&server.url(), |builder| builder.outage_timeout(PATIENCE));
    server.kill();
    thread::scope(|scope| {
        let call = scope.spawn(|| locker.lock("going-on").unwrap());
        kept.wait_for("the outage", "going-on", began);
        thread::sleep(SHORT);
        server.restart();
        drop(call.join().unwrap());
    });
    let told = kept.of("going-on");
    let [
        Told::OutageBegan {
            ref engine,
            ref error,
        },
        Told::OutageEnded {
            engine: ref same,
            lasted,
        },
        Told::Acquired {
            was_waiting: false, ..
        },
        Told::Released { .. },
    ] = told[..]
    else {
        panic!("{told:?}")
    };
    assert_eq!(engine, same);
    assert!(engine.starts_with("redis://"), "{engine}");
    assert!(error.contains("(Unavailable {"), "{error}");
    assert!(lasted >= SHORT, "{lasted:?}");
}

#[test]
fn lease_tells_of_an_outage_and_of_each_renewal_that_fails_in_it() {
    let server = RedisServer::start();
    let (locker, kept) = observed_often(&server, 2 * PATIENCE);
    let guard = locker.lock("lease").unwrap();
    server.stop();
    wait_until("failures", PATIENCE, || kept.count("lease", failed) >= 2);
    server.cont();
    kept.wait_for("the end", "lease", ended);
    kept.wait_for("a renewal", "lease", |told| {
        matches!(told, Told::Renewed { .. })
    });
    assert!(guard.is_held());
    drop(guard);
    assert_eq!(kept.count("lease", began), kept.count("lease", ended));
    for told in kept.of("lease") {
        match told {
            Told::RenewalFailed {
                remaining, error, ..
            } => {
                assert!(remaining > Duration::ZERO && remaining < 2 * PATIENCE);
                assert!(error.contains("(Unavailable {"), "{error}");
            }
            Told::OutageEnded { lasted, .. } => assert!(lasted > Duration::ZERO),
            _ => {}
        }
    }
}

#[test]
fn lease_that_is_lost_in_an_outage_has_no_end_of_it() {
    let server = RedisServer::start();
    let (locker, kept) = observed_often(&server, 10 * SHORT);
    let guard = locker.lock("lost").unwrap();
    server.stop();
    kept.wait_for("the loss", "lost", |told| matches!(told, Told::Lost { .. }));
    server.cont();
    drop(guard);
    let told = kept.of("lost");
    // A busy machine may have had another outage before.
    assert_eq!(
        kept.count("lost", began),
        kept.count("lost", ended) + 1,
        "{told:?}"
    );
    assert!(kept.count("lost", failed) >= 1, "{told:?}");
    let expired = |told: &Told| {
        matches!(
            told,
            Told::Lost {
                reason: LostReason::Expired,
                ..
            }
        )
    };
    assert_eq!(kept.count("lost", expired), 1, "{told:?}");
    assert!(
        !told
            .iter()
            .any(|told| matches!(told, Told::Released { .. }))
    );
}
