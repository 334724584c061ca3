//! Calls end in time, whatever the nodes do.

use std::thread;
use std::time::{Duration, Instant};

use crosslock::{CancelToken, Error, Locker};
use support::{BlackHole, Cluster, Fault, Setup, Stopwatch, wait_until, within};

use super::{PATIENCE, held, held_soon, key, millis, name_on, open, slot, start};

/// What a release may take.
const RELEASE: Duration = Duration::from_millis(500);

#[test]
fn black_holes_for_all_nodes_but_one_keep_nobody() {
    let cluster = Setup::new().calm().proxies().cluster();
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
    let cluster = start();
    let locker = Locker::open(&cluster.url()).expect("open");
    let (moving, stopped) = (name_on(&cluster, 0, 0), name_on(&cluster, 1, 0));
    let migration = cluster.migration(slot(&moving), 2);
    migration.import();
    migration.migrate();
    cluster.node(1).stop();
    for name in [&moving, &stopped] {
        let token = CancelToken::new();
        let cancelled = locker.with_cancel(&token);
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
    let cluster = start();
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

/// Has a node tell everyone that it is at another port, or by 0 at its own.
fn announce(cluster: &Cluster, node: usize, port: u16) {
    let port = port.to_string();
    let words = ["CONFIG", "SET", "cluster-announce-port", &port];
    cluster.node(node).query::<()>(&words);
    let own = cluster.node(node).public_port().to_string();
    let told = format!(":{}@", if port == "0" { own } else { port });
    let id = cluster.id(node);
    wait_until("the others to believe it", PATIENCE, || {
        cluster.nodes().into_iter().all(|other| {
            let nodes: String = cluster.node(other).query(&["CLUSTER", "NODES"]);
            let mut lines = nodes.lines().filter(|line| line.starts_with(&id));
            lines.all(|line| line.contains(&told))
        })
    });
}

#[test]
fn slot_that_moved_to_an_address_where_connect_hangs_keeps_nobody() {
    let cluster = start();
    let locker = open(&cluster);
    let (moved, other) = (name_on(&cluster, 0, 0), name_on(&cluster, 2, 0));
    let guard = held(&locker, &moved);
    let all = locker.lock_all(&[&other, "another"]).expect("lock_all");
    let hole = BlackHole::start();
    announce(&cluster, 1, hole.addr().port());
    let migration = cluster.migration(slot(&moved), 1);
    migration.import();
    migration.migrate();
    migration.move_keys();
    migration.finish();
    // The old node sends there whoever asks.
    for limit in [0, 300, 1_500] {
        let limit = millis(limit);
        let got = within(limit, || locker.try_lock_for(&moved, limit));
        assert!(!matches!(got, Ok(Some(_))), "{got:?}");
        let names = [&moved, &other];
        let got = within(limit, || locker.try_lock_all_for(&names, limit));
        assert!(!matches!(got, Ok(Some(_))), "{got:?}");
    }
    within(millis(300), || {
        drop(held(&locker, &name_on(&cluster, 0, 1)))
    });
    within(RELEASE, || drop(all));
    within(RELEASE, || drop(guard));
    announce(&cluster, 1, 0);
    drop(held_soon(&locker, &moved));
    assert_eq!(cluster.owner(&key(&moved)), 1);
}
