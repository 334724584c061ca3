//! Calls end in time, whatever the nodes do.

use std::thread;
use std::time::{Duration, Instant};

use crosslock::{CancelToken, Error, Locker};
use support::{Fault, Setup, Stopwatch, wait_until, within};

use super::{LONG, PATIENCE, held, held_soon, millis, name_on, slot};

/// What a release may take.
const RELEASE: Duration = Duration::from_millis(500);

#[test]
fn black_holes_for_all_nodes_but_one_keep_nobody() {
    let cluster = Setup::new().node_timeout(LONG * 6).proxies().cluster();
    let locker = Locker::open(&cluster.url()).expect("open");
    let (near, far) = (name_on(&cluster, 0, 0), name_on(&cluster, 1, 0));
    let guards = [&near, &far].map(|name| held(&locker, name));
    for node in 1..6 {
        cluster.node(node).proxy().set(Fault::BlackHole);
    }
    let [near_guard, far_guard] = guards;
    within(millis(300), || near_guard.verify()).expect("its node answers");
    for limit in [0, 200, 900, 2_500] {
        let limit = millis(limit);
        let got = within(limit, || locker.try_lock_for(&far, limit));
        assert!(!matches!(got, Ok(Some(_))), "{got:?}");
        let deadline = Instant::now() + limit;
        let got = within(limit, || locker.try_lock_until(&near, deadline));
        assert!(matches!(got, Ok(None)), "{got:?}");
    }
    within(RELEASE, || drop(far_guard));
    within(RELEASE, || near_guard.unlock()).expect("its node answers");
    within(RELEASE, || drop(held(&locker, &near)));
    for node in 1..6 {
        cluster.node(node).proxy().set(Fault::None);
    }
    drop(held_soon(&locker, &far));
    within(RELEASE, || locker.close());
}

#[test]
fn cancel_ends_a_call_that_waits_for_a_slot_or_for_a_look_up() {
    let cluster = Setup::new().node_timeout(LONG * 6).cluster();
    let locker = Locker::open(&cluster.url()).expect("open");
    let (moving, stopped) = (name_on(&cluster, 0, 0), name_on(&cluster, 1, 0));
    let migration = cluster.migration(slot(&moving), 2);
    migration.import();
    migration.migrate();
    cluster.node(1).stop();
    for name in [&moving, &stopped] {
        let token = CancelToken::new();
        let cancelled = locker.cancelled_by(&token);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| cancelled.lock(name));
            thread::sleep(millis(400));
            assert!(!waiting.is_finished());
            let watch = Stopwatch::start();
            token.cancel();
            let got = waiting.join().expect("no panic");
            watch.assert_within(millis(50));
            assert!(matches!(got, Err(Error::Cancelled { .. })), "{got:?}");
        });
    }
    cluster.node(1).cont();
    migration.finish();
    drop(held_soon(&locker, &moving));
    drop(held_soon(&locker, &stopped));
}

#[test]
fn nothing_is_left_of_look_ups_that_nobody_answers() {
    let cluster = Setup::new().node_timeout(LONG * 6).cluster();
    let locker = Locker::open(&cluster.url()).expect("open");
    let name = name_on(&cluster, 0, 0);
    drop(held(&locker, &name));
    for node in 0..6 {
        cluster.node(node).stop();
    }
    let got = within(millis(300), || locker.try_lock_for(&name, millis(300)));
    assert!(got.is_err(), "{got:?}");
    drop(locker);
    wait_until("the threads' end", PATIENCE, || {
        let names = ["crosslock-lookup", "crosslock-slots"];
        names.iter().all(|name| support::threads_named(name) == 0)
    });
    for node in 0..6 {
        cluster.node(node).cont();
    }
}
