//! Names on several masters, each of which must have replicas for what it writes (`min_replicas`).

use std::thread;

use crosslock::{Error, LockGuard, Locker, LockerBuilder};
use support::{Cluster, Setup, wait_until};

use super::several::{is_left_alone, names, wait_for_waiter};
use super::{PATIENCE, cause, millis, open, start};

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

#[track_caller]
fn assert_left_alone(cluster: &Cluster, names: &[String]) {
    let locker = open(cluster);
    wait_until("all to be given back", PATIENCE, || {
        names.iter().all(|name| is_left_alone(&locker, name))
    });
}

#[test]
fn nothing_is_kept_when_one_master_lacks_its_replica() {
    let cluster = start();
    let names = names(&cluster);
    let locker = builder(&cluster).build().expect("open");
    for replica in 3..6 {
        taken(&locker, &names).unlock().expect("it was held");
        cluster.node(replica).stop();
        // By connections that are idle, and by new ones.
        for locker in [&locker, &builder(&cluster).build().expect("open")] {
            assert_too_few(&locker.try_lock_all(&names).expect_err("one lacks it"));
            assert_left_alone(&cluster, &names);
        }
        // The masters themselves are well.
        let others = open(&cluster);
        taken(&others, &names).unlock().expect("it was held");
        cluster.node(replica).cont();
    }
}

#[test]
fn guard_outlives_a_replica_that_stands_still_and_is_lost_without_one() {
    let cluster = start();
    let names = names(&cluster);
    let locker = builder(&cluster).build().expect("open");
    let all = taken(&locker, &names);
    cluster.node(4).stop();
    assert_too_few(&all.verify().expect_err("one lacks it"));
    cluster.node(4).cont();
    wait_until("the replica", PATIENCE, || all.verify().is_ok());
    cluster.node(5).stop();
    all.lost().recv_timeout(PATIENCE).expect("it is lost");
    drop(all);
    assert_left_alone(&cluster, &names);
    cluster.node(5).cont();
}

#[test]
fn waiter_goes_on_when_replicas_are_there_again() {
    let cluster = start();
    let names = names(&cluster);
    let [locker, other] = [0, 1].map(|_| builder(&cluster).build().expect("open"));
    let all = taken(&locker, &names);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| other.try_lock_all_for(&names, 2 * PATIENCE));
        wait_for_waiter(&locker, &names[0]);
        cluster.node(5).stop();
        // A release needs no replica.
        all.unlock().expect("it was held");
        wait_until("it to have what is in front", PATIENCE, || {
            !locker
                .inspect(&names[1])
                .expect("inspect")
                .holders
                .is_empty()
        });
        assert!(!waiting.is_finished());
        cluster.node(5).cont();
        let next = waiting.join().expect("no panic").expect("lock_all");
        next.expect("it came").verify().expect("it is held");
    });
    assert_left_alone(&cluster, &names);
}

#[test]
fn answer_without_its_confirmation_is_none() {
    let cluster = Setup::new().calm().proxies().cluster();
    let names = names(&cluster);
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
