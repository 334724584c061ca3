//! Waiters behind many others, which have long leases; and what becomes of the line when one of them dies.

use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use crosslock::{LockGuard, Locker};
use support::{Detour, Etcd, Protocol, Proxy, wait_until};

use crate::{LINE, PATIENCE, TTL, await_places, open, take, wait_for, with};

/// More than are many.
const AHEAD: usize = 17;

/// What programs that aren't crosslock put in line.
const OTHERS: &str = "crosslock/n/w/other-";

/// This bit of its number says that a lease is a long one.
const LONG: i64 = 1 << 62;

fn line_up(server: &Etcd) {
    (0..AHEAD).for_each(|nth| server.put(&format!("{OTHERS}{nth}"), "waits"));
}

fn hasty(url: &str) -> Locker {
    Locker::builder(url).ttl(TTL).build().expect("it opens")
}

fn short(server: &Etcd) -> Locker {
    with(server, |builder| builder.ttl(TTL))
}

/// The place of the only waiter that is crosslock.
fn place(server: &Etcd) -> String {
    let places = await_places(server, AHEAD + 1);
    let mut own = places.into_iter().filter(|key| !key.starts_with(OTHERS));
    own.next().expect("there is one")
}

fn seconds(server: &Etcd, place: &str) -> u64 {
    server.granted_ttl(server.lease_of(place))
}

#[track_caller]
fn await_long(server: &Etcd, place: &str) {
    wait_until("a long lease", PATIENCE, || {
        seconds(server, place) == 16 * TTL.as_secs()
    });
}

#[track_caller]
fn assert_in(server: &Etcd, place: &str, guard: LockGuard) {
    assert_eq!(server.keys(LINE), [place]);
    assert_eq!(seconds(server, place), TTL.as_secs(), "a holder's lease");
    // Longer than its ttl: it is renewed.
    thread::sleep(TTL + TTL / 2);
    guard.verify().unwrap();
    guard.unlock().unwrap();
    wait_until("all to be released", PATIENCE, || {
        server.keys("").is_empty()
    });
}

#[test]
fn waiter_behind_many_has_a_long_lease_until_it_goes_in() {
    let server = Etcd::start();
    line_up(&server);
    let locker = short(&server);
    thread::scope(|scope| {
        let waits = scope.spawn(|| wait_for(&locker));
        let place = place(&server);
        assert_eq!(seconds(&server, &place), TTL.as_secs());
        await_long(&server, &place);
        server.delete_all(OTHERS);
        assert_in(&server, &place, waits.join().unwrap());
    });
}

#[test]
fn waiter_behind_few_has_none() {
    let server = Etcd::start();
    let (holder, locker) = (open(&server), short(&server));
    let guard = take(&holder);
    thread::scope(|scope| {
        let waits = scope.spawn(|| wait_for(&locker));
        let places = await_places(&server, 2);
        thread::sleep(2 * TTL);
        let longest = places.iter().map(|place| seconds(&server, place)).max();
        assert_eq!(longest, Some(10), "the holder's, by default");
        guard.unlock().unwrap();
        waits.join().unwrap().unlock().unwrap();
    });
}

#[test]
fn waiter_keeps_its_place_when_answers_about_its_long_lease_are_lost() {
    let server = Etcd::setup().proxies().start();
    line_up(&server);
    let locker = with(&server, |builder| {
        builder.ttl(TTL).io_timeout(Duration::from_millis(300))
    });
    for then_close in [true, false] {
        line_up(&server);
        thread::scope(|scope| {
            let waits = scope.spawn(|| wait_for(&locker));
            let place = place(&server);
            server.proxy().lose_next_reply("/v3/kv/txn", then_close);
            await_long(&server, &place);
            server.proxy().lose_next_reply("/v3/kv/txn", then_close);
            server.delete_all(OTHERS);
            assert_in(&server, &place, waits.join().unwrap());
        });
    }
}

/// A waiter behind many, whose question by which its entry is to be moved to a long lease is held up.
fn while_its_move_is_held_up(
    meanwhile: impl FnOnce(&Etcd, &Detour, &str, ScopedJoinHandle<'_, LockGuard>),
) {
    let server = Etcd::start();
    line_up(&server);
    let detour = Detour::to(server.own_addr());
    let locker = hasty(&format!("etcd://{}/", detour.addr()));
    thread::scope(|scope| {
        let waits = scope.spawn(|| wait_for(&locker));
        let place = place(&server);
        detour.hold(|request| request.contains("/v3/kv/txn") && request.contains("request_put"));
        detour.await_held();
        meanwhile(&server, &detour, &place, waits);
    });
}

/// A late copy of the question by which an entry was moved finds that it was written since.
#[test]
fn long_lease_that_comes_late_is_not_that_of_a_holder() {
    while_its_move_is_held_up(|server, detour, place, waits| {
        server.delete_all(OTHERS);
        let guard = waits.join().unwrap();
        detour.deliver();
        assert_in(server, place, guard);
    });
}

/// An entry of a waiter that has died.
fn put_dead(server: &Etcd, lease: i64) -> String {
    let uuid = "6b1f8c5e-0f0a-4a63-9d5a-2f0c8a3b7d11";
    let place = format!("{LINE}{uuid}");
    server.put_under((lease, 600), &place, &format!("x since=1\n{uuid}/host/1/1"));
    place
}

#[test]
fn dead_waiter_with_a_long_lease_is_passed_over_at_the_front() {
    let server = Etcd::start();
    let (holder, locker) = (open(&server), short(&server));
    let ways: [fn(&Locker) -> LockGuard; 2] = [wait_for, |locker| {
        locker
            .try_read_for("n", PATIENCE)
            .unwrap()
            .expect("it is free")
    }];
    for (wait, lease) in ways.into_iter().zip(LONG + 7..) {
        let guard = take(&holder);
        let dead = put_dead(&server, lease);
        thread::scope(|scope| {
            let waits = scope.spawn(|| wait(&locker));
            await_places(&server, 3);
            // For as long as others are ahead it stays.
            thread::sleep(2 * TTL);
            assert!(server.keys(LINE).contains(&dead));
            guard.unlock().unwrap();
            let guard = waits.join().unwrap();
            assert!(!server.keys(LINE).contains(&dead));
            guard.unlock().unwrap();
        });
    }
}

#[test]
fn waiter_without_a_long_lease_is_not_passed_over() {
    assert_not_passed_over(|server| put_dead(server, 7));
}

/// The servers choose numbers for `etcdctl lock`, also such ones.
#[test]
fn holder_that_is_not_crosslock_is_not_passed_over() {
    assert_not_passed_over(|server| {
        let place = format!("{OTHERS}1");
        server.put_under((LONG | 7, 600), &place, "");
        place
    });
}

fn assert_not_passed_over(put: impl FnOnce(&Etcd) -> String) {
    let server = Etcd::start();
    let (holder, locker) = (open(&server), short(&server));
    let guard = take(&holder);
    let other = put(&server);
    thread::scope(|scope| {
        let waits = scope.spawn(|| wait_for(&locker));
        await_places(&server, 3);
        guard.unlock().unwrap();
        thread::sleep(3 * TTL);
        assert!(server.keys(LINE).contains(&other));
        server.delete(&other);
        waits.join().unwrap().unlock().unwrap();
    });
}

/// It is about to go in when the waiter behind it passes it over.
#[test]
fn waiter_that_is_passed_over_is_not_let_in() {
    let server = Etcd::start();
    line_up(&server);
    let proxy = Proxy::speaking(Protocol::Http, server.own_addr());
    let url = format!("etcd://{}/", proxy.addr());
    // It asks no second time.
    let slow = Locker::builder(&url).ttl(TTL).io_timeout(PATIENCE);
    let (slow, next) = (slow.build().unwrap(), short(&server));
    thread::scope(|scope| {
        let slow = scope.spawn(|| wait_for(&slow));
        let place = place(&server);
        await_long(&server, &place);
        let next = scope.spawn(|| wait_for(&next));
        await_places(&server, AHEAD + 2);
        proxy.hold_next_request("request_put");
        server.delete_all(OTHERS);
        proxy.await_held();
        let second = next.join().unwrap();
        proxy.pass_held();
        // The other comes into line anew.
        await_places(&server, 2);
        second.verify().unwrap();
        thread::sleep(TTL / 2);
        assert!(!slow.is_finished(), "two have it");
        second.unlock().unwrap();
        slow.join().unwrap().unlock().unwrap();
    });
}

/// It goes in after the waiter behind it has seen that it hadn't.
#[test]
fn waiter_that_has_gone_in_is_not_passed_over() {
    let server = Etcd::start();
    line_up(&server);
    let proxy = || Proxy::speaking(Protocol::Http, server.own_addr());
    let (proxy, other_proxy) = (proxy(), proxy());
    let locker = |proxy: &Proxy| hasty(&format!("etcd://{}/", proxy.addr()));
    let (slow, next) = (locker(&proxy), locker(&other_proxy));
    thread::scope(|scope| {
        let slow = scope.spawn(|| wait_for(&slow));
        let place = place(&server);
        await_long(&server, &place);
        let next = scope.spawn(|| wait_for(&next));
        await_places(&server, AHEAD + 2);
        proxy.hold_next_request("request_put");
        other_proxy.hold_next_request("request_delete_range");
        server.delete_all(OTHERS);
        proxy.await_held();
        other_proxy.await_held();
        proxy.pass_held();
        let first = slow.join().unwrap();
        other_proxy.pass_held();
        thread::sleep(TTL);
        assert!(!next.is_finished(), "two have it");
        first.verify().unwrap();
        first.unlock().unwrap();
        next.join().unwrap().unlock().unwrap();
    });
}

/// It would stay for 16 ttls each time.
#[test]
fn long_lease_is_used_again() {
    let server = Etcd::start();
    let locker = short(&server);
    let leases = [(); 2].map(|()| {
        line_up(&server);
        thread::scope(|scope| {
            let waits = scope.spawn(|| wait_for(&locker));
            let place = place(&server);
            await_long(&server, &place);
            let lease = server.lease_of(&place);
            server.delete_all(OTHERS);
            waits.join().unwrap().unlock().unwrap();
            lease
        })
    });
    assert_eq!(leases[0], leases[1]);
    drop(locker);
    assert!(!server.leases().contains(&leases[0]));
}

/// A late copy of the question by which its entry is to be moved comes when it has seen that it wasn't.
#[test]
fn waiter_keeps_its_place_when_its_long_lease_comes_late() {
    while_its_move_is_held_up(|server, detour, place, waits| {
        let behind = format!("{LINE}zzz");
        server.put(&behind, "waits");
        // It looks after a third of its ttl.
        thread::sleep(TTL);
        detour.deliver();
        await_long(server, place);
        server.delete_all(OTHERS);
        let guard = waits.join().unwrap();
        server.delete(&behind);
        assert_in(server, place, guard);
    });
}

/// The one before that in its way leaves just before it watches: then another is before that.
#[test]
fn dead_waiter_is_passed_over_where_the_line_changed_before_the_watch() {
    let server = Etcd::start();
    let proxy = Proxy::speaking(Protocol::Http, server.own_addr());
    let (holder, locker) = (open(&server), hasty(&format!("etcd://{}/", proxy.addr())));
    let guard = take(&holder);
    let between = format!("{OTHERS}1");
    server.put(&between, "waits");
    let dead = put_dead(&server, LONG | 7);
    thread::scope(|scope| {
        proxy.hold_next_request("create_request");
        let waits = scope.spawn(|| locker.try_lock_for("n", PATIENCE).unwrap());
        proxy.await_held();
        server.delete(&between);
        proxy.pass_held();
        // It looks once more, and watches.
        thread::sleep(TTL / 2);
        guard.unlock().unwrap();
        let guard = waits.join().unwrap().expect("it passes over");
        assert!(!server.keys(LINE).contains(&dead));
        guard.unlock().unwrap();
    });
}

/// Its lease would stay for 16 ttls.
#[test]
fn waiter_that_is_passed_over_leaves_no_long_lease() {
    let server = Etcd::start();
    line_up(&server);
    let locker = short(&server);
    thread::scope(|scope| {
        let waits = scope.spawn(|| wait_for(&locker));
        let place = place(&server);
        await_long(&server, &place);
        let lease = server.lease_of(&place);
        // As the one behind would.
        server.delete(&place);
        await_places(&server, AHEAD + 1);
        wait_until("its end", PATIENCE / 2, || {
            !server.leases().contains(&lease)
        });
        server.delete_all(OTHERS);
        waits.join().unwrap().unlock().unwrap();
    });
}

/// The same, but others are ahead for long: then it is that lease which is kept alive.
#[test]
fn waiter_keeps_its_long_lease_alive_that_came_late() {
    while_its_move_is_held_up(|server, detour, place, waits| {
        let first = server.lease_of(place);
        thread::sleep(TTL);
        detour.deliver();
        await_long(server, place);
        wait_until("the other to end", PATIENCE / 2, || {
            !server.leases().contains(&first)
        });
        server.delete_all(OTHERS);
        assert_in(server, place, waits.join().unwrap());
    });
}
