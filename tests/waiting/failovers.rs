//! A failover behind one address, as a load balancer or a DNS name has it: connections that are open stay where they
//! are, at a server that is a replica now.

use super::watch::{LOCK, assert_nothing_left, inboxes, line, wait_for_inboxes, wait_for_line};
use super::*;
use support::{Proxy, RedisServer, wait_until};

struct Pair {
    old: RedisServer,
    new: RedisServer,
    address: Proxy,
}

impl Pair {
    fn start() -> Self {
        let old = RedisServer::start();
        let new = RedisServer::builder().replica_of(old.port()).start();
        let address = Proxy::start(old.addr());
        let pair = Pair { old, new, address };
        wait_until("the replica to follow", PATIENCE, || follows(&pair.new));
        pair
    }

    fn open(&self, ttl: u64) -> Locker {
        let builder = Locker::builder(&self.address.url()).ttl(millis(ttl));
        builder.build().unwrap()
    }

    fn fail_over(&self) {
        let (old, new) = (&self.old, &self.new);
        wait_until("the replica to know all", PATIENCE, || {
            old.get(LOCK) == new.get(LOCK) && line(old) == line(new)
        });
        new.query::<()>(&["REPLICAOF", "NO", "ONE"]);
        old.query::<()>(&["REPLICAOF", "127.0.0.1", &new.port().to_string()]);
        self.address.point_to(new.addr());
        wait_until("the old one to follow", PATIENCE, || follows(old));
    }
}

fn follows(replica: &RedisServer) -> bool {
    replica.info("master_link_status").as_deref() == Some("up")
}

#[test]
fn grant_that_a_replica_repeats_is_not_believed() {
    let pair = Pair::start();
    let (one, two, three) = (pair.open(60_000), pair.open(60_000), pair.open(60_000));
    let holder = one.lock("a").unwrap();
    let passed_over = waiting(&two, "a");
    wait_for_line(&pair.old, 1);
    wait_for_inboxes(&pair.old, 1);
    pair.fail_over();
    let next = waiting(&three, "a");
    wait_for_line(&pair.new, 2);
    wait_for_inboxes(&pair.new, 1);
    // The first in line listens at the old server, where nothing must tell it of a lock that goes to the next.
    holder.unlock().unwrap();
    let guard = next.result();
    guard.verify().unwrap();
    assert!(!passed_over.is_over());
    assert_eq!(inboxes(&pair.old), 1);
    guard.unlock().unwrap();
}

#[test]
fn waiter_whose_inbox_is_at_a_replica_finds_out() {
    let pair = Pair::start();
    let lockers = [3_000, 1_500, 1_500, 1_500].map(|ttl| pair.open(ttl));
    let holder = lockers[0].lock("a").unwrap();
    // Each holds it for longer than the others' heartbeats take.
    let take = |lock: &Locker| {
        calling(lock, |lock| {
            let guard = lock.lock("a")?;
            thread::sleep(millis(600));
            guard.unlock()
        })
    };
    let waiters: Vec<_> = lockers[1..].iter().map(take).collect();
    wait_for_line(&pair.old, 3);
    wait_for_inboxes(&pair.old, 3);
    pair.fail_over();
    holder.unlock().unwrap();
    for waiter in &waiters {
        waiter.result();
    }
    // Who finds that it was passed over listens anew.
    wait_until("the inboxes to be where the line is", PATIENCE, || {
        let holder = lockers[0].lock("a").unwrap();
        let waiters: Vec<_> = lockers[1..].iter().map(take).collect();
        wait_for_line(&pair.new, 3);
        holder.unlock().unwrap();
        waiters.iter().for_each(|waiter| waiter.result());
        inboxes(&pair.new) >= 3
    });
    assert_nothing_left(&pair.new);
}
