//! What an owner has at a server that can't be reached when it gives that back: the server hears of it afterwards.

use support::Fault;

use super::*;

/// Nothing ends by itself meanwhile.
const LONG: Duration = Duration::from_secs(90);

fn lasting(url: &str) -> Locker {
    builder(url).ttl(LONG).build().expect("open")
}

/// A lock that all servers have.
fn held_at_all(set: &Quorum, locker: &Locker) -> LockGuard {
    // The first time not all are connected.
    let mut all = std::iter::repeat_with(|| held(locker));
    let has_it = |at: usize| eventually(TTL / 10, || set.server(at).get(LOCK).is_some());
    let guard = all.find(|_| (0..3).all(has_it));
    guard.expect("one that all have")
}

fn queued(set: &Quorum, at: usize) -> usize {
    set.server(at).query(&["LLEN", QUEUE])
}

#[test]
fn lock_that_is_released_meanwhile_is_free_there_soon() {
    for (at, fault) in [
        (0, Fault::Refuse),
        (2, Fault::Refuse),
        (0, Fault::BlackHole),
    ] {
        let set = Setup::new().proxies().quorum(3);
        let locker = lasting(&set.url("0s"));
        let guard = held_at_all(&set, &locker);
        set.server(at).proxy().set(fault);
        guard.unlock().expect("a majority hears of it");
        assert!(set.server(at).get(LOCK).is_some(), "it can't know");
        set.server(at).proxy().set(Fault::None);
        let is_free = || set.server(at).get(LOCK).is_none();
        wait_until("the release", PATIENCE, is_free);
    }
}

/// Another had missed the lock, and a third hears of the panic only afterwards.
#[test]
fn panic_is_told_where_it_was_missed() {
    const LONG_GONE: Duration = Duration::from_millis(300);
    let set = Setup::new().proxies().quorum(3);
    let (locker, other) = (lasting(&set.url("0s")), lasting(&set.url("0s")));
    drop(held_at_all(&set, &locker));
    drop(held_at_all(&set, &other));
    set.server(1).proxy().set(Fault::Refuse);
    let guard = held(&locker);
    wait_until("it is at the others", PATIENCE, || {
        [0, 2]
            .into_iter()
            .all(|at| set.server(at).get(LOCK).is_some())
    });
    set.server(1).proxy().set(Fault::None);
    // So that a release is sent there again.
    thread::sleep(LONG_GONE);
    set.server(2).proxy().set(Fault::Refuse);
    let panics = thread::spawn(move || {
        let _guard = guard;
        panic!("on purpose");
    });
    assert!(panics.join().is_err());
    set.server(2).proxy().set(Fault::None);
    let is_free = || set.server(2).get(LOCK).is_none();
    wait_until("the release", PATIENCE, is_free);
    assert!(held(&other).was_abandoned());
}

#[test]
fn waiter_that_moves_to_another_queue_leaves_the_first_when_it_gives_up() {
    let set = Setup::new().proxies().quorum(3);
    let (locker, waiting) = (lasting(&set.url("0s")), lasting(&set.url("0s")));
    let guard = held_at_all(&set, &locker);
    let waiter = thread::spawn(move || waiting.try_lock_for(NAME, 4 * TTL));
    wait_until("the queue", PATIENCE, || queued(&set, 0) == 1);
    set.server(0).proxy().set(Fault::Refuse);
    wait_until("the other queue", PATIENCE, || queued(&set, 1) == 1);
    set.server(0).proxy().set(Fault::None);
    let got = waiter.join().expect("no panic").expect("try_lock_for");
    assert!(got.is_none());
    wait_until("both queues to be empty", PATIENCE, || {
        queued(&set, 0) + queued(&set, 1) == 0
    });
    drop(guard);
}

/// The first server has let it in, and the others refuse it.
#[test]
fn waiter_that_begins_anew_leaves_nothing_where_it_was_let_in() {
    let set = Setup::new().proxies().quorum(3);
    let waiting = lasting(&set.url("0s"));
    pass(&waiting);
    for at in [1, 2] {
        set.server(at).query::<()>(&["SET", LOCK, "another"]);
    }
    let waiter = thread::spawn(move || waiting.try_lock_for(NAME, PATIENCE));
    let mut first = None;
    wait_until("the lease there", PATIENCE, || {
        first = set.server(0).get(LOCK);
        first.is_some()
    });
    set.server(0).proxy().set(Fault::Refuse);
    wait_until("the other queue", PATIENCE, || queued(&set, 1) == 1);
    set.server(0).proxy().set(Fault::None);
    wait_until("its release", PATIENCE, || set.server(0).get(LOCK) != first);
    for at in [1, 2] {
        set.server(at).query::<()>(&["DEL", LOCK]);
    }
    drop(waiter.join().expect("no panic"));
}
