//! What goes wrong with the server while one waits, or passes a lease on.

use std::time::Instant;

use crosslock::{CancelToken, LeaseTicket};

use super::*;
use support::{Fault, Proxy, RedisServer, eventually};

#[test]
fn wait_goes_on_over_a_restart_that_keeps_the_lock() {
    let server = RedisServer::builder().append_only().start();
    let (_, guard) = holder(&server);
    let other = Locker::open(&server.url()).unwrap();
    let waiter = waiting(&other, "a");
    wait_for_line(&server, 1);
    server.restart();
    guard.verify().unwrap();
    wait_for_inboxes(&server, 1);
    assert!(!waiter.is_over());
    let token = guard.fencing_token();
    guard.unlock().unwrap();
    let next = waiter.result();
    assert!(next.fencing_token() > token && !next.was_abandoned());
    next.unlock().unwrap();
    assert_nothing_left(&server);
}

#[test]
fn waiter_takes_the_lock_that_a_restarted_server_has_forgotten() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let other = Locker::open(&server.url()).unwrap();
    let waiter = waiting(&other, "a");
    wait_for_line(&server, 1);
    server.restart();
    let next = waiter.result();
    assert!(next.fencing_token() > guard.fencing_token());
    assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
    guard.unlock().unwrap_err();
    next.verify().unwrap();
    next.unlock().unwrap();
    assert_nothing_left(&server);
}

#[test]
fn waiter_of_a_server_that_stays_away_ends_with_unavailable() {
    const PATIENT_FOR: Duration = millis(700);
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let builder = Locker::builder(&server.url()).outage_timeout(PATIENT_FOR);
    let other = builder.build().unwrap();
    let waiter = waiting(&other, "a");
    wait_for_line(&server, 1);
    let behind = queued(&other, "a", 2);
    let watch = Stopwatch::start();
    server.kill();
    for waiter in [waiter].iter().chain(&behind) {
        let error = waiter.outcome().unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    }
    // Those behind the first have as long again.
    watch.assert_within(2 * PATIENT_FOR);
    drop(guard);
}

#[test]
fn timed_wait_on_a_server_that_stands_still_ends_in_time_and_leaves_the_line() {
    const TIMEOUT: Duration = millis(500);
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let other = Locker::open(&server.url()).unwrap();
    let watch = Stopwatch::start();
    let waiter = calling(&other, |lock| lock.try_lock_for("a", TIMEOUT));
    wait_for_line(&server, 1);
    server.stop();
    match waiter.outcome() {
        Ok(outcome) => assert!(outcome.is_none()),
        Err(error) => assert!(matches!(error, Error::Unavailable { .. }), "{error}"),
    }
    watch.assert_within(TIMEOUT + millis(100));
    server.cont();
    wait_until("it to leave the line", PATIENCE, || {
        line(&server).is_empty()
    });
    guard.unlock().unwrap();
    wait_until_nothing_is_left(&server);
}

#[test]
fn waiter_whose_rights_are_taken_away_ends_with_denied_and_blocks_nobody_for_long() {
    let rule = "user app on >secret ~* &* +@all";
    let server = RedisServer::builder().acl(&[rule]).start();
    let (lock, guard) = holder(&server);
    let app = Locker::builder(&server.url_as("app:secret"));
    let app = app.ttl(millis(900)).build().unwrap();
    let waiter = waiting(&app, "a");
    wait_for_line(&server, 1);
    server.query::<()>(&["ACL", "SETUSER", "app", "-@all"]);
    let error = waiter.outcome().unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    guard.unlock().unwrap();
    // Its place is left to its next heartbeat, or what it is granted to its ttl.
    let next = lock.try_lock_for("a", PATIENCE).unwrap();
    next.expect("nobody has it").unlock().unwrap();
    assert_nothing_left(&server);
}

#[test]
fn key_of_another_type_ends_the_wait_with_conflict() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let builder = Locker::builder(&server.url()).ttl(millis(600));
    let other = builder.build().unwrap();
    let waiter = waiting(&other, "a");
    wait_for_line(&server, 1);
    server.query::<()>(&["SET", FENCE, "no counter"]);
    let error = waiter.outcome().unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
    drop(guard);
}

/// A failover behind one address, as a load balancer or a DNS name has it: connections that are open stay where they
/// are, at a server that is a replica now.
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

const MANY: usize = 12;

#[test]
fn waiters_on_a_silent_server_fail_at_about_the_same_time() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let lock = Locker::builder(&server.url())
        .ttl(millis(1_500))
        .io_timeout(millis(1_000))
        .outage_timeout(millis(1_000))
        .build()
        .unwrap();
    let (tell, ended) = mpsc::channel();
    let threads: Vec<_> = (0..MANY)
        .map(|_| {
            let (lock, tell) = (lock.clone(), tell.clone());
            thread::spawn(move || {
                let error = lock.lock("a").unwrap_err();
                assert!(matches!(error, Error::Unavailable { .. }), "{error}");
                tell.send(Instant::now()).unwrap();
            })
        })
        .collect();
    wait_for_inboxes(&server, 1);
    let watch = Stopwatch::start();
    server.stop();
    let first = ended.recv_timeout(PATIENCE).unwrap();
    for thread in threads {
        thread.join().unwrap();
    }
    let last = ended.try_iter().max().unwrap();
    // One after the other they would take an answer's time each.
    watch.assert_took(last - first, millis(3_000));
    server.cont();
    drop(guard);
}

#[test]
fn dead_server_is_unavailable_to_each_of_many_timed_calls() {
    for _ in 0..5 {
        let server = RedisServer::start();
        let lock = Locker::open(&server.url()).unwrap();
        server.kill();
        let end = Instant::now() + millis(400);
        let calls: Vec<_> = (0..30)
            .map(|_| {
                let lock = lock.clone();
                thread::spawn(move || lock.try_lock_until("a", end))
            })
            .collect();
        for call in calls {
            let outcome = call.join().unwrap();
            support::assert_like!(outcome, Err(Error::Unavailable { .. }));
        }
    }
}

#[test]
fn inboxes_that_are_killed_all_the_time_cause_no_storm_of_commands() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let lock = Locker::open(&server.url()).unwrap();
    let waiter = waiting(&lock, "a");
    wait_for_inboxes(&server, 1);
    let before = server.command_calls("evalsha");
    let begun = Instant::now();
    eventually(millis(2_000), || {
        server.query::<i64>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        begun.elapsed() >= millis(2_000)
    });
    let asked = server.command_calls("evalsha") - before;
    let time = begun.elapsed();
    assert!(
        u128::from(asked) * 1_000 < 75 * time.as_millis(),
        "{asked} in {time:?}"
    );
    guard.unlock().unwrap();
    waiter.result().unlock().unwrap();
}

/// A locker behind a proxy, the ticket of a lease that it passed on, and one of the same text.
fn scene(server: &RedisServer) -> (Proxy, Locker, [LeaseTicket; 2]) {
    let proxy = Proxy::start(server.addr());
    let lock = Locker::builder(&proxy.url())
        .ttl(LONG)
        .io_timeout(millis(300))
        .build()
        .unwrap();
    // The server knows the script from now on.
    let guard = lock.adopt(lock.lock("a").unwrap().into_ticket().expect("a ticket"));
    let ticket = guard.unwrap().into_ticket().expect("a ticket");
    let other = ticket.to_secret().parse().unwrap();
    (proxy, lock, [ticket, other])
}

#[test]
fn ticket_whose_adoption_was_not_answered_is_used_again() {
    let server = RedisServer::start();
    for then_close in [false, true] {
        let (proxy, lock, [ticket, other]) = scene(&server);
        proxy.set(Fault::LoseReply { then_close });
        let outcome = lock.adopt(&ticket);
        support::assert_like!(outcome, Err(Error::Unavailable { .. }));
        proxy.set(Fault::None);
        // It was carried out, for the owner that only this ticket knows.
        let outcome = lock.adopt(other);
        assert!(matches!(outcome, Err(Error::Lost { .. })), "{outcome:?}");
        let guard = lock.adopt(ticket).unwrap();
        guard.verify().unwrap();
        guard.unlock().unwrap();
    }
}

#[test]
fn ticket_whose_adoption_was_not_sent_is_used_again() {
    let server = RedisServer::start();
    let (proxy, lock, [ticket, other]) = scene(&server);
    proxy.set(Fault::BlackHole);
    let outcome = lock.adopt(&ticket);
    support::assert_like!(outcome, Err(Error::Unavailable { .. }));
    proxy.set(Fault::None);
    drop(ticket);
    lock.adopt(other).unwrap().unlock().unwrap();
}

#[test]
fn adoption_is_cancelled_in_time_and_made_again() {
    let server = RedisServer::start();
    let (proxy, lock, [ticket, _]) = scene(&server);
    let token = CancelToken::new();
    let cancelled = lock.with_cancel(&token);
    proxy.set(Fault::BlackHole);
    let adopting = calling(&cancelled, move |lock| Ok((lock.adopt(&ticket), ticket)));
    thread::sleep(millis(100));
    let watch = Stopwatch::start();
    token.cancel();
    let (outcome, ticket) = adopting.result();
    let took = watch.elapsed();
    watch.assert_took(took, millis(50));
    support::assert_like!(outcome, Err(Error::Cancelled { .. }));
    proxy.set(Fault::None);
    lock.adopt(ticket).unwrap().unlock().unwrap();
}
