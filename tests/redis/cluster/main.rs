//! Locks in a cluster: each name has its node, also while slots move and nodes fail; and where waiters hear of grants.

#![cfg(feature = "redis")]

mod confirmed;
mod forgotten;
mod opening;
mod operating;
mod rights;
#[cfg(feature = "delay")]
mod shards;
#[cfg(feature = "tls")]
mod tls;
mod whole_slots;

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crosslock::{Error, LockGuard, Locker};
use support::{Cluster, Setup, slot_of, wait_until};

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

const fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// A cluster in which only those take over that are told to.
fn start() -> Cluster {
    Setup::new().calm().cluster()
}

/// One that all tests share that run at one time, and leave it as it is: it takes seconds to start.
fn shared() -> Arc<Cluster> {
    static CLUSTER: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
    let mut shared = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    let cluster = shared.upgrade().unwrap_or_else(|| Arc::new(start()));
    *shared = Arc::downgrade(&cluster);
    cluster
}

#[track_caller]
fn open(cluster: &Cluster) -> Locker {
    Locker::open(&cluster.url()).expect("open")
}

/// The key of a name's lock.
fn key(name: &str) -> String {
    format!("{{crosslock:{name}}}")
}

/// The slot of a name.
fn slot(name: &str) -> u16 {
    slot_of(&key(name))
}

/// A name in a slot of that node, and different for each number.
#[track_caller]
fn name_on(cluster: &Cluster, node: usize, number: usize) -> String {
    let slots = cluster.slots(node);
    assert!(!slots.is_empty(), "node {node} is no master any more");
    let mut names = (0..).map(|number| format!("name-{number}"));
    let mut on_node = names.by_ref().filter(|name| slots.contains(&slot(name)));
    on_node.nth(number).expect("there is one")
}

/// Takes a free lock.
#[track_caller]
fn held(locker: &Locker, name: &str) -> LockGuard {
    locker
        .try_lock(name)
        .expect("try_lock")
        .expect("it is free")
}

/// Takes a lock as soon as the cluster can give it.
#[track_caller]
fn held_soon(locker: &Locker, name: &str) -> LockGuard {
    let mut guard = None;
    wait_until("the lock to be had", PATIENCE, || {
        guard = locker.try_lock_for(name, millis(500)).ok().flatten();
        guard.is_some()
    });
    guard.expect("it was there")
}

/// What an error says of its cause.
fn cause(error: &Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), |cause| cause.to_string())
}
