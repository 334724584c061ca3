//! Where waiters hear of grants when the servers of names are several, and when one follows another.

mod cost;
mod moved;

use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::Duration;

use crosslock::{LockGuard, Locker};
use support::{Cluster, Member, wait_until};

use super::{PATIENCE, key, name_on, slot, start};

/// The ttl of those whose heartbeats, which come after 140 s at the earliest, are to play no part.
const LONG: Duration = Duration::from_secs(600);

/// A locker as another process would have it.
#[track_caller]
fn open(url: &str) -> Locker {
    Locker::builder(url).ttl(LONG).build().expect("open")
}

/// The URLs of the masters, one each: what a locker is connected to first.
fn urls(cluster: &Cluster) -> Vec<String> {
    let url = |node| format!("redis+cluster://{}/", cluster.node(node).public_addr());
    (0..3).map(url).collect()
}

#[track_caller]
fn held(locker: &Locker, name: &str) -> LockGuard {
    let guard = locker.try_lock_for(name, PATIENCE).expect("lock");
    guard.expect("it is free")
}

/// How many inboxes are open at a server.
fn inboxes(server: &Member) -> usize {
    let clients: String = server.query(&["CLIENT", "LIST", "TYPE", "pubsub"]);
    clients.lines().count()
}

/// The sharded channels that somebody subscribes to at a node. For a slot there is one for each inbox, and one beside
/// them on which all hear of broken leases.
fn channels(server: &Member) -> usize {
    let channels: Vec<String> = server.query(&["PUBSUB", "SHARDCHANNELS"]);
    channels.len()
}

/// How many wait for a name, and have said where they hear.
fn hearing(server: &Member, name: &str) -> usize {
    let waiters: Vec<String> = server.query(&["HVALS", &format!("{}:waiters", key(name))]);
    waiters.iter().filter(|one| one.contains(":inbox:")).count()
}

/// Threads that wait for a name, each with a locker of its own, in the order of their numbers.
struct Queue {
    granted: Receiver<(usize, LockGuard)>,
    length: usize,
}

impl Queue {
    /// Has so many wait at the server that has the name.
    #[track_caller]
    fn of(count: usize, urls: &[String], name: &str, server: &Member) -> Self {
        let (tell, granted) = mpsc::channel();
        for number in 0..count {
            let locker = open(&urls[number % urls.len()]);
            let (tell, wanted) = (tell.clone(), name.to_owned());
            thread::spawn(move || {
                let guard = locker.lock(&wanted).expect("lock");
                // Nobody listens when the test has failed.
                let _ = tell.send((number, guard));
            });
            wait_until("the next to wait and to hear", PATIENCE, || {
                hearing(server, name) > number
            });
        }
        Queue {
            granted,
            length: count,
        }
    }

    /// Lets the name go, and asserts that those that wait have it one after the other, in their order.
    #[track_caller]
    fn assert_served_in_order(self, first: LockGuard) {
        let mut guard = first;
        for expected in 0..self.length {
            let token = guard.fencing_token();
            // Its process may find first that its node has changed.
            drop(guard.unlock());
            let (number, next) = self.next();
            assert_eq!(number, expected);
            assert!(next.fencing_token() > token);
            assert!(!next.was_abandoned(), "{number}");
            guard = next;
        }
    }

    /// Whoever has the lock next.
    #[track_caller]
    fn next(&self) -> (usize, LockGuard) {
        let next = self.granted.recv_timeout(PATIENCE);
        next.expect("the next has it")
    }

    #[track_caller]
    fn assert_still_waiting(&self) {
        let granted = self.granted.try_recv().map(|(number, _)| number);
        assert_eq!(granted, Err(TryRecvError::Empty));
    }
}
