//! A master that was replaced and doesn't know it yet: who holds a lock there, and for how long.

use super::liar::Liar;
use super::*;
#[cfg(feature = "value")]
use support::scripts::{RELEASE, digest};
use support::{Fault, Proxy, RedisServer, Stopwatch};

/// The holder renews at the stale master, while another has the lock at the new one. It may do so until its next
/// renewal, which looks up first.
#[test]
fn holder_at_a_master_that_was_cut_off_learns_of_its_successor() {
    const TTL: Duration = Duration::from_secs(6);
    let set = Setup::new().proxies().sentinels();
    let [holder, other] = [(); 2].map(|()| builder(&set.url()).ttl(TTL).build().expect("open"));
    let guard = held(&holder);
    let before = guard.fencing_token();
    set.wait_until_settled();
    let (watch, began) = (Stopwatch::start(), Instant::now());
    // Looks when the guard is held last, but not for ever.
    let held_for = thread::spawn(move || {
        while guard.is_held() && began.elapsed() < PATIENCE {
            thread::sleep(millis(1));
        }
        began.elapsed()
    });
    let new = replace_by_another(&set);
    let replaced = began.elapsed();
    let broken = other.break_lock(NAME).expect("break");
    assert_eq!(broken.len(), 1, "the new master knows the lease");
    let second = held(&other);
    assert!(second.fencing_token() > before && has_lock(&set, new));
    let held_for = held_for.join().expect("no panic");
    second.verify().expect("it holds the lock");
    assert!(held_for < PATIENCE, "it renews at the old master for ever");
    watch.assert_took(held_for, replaced + TTL / 3);
}

/// Cuts server 0 off from all others, and gives the one that takes its place.
fn replace_by_another(set: &SentinelSet) -> usize {
    let rest = set.members()[1..].iter().chain(set.sentinels());
    rest.for_each(|other| set.member(0).cut_from(other));
    set.wait_for_other_master(0)
}

#[test]
fn release_reaches_the_new_master_where_the_last_look_up_is_a_second_old() {
    let set = Setup::new().proxies().sentinels();
    let locker = builder(&set.url()).ttl(PATIENCE).renew(false).build();
    let guard = held(&locker.expect("open"));
    let looked_up = Instant::now();
    set.wait_until_settled();
    let new = replace_by_another(&set);
    assert!(has_lock(&set, new));
    thread::sleep(Duration::from_secs(1).saturating_sub(looked_up.elapsed()));
    guard.unlock().expect("unlock");
    assert!(!has_lock(&set, new), "the old master has released it");
}

#[test]
fn call_to_a_master_that_hangs_ends_when_another_is_named() {
    let servers = [(); 2].map(|()| RedisServer::start());
    let first = Proxy::start(servers[0].addr());
    let liar = Liar::start(1, first.addr().port());
    // An idle connection has half of a call's time, unless its server is replaced.
    let locker = builder(&liar.url())
        .io_timeout(PATIENCE)
        .build()
        .expect("open");
    assert_works(&locker);
    first.set(Fault::BlackHole);
    let before = first.requests();
    let waiting = waiting(&locker);
    wait_until("the call", PATIENCE, || first.requests() > before);
    thread::sleep(millis(600));
    assert!(!waiting.is_finished());
    let named = Instant::now();
    liar.tell(2, servers[1].port());
    let (guard, got) = waiting.join().expect("no panic");
    let took = got.saturating_duration_since(named);
    assert!(took < PATIENCE / 3, "{took:?} after it was named");
    assert!(servers[1].get(LOCK).is_some());
    guard.unlock().expect("unlock");
}

/// The second one knew nothing of the lease, and let in another: it can't tell that the first one has ended it.
#[cfg(feature = "value")]
#[test]
fn value_whose_release_two_masters_may_have_had_is_not_told_to_be_stored() {
    let servers = [(); 2].map(|()| RedisServer::start());
    let first = Proxy::start(servers[0].addr());
    let liar = Liar::start(1, first.addr().port());
    let locker = builder(&liar.url()).ttl(PATIENCE).build().expect("open");
    let count = locker.mutex(NAME, 0u64).expect("mutex");
    count.update(|count| *count += 1).expect("update");
    let mut guard = count.lock().expect("lock");
    *guard += 1;
    // It carries the release out, its answer is lost, and it isn't reached any more.
    first.lose_next_reply(&digest(RELEASE), true);
    first.point_to(([127, 0, 0, 1], 1).into());
    assert_works(&builder(&servers[1].url()).build().expect("open"));
    liar.tell(2, servers[1].port());
    let outcome = crosslock::MutexGuard::unlock(guard);
    let text = shown(&outcome.expect_err("nobody has the value"));
    assert!(text.contains("another has taken"), "{text}");
    assert_eq!(*count.lock().expect("lock"), 0);
}
