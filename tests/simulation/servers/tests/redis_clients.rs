//! The library itself on the simulated Redis: each kind of URL, through what happens to its servers.

use std::thread;
use std::time::Duration;

use crosslock::Locker;
use crosslock_servers::redis::{Cluster, Sentinels, Single};
use crosslock_servers::serve::{Served, serve};
use crosslock_world::service::{Fault, Service};

fn open(url: &str) -> Locker {
    Locker::open(url).expect("open it")
}

/// Four threads with a connection each count together, while something happens.
fn count_together(url: &str, names: usize, mut happens: impl FnMut()) {
    const TURNS: usize = 10;
    let name = |turn: usize| format!("count-{}", turn % names);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let locker = open(url);
                for turn in 0..TURNS {
                    let value = locker.mutex(&name(turn), 0usize).expect("a name");
                    let counted = value.update(|count| *count += 1);
                    counted.expect("count");
                }
            });
        }
        for _ in 0..3 {
            thread::sleep(Duration::from_millis(20));
            happens();
        }
    });
    let locker = open(url);
    let counts = (0..names).map(|at| {
        let value = locker.mutex(&name(at), 0usize).expect("a name");
        *value.lock().expect("look")
    });
    assert_eq!(counts.sum::<usize>(), 4 * TURNS);
}

fn own_fault<S: Service>(served: &Served, of: &S, name: &str) {
    let which = of.own_faults().iter().position(|one| *one == name);
    served.fault(0, Fault::Own(which.expect("a fault")));
}

#[test]
fn one_server_is_shared() {
    let served = serve(1, |mut at| Single::at(at.remove(0), None)).expect("a port");
    let url = format!("redis://{}/", served.addresses()[0]);
    count_together(&url, 1, || {
        own_fault(&served, &Single::new(), "script flush")
    });
}

#[test]
fn waiter_is_told_through_a_failover() {
    let served = serve(6, Sentinels::at).expect("ports");
    let sentinels: Vec<_> = served.addresses()[3..]
        .iter()
        .map(ToString::to_string)
        .collect();
    let url = format!(
        "redis+sentinel://{}/mymaster?min_replicas=1",
        sentinels.join(",")
    );
    count_together(&url, 1, || {});
    let locker = open(&url);
    let before = locker.lock("name").expect("lock").fencing_token();
    // The release reaches a replica: one that is lost leaves the lock taken until its ttl is over.
    thread::sleep(Duration::from_millis(200));
    served.fault(0, Fault::Kill);
    let after = locker
        .lock("name")
        .expect("lock behind a failover")
        .fencing_token();
    assert!(after > before);
}

#[test]
fn slots_move_below_locks() {
    let served = serve(6, Cluster::at).expect("ports");
    let url = format!("redis+cluster://{}", served.addresses()[0]);
    count_together(&url, 3, || own_fault(&served, &Cluster::new(), "move slot"));
}
