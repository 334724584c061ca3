//! Sentinels that are down, hang or lie, and a master that clients do not reach.

use crosslock::LostReason;

use super::liar::{Liar, state, strings};
use super::*;
use support::{BlackHole, Fault, within};

fn stay_held(guard: &LockGuard, time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        assert!(guard.is_held(), "lost");
        thread::sleep(millis(10));
    }
    guard.verify().expect("verify");
}

#[test]
fn locks_outlast_all_sentinels() {
    let set = SentinelSet::start();
    let locker = open(&set);
    let all = || set.sentinels().iter();
    let guard = held(&locker);
    all().for_each(|sentinel| sentinel.stop());
    stay_held(&guard, 3 * TTL);
    guard.unlock().expect("unlock");
    within(millis(500), || assert_works(&locker));
    all().for_each(|sentinel| sentinel.kill());
    let guard = held(&locker);
    stay_held(&guard, 3 * TTL);
    guard.unlock().expect("unlock");
    within(TTL, || assert_works(&locker));
    all().for_each(|sentinel| sentinel.restart());
    let old = set.master();
    set.wait_until_settled();
    set.member(old).kill();
    set.wait_for_other_master(old);
    assert_works(&locker);
}

#[test]
fn every_wait_is_within_its_bound_with_black_holes_for_all_hosts_but_one() {
    let set = Setup::new().proxies().sentinels();
    let holes = [BlackHole::start(), BlackHole::start()].map(|hole| (hole.addr(), hole));
    let [one, other] = holes.each_ref().map(|(addr, _)| addr);
    let url = format!(
        "redis+sentinel://{one},{other},{}/mymaster",
        set.sentinel(1).public_addr()
    );
    let locker = within(Duration::from_secs(1), || builder(&url).build()).expect("open");
    let second = builder(&url).build().expect("open");
    let guard = within(millis(300), || held(&locker));
    for time in [0, 200, 900].map(millis) {
        let found = within(time, || second.try_lock_for(NAME, time));
        assert!(matches!(found, Ok(None)), "{found:?}");
    }
    stay_held(&guard, 2 * TTL);
    within(millis(500), || guard.unlock()).expect("unlock");
    // The one that is left names a master that nobody reaches.
    let guard = held(&locker);
    set.member(0).proxy().set(Fault::BlackHole);
    for time in [0, 200, 900].map(millis) {
        let found = within(time, || second.try_lock_for(NAME, time));
        assert!(matches!(found, Err(Error::Unavailable { .. })), "{found:?}");
    }
    within(millis(500), || drop(guard));
    within(millis(500), || locker.close());
}

#[test]
fn every_wait_is_bounded_where_all_are_black_holes() {
    let set = Setup::new().proxies().sentinels();
    let locker = open(&set);
    let all = || set.sentinels().iter().chain(set.members());
    all().for_each(|member| member.proxy().set(Fault::BlackHole));
    for time in [millis(50), millis(700)] {
        let found = within(time, || locker.try_lock_for(NAME, time));
        assert!(matches!(found, Err(Error::Unavailable { .. })), "{found:?}");
    }
    let found = within(Duration::from_secs(2), || Locker::open(&set.url()));
    let text = shown(&found.expect_err("nobody answers"));
    assert!(text.contains("no sentinel tells"), "{text}");
}

#[test]
fn clients_that_do_not_reach_the_master_are_told_in_time_and_go_on_later() {
    let set = Setup::new().proxies().sentinels();
    let (locker, other) = (open(&set), open(&set));
    let guard = held(&locker);
    set.member(0).proxy().set(Fault::BlackHole);
    for time in [0, 300, 700].map(millis) {
        let found = within(time, || other.try_lock_for(NAME, time));
        assert!(matches!(found, Err(Error::Unavailable { .. })), "{found:?}");
    }
    let lost = guard.lost().recv_timeout(PATIENCE).expect("it ends");
    assert_eq!(lost.reason, LostReason::Expired);
    within(millis(500), || drop(guard));
    let waiting = waiting(&other);
    assert_eq!(set.master(), 0);
    set.member(0).proxy().set(Fault::None);
    let (guard, _) = waiting.join().expect("no panic");
    guard.unlock().expect("unlock");
    assert_works(&locker);
}

#[test]
fn lies_do_not_count() {
    let set = SentinelSet::start();
    let state = state("7");
    let denied = "-NOAUTH Authentication required.\r\n";
    for (state, address) in [
        ("-ERR No such master with that name\r\n", "*-1\r\n"),
        (denied, denied),
        (&state, &strings(&["127.0.0.1", "x"])),
        ("", ""),
    ] {
        let liar = Liar::start(state, address);
        let url = format!("redis+sentinel://{},{}/mymaster", liar.addr(), set.hosts());
        let locker = builder(&url).build().expect("open");
        assert_works(&locker);
    }
}

#[test]
fn nothing_is_locked_at_a_replica_that_is_called_the_master() {
    let set = SentinelSet::start();
    let port = set.member(1).public_port().to_string();
    let liar = Liar::start(&state("999"), &strings(&["127.0.0.1", &port]));
    let hosts = set.hosts();
    let all = format!("redis+sentinel://{},{hosts}/mymaster", liar.addr());
    let only = format!("redis+sentinel://{}/mymaster", liar.addr());
    let found = within(Duration::from_secs(2), || Locker::open(&only));
    let error = found.expect_err("it is no master");
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    // If the liar is slower than the others, they count.
    if let Ok(locker) = within(Duration::from_secs(2), || Locker::open(&all)) {
        let _ = locker.try_lock_for(NAME, millis(500));
    }
    let reads = set.member(1).command_calls("evalsha");
    assert_eq!(reads, 0);
}

#[test]
fn many_threads_look_up_as_one() {
    const THREADS: u64 = 16;
    let set = Setup::new().proxies().sentinels();
    let locker = open(&set);
    assert_works(&locker);
    let proxy = set.sentinel(0).proxy();
    let before = proxy.accepted();
    set.member(0).kill();
    let call = |name: u64| {
        let locker = locker.clone();
        thread::spawn(move || locker.try_lock_for(&format!("name-{name}"), PATIENCE))
    };
    let calls: Vec<_> = (0..THREADS).map(call).collect();
    for call in calls {
        let guard = call.join().expect("no panic").expect("try_lock_for");
        drop(guard.expect("it is free"));
    }
    let more = proxy.accepted() - before;
    assert!(more < THREADS / 2, "{more} connections to a sentinel");
}
