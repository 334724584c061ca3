//! Another member leads: locks go on under leases that the leaders before it don't know.

use std::thread;
use std::time::Duration;

use crosslock::{Error, Locker};
use support::{Detour, Etcd, wait_until};

use crate::{LINE, LONG, PATIENCE, await_places, open, take};

/// Its leases end by themselves only after the test, and are renewed all the time.
fn busy(url: &str) -> Locker {
    let every = Duration::from_millis(200);
    let builder = Locker::builder(url).ttl(LONG).renew_every(every);
    builder.build().expect("it opens")
}

fn way(detour: &Detour) -> String {
    format!("etcd://{}/", detour.addr())
}

/// Whether a request puts places under another lease.
fn moves(request: &str) -> bool {
    request.contains("/v3/kv/txn") && request.contains(MOVE)
}

/// Whether a request asks for the lock.
fn asks(request: &str) -> bool {
    request.contains("/v3/kv/txn") && request.contains("request_put") && !request.contains(MOVE)
}

/// A server that was started again leads itself in another term.
fn elect(server: &Etcd) {
    server.restart();
}

/// The only place in line, and its lease.
#[track_caller]
fn place(server: &Etcd) -> (String, i64) {
    let key = await_places(server, 1).remove(0);
    let lease = server.lease_of(&key);
    (key, lease)
}

#[track_caller]
fn await_other_lease(server: &Etcd, (key, old): &(String, i64)) -> i64 {
    let mut lease = *old;
    wait_until("another lease", PATIENCE, || {
        lease = server.lease_of(key);
        lease != *old
    });
    assert_ne!(lease, 0, "the place is gone");
    lease
}

#[test]
fn place_is_put_under_another_lease() {
    let server = Etcd::start();
    let (locker, other) = (busy(&server.url()), open(&server));
    let guard = take(&locker);
    let first = place(&server);
    elect(&server);
    let second = await_other_lease(&server, &first);
    wait_until("the old lease to end", PATIENCE, || {
        !server.leases().contains(&first.1)
    });
    guard.verify().unwrap();
    assert!(other.try_lock("n").unwrap().is_none());
    assert_eq!(server.lease_of(&first.0), second, "once is enough");
    guard.unlock().unwrap();
    assert!(server.keys("").is_empty());
    assert!(!take(&other).abandoned());
}

#[test]
fn all_names_and_permits_are_put_under_it() {
    let server = Etcd::start();
    let locker = busy(&server.url());
    let both = locker.try_lock_all(&["m", "n"]).unwrap().unwrap();
    let semaphore = locker.semaphore("s", 2).unwrap();
    let permit = semaphore.try_acquire().unwrap().unwrap();
    let keys = server.keys("crosslock/");
    let places: Vec<_> = keys.iter().filter(|key| key.contains("/w/")).collect();
    let leases = || places.iter().map(|key| server.lease_of(key));
    let first: Vec<_> = leases().collect();
    elect(&server);
    wait_until("other leases", PATIENCE, || {
        leases().zip(&first).all(|(lease, first)| lease != *first)
    });
    both.verify().unwrap();
    permit.verify().unwrap();
    assert_eq!(server.keys("crosslock/"), keys);
    both.unlock().unwrap();
    permit.unlock().unwrap();
    assert!(server.keys("").is_empty());
}

#[test]
fn waiter_keeps_its_place() {
    let server = Etcd::start();
    let (holder, brief) = (busy(&server.url()), Duration::from_secs(6));
    let waiter = Locker::builder(&server.url()).ttl(brief).build().unwrap();
    let guard = take(&holder);
    let ahead = place(&server);
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let guard = waiter.try_lock_for("n", 3 * PATIENCE).unwrap().unwrap();
            guard.verify().unwrap();
            guard.unlock().unwrap();
        });
        let behind = await_places(&server, 2);
        let behind = behind.into_iter().find(|key| *key != ahead.0).unwrap();
        let waiting = (behind.clone(), server.lease_of(&behind));
        elect(&server);
        await_other_lease(&server, &waiting);
        guard.unlock().unwrap();
        waits.join().unwrap();
    });
    assert!(server.keys("").is_empty());
}

#[test]
fn downgrade_that_finds_another_term_goes_on_under_another_lease() {
    let server = Etcd::start();
    let locker = Locker::builder(&server.url()).ttl(LONG).build().unwrap();
    let guard = take(&locker);
    let first = place(&server);
    elect(&server);
    let reading = guard.downgrade().unwrap();
    assert_ne!(server.lease_of(&first.0), first.1);
    reading.verify().unwrap();
    reading.unlock().unwrap();
    assert!(server.keys("").is_empty());
}

/// What puts places under another lease is the only transaction here that compares by it.
const MOVE: &str = r#""target":"MOD""#;

#[test]
fn lost_answer_to_it_changes_nothing() {
    let server = Etcd::setup().proxies().start();
    let guard = take(&busy(&server.url()));
    let first = place(&server);
    server.proxy().lose_next_reply(MOVE, true);
    elect(&server);
    let second = await_other_lease(&server, &first);
    wait_until("the old lease to end", PATIENCE, || {
        !server.leases().contains(&first.1)
    });
    assert_eq!(server.proxy().lost_replies(), 1);
    assert_eq!(server.lease_of(&first.0), second);
    guard.verify().unwrap();
    guard.unlock().unwrap();
    assert!(server.keys("").is_empty());
}

/// A guard, and the transaction that was to put its place under another lease, held up.
fn held_up(server: &Etcd, detour: &Detour) -> (crosslock::LockGuard, (String, i64)) {
    let guard = take(&busy(&way(detour)));
    let first = place(server);
    detour.hold(moves);
    elect(server);
    detour.await_held();
    (guard, first)
}

#[test]
fn late_copy_of_it_changes_nothing() {
    let server = Etcd::start();
    let detour = Detour::to(server.own_addr());
    let (guard, first) = held_up(&server, &detour);
    let second = await_other_lease(&server, &first);
    elect(&server);
    let third = await_other_lease(&server, &(first.0.clone(), second));
    detour.deliver();
    assert_eq!(server.lease_of(&first.0), third);
    guard.verify().unwrap();
    guard.unlock().unwrap();
    assert!(server.keys("").is_empty());
}

#[test]
fn late_copy_of_it_undoes_no_release_and_no_break() {
    let server = Etcd::start();
    for breaks in [false, true] {
        let detour = Detour::to(server.own_addr());
        let (guard, first) = held_up(&server, &detour);
        await_other_lease(&server, &first);
        if breaks {
            assert_eq!(open(&server).break_lock("n").unwrap().len(), 1);
            wait_until("it hears", PATIENCE, || !guard.is_held());
        }
        drop(guard);
        await_places(&server, 0);
        detour.deliver();
        assert!(server.keys(LINE).is_empty());
        assert!(open(&server).try_lock("n").unwrap().is_some());
    }
}

#[test]
fn late_copy_of_it_takes_back_no_lock_that_was_passed_on() {
    let server = Etcd::start();
    let detour = Detour::to(server.own_addr());
    let (guard, first) = held_up(&server, &detour);
    let adopted = open(&server).adopt("n", guard.into_owner()).unwrap();
    let lease = server.lease_of(&first.0);
    detour.deliver();
    assert_eq!(server.lease_of(&first.0), lease);
    adopted.verify().unwrap();
    adopted.unlock().unwrap();
    assert!(server.keys("").is_empty());
}

/// It would put the place under the old lease again.
#[test]
fn late_question_for_the_lock_puts_its_place_under_no_old_lease() {
    let server = Etcd::start();
    let detour = Detour::to(server.own_addr());
    let locker = busy(&way(&detour));
    detour.hold(asks);
    let guard = locker.try_lock_for("n", PATIENCE).unwrap().expect("free");
    detour.await_held();
    let first = place(&server);
    elect(&server);
    let second = await_other_lease(&server, &first);
    // From then on it counts.
    wait_until("the old lease to end", PATIENCE, || {
        !server.leases().contains(&first.1)
    });
    detour.deliver();
    assert_eq!(server.lease_of(&first.0), second);
    guard.verify().unwrap();
    guard.unlock().unwrap();
    assert!(server.keys("").is_empty());
}

#[test]
fn lock_of_which_a_name_is_gone_meanwhile_is_lost() {
    let server = Etcd::start();
    let detour = Detour::to(server.own_addr());
    let locker = busy(&way(&detour));
    let both = locker.try_lock_all(&["m", "n"]).unwrap().unwrap();
    detour.hold(moves);
    elect(&server);
    detour.await_held();
    server.delete_all("crosslock/m/w/");
    wait_until("it is lost", PATIENCE, || !both.is_held());
    assert!(matches!(both.verify(), Err(Error::Lost { .. })));
    assert!(open(&server).try_lock("m").unwrap().is_some());
}
