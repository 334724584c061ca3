//! What is logged about servers that take each other's place.

use std::thread;
use std::time::Duration;

use crosslock::{Locker, LockerBuilder};
use support::{Replicated, SentinelSet, wait_until};

use super::{Level, lines_with, listen};

const PATIENCE: Duration = Duration::from_secs(30);
const TTL: Duration = Duration::from_millis(1_500);

fn builder(url: &str) -> LockerBuilder {
    Locker::builder(url).ttl(TTL).outage_timeout(PATIENCE)
}

/// How many lines have both texts, and this level.
fn count(level: Level, one: &str, other: &str) -> usize {
    let lines = lines_with(one).into_iter();
    lines
        .filter(|line| line.level == level && line.text.contains(other))
        .count()
}

#[test]
fn failover_is_told_once_to_each_locker() {
    listen();
    let set = SentinelSet::start();
    let hosts = set.hosts();
    let locker = builder(&set.url()).build().unwrap();
    drop(locker.lock("before").unwrap());
    let new = set.failover();
    let told = || count(Level::Info, &hosts, "the master of");
    thread::scope(|scope| {
        for name in ["a", "b", "c"] {
            let locker = &locker;
            scope.spawn(move || {
                wait_until("the new master to be told", PATIENCE, || {
                    drop(locker.lock(name).unwrap());
                    told() > 0
                });
            });
        }
    });
    assert_eq!(told(), 1);
    let port = set.member(new).public_port();
    assert_eq!(count(Level::Info, &hosts, &format!(":{port} now")), 1);
    assert_eq!(count(Level::Warn, &hosts, ""), 0);
}

#[test]
fn too_few_replicas_are_warned_of_once_by_a_lease_that_can_not_be_renewed() {
    listen();
    let set = Replicated::start(1);
    let url = format!("{}?min_replicas=1&replica_timeout=20ms", set.url(0));
    let locker = builder(&url).build().unwrap();
    let guard = locker.lock("too-few").unwrap();
    set.member(1).stop();
    let told = |level| count(level, "\"too-few\"", "min_replicas is 1");
    wait_until("several renewals that fail", PATIENCE, || {
        told(Level::Debug) > 1
    });
    assert_eq!(told(Level::Warn), 1);
    set.member(1).cont();
    drop(guard);
}
