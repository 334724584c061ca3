//! Names on several masters, each of which must have replicas for what it writes (`min_replicas`).

use crosslock::{Error, LockGuard, Locker, LockerBuilder};
use support::{Cluster, Setup, wait_until};

use super::{PATIENCE, cause, millis, name_on};

fn builder(cluster: &Cluster) -> LockerBuilder {
    let builder = Locker::builder(&cluster.url()).ttl(millis(3_000));
    let builder = builder.min_replicas(1).replica_timeout(millis(50));
    builder.outage_timeout(PATIENCE)
}

/// Takes the names, with a replica for each, on connections that are idle from then on.
#[track_caller]
fn taken(locker: &Locker, names: &[String]) -> LockGuard {
    let guard = locker.try_lock_all_for(names, PATIENCE);
    let guard = guard.expect("lock_all").expect("they are free");
    // The masters know the script of renewals from now on.
    guard.verify().expect("it is held");
    guard
}

#[track_caller]
fn assert_too_few(error: &Error) {
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    let told = cause(error);
    assert!(told.contains("min_replicas is 1"), "{told}");
}

#[test]
fn answer_without_its_confirmation_is_none() {
    let cluster = Setup::new().calm().proxies().cluster();
    let names = [0, 1, 2].map(|node| name_on(&cluster, node, 10));
    // It isn't renewed meanwhile, nor does it end.
    let locker = builder(&cluster).ttl(10 * PATIENCE);
    let locker = locker.build().expect("open");
    let all = taken(&locker, &names);
    cluster.node(4).stop();
    for _ in 0..3 {
        // Its lease is renewed there, and the connection ends before it is said who has that.
        cluster
            .node(1)
            .proxy()
            .lose_next_reply("\r\nWAIT\r\n", true);
        assert_too_few(&all.verify().expect_err("one lacks it"));
    }
    // What was answered in full costs no connection. A look-up at the same time may.
    wait_until("a question that costs none", PATIENCE, || {
        let accepted = cluster.node(1).proxy().accepted();
        assert_too_few(&all.verify().expect_err("one lacks it"));
        cluster.node(1).proxy().accepted() == accepted
    });
    cluster.node(4).cont();
    wait_until("the replica", PATIENCE, || all.verify().is_ok());
}
