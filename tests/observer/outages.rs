//! Outages: of a call, and of a lease.

use std::thread;

use super::*;

fn began(told: &Told) -> bool {
    matches!(told, Told::OutageBegan { .. })
}

fn ended(told: &Told) -> bool {
    matches!(told, Told::OutageEnded { .. })
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
fn lease_that_is_lost_in_an_outage_tells_of_renewals_that_fail_and_of_no_end() {
    let server = RedisServer::start();
    let (locker, kept) = observed(&server.url(), |builder| {
        builder.ttl(10 * SHORT).renew_every(SHORT).io_timeout(SHORT)
    });
    let guard = locker.lock("lost").unwrap();
    server.stop();
    kept.wait_for("the loss", "lost", |told| matches!(told, Told::Lost { .. }));
    server.cont();
    drop(guard);
    let told = kept.of("lost");
    // A busy machine may have had another outage before.
    let [begun, over] = [began, ended].map(|is| kept.count("lost", is));
    assert_eq!(begun, over + 1, "{told:?}");
    let failed = told.iter().filter_map(|told| match told {
        Told::RenewalFailed { remaining, error } => Some((remaining, error)),
        _ => None,
    });
    let failed: Vec<_> = failed.collect();
    let is_outage = |error: &str| error.contains("(Unavailable {");
    assert!(!failed.is_empty(), "{told:?}");
    for (remaining, error) in failed {
        assert!(*remaining < 10 * SHORT && is_outage(error), "{told:?}");
    }
    let is_released = |told: &Told| matches!(told, Told::Released { .. });
    let is_expired =
        |told: &Told| matches!(told, Told::Lost { reason, .. } if *reason == LostReason::Expired);
    let counts = (
        kept.count("lost", is_expired),
        kept.count("lost", is_released),
    );
    assert_eq!(counts, (1, 0), "{told:?}");
}
