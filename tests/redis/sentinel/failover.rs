//! Another server takes the place of the master.

use super::*;
use support::{Stopwatch, within};

/// When a new master answered first, as a thread sees it that asks all servers but the old one.
fn new_master(set: &SentinelSet, old: usize) -> (usize, Instant) {
    let mut found = None;
    wait_until("a new master", PATIENCE, || {
        let mut all = (0..set.members().len()).filter(|index| *index != old);
        found = all.find(|index| set.role(*index).as_deref() == Some("master"));
        found.is_some()
    });
    (found.expect("it was found"), Instant::now())
}

/// Kills the master while one holds the lock and another process waits for it. Gives how long the waiter took from the
/// new master's first answer, or from the end of the holder's lease if that came later, and the tokens.
fn killed_while_held_and_waited_for(set: &SentinelSet) -> (Duration, [u64; 2]) {
    let old = set.master();
    let (holder, waiter) = (open(set), open(set));
    let guard = held(&holder);
    let first = guard.fencing_token();
    set.wait_until_settled();
    let waiting = waiting(&waiter);
    wait_for_queue(set, old, 1);
    set.member(old).kill();
    // The lease goes on at the new master until its end: what a server counts is the ttl.
    let lease_ends = Instant::now() + guard.remaining() + TTL / 50;
    drop(guard);
    let (_, answered) = new_master(set, old);
    let (guard, got) = waiting.join().expect("no panic");
    let second = guard.fencing_token();
    guard.unlock().expect("unlock");
    let free = answered.max(lease_ends);
    set.member(old).restart();
    set.wait_until_settled();
    (got.saturating_duration_since(free), [first, second])
}

#[test]
fn waiter_is_served_soon_after_a_new_master_answers() {
    let set = SentinelSet::start();
    let watch = Stopwatch::start();
    let (took, [first, second]) = killed_while_held_and_waited_for(&set);
    println!("the waiter had the lock {took:?} after the new master answered");
    assert!(second > first, "{second} after {first}");
    watch.assert_took(took, Duration::from_secs(1));
}

#[test]
fn tokens_increase_over_many_failovers() {
    let rounds = std::env::var("CROSSLOCK_TEST_FAILOVERS");
    let rounds = rounds.map_or(3, |rounds| rounds.parse().expect("a number"));
    let set = SentinelSet::start();
    let (mut last, mut slowest) = (0, Duration::ZERO);
    for _ in 0..rounds {
        let (took, [first, second]) = killed_while_held_and_waited_for(&set);
        assert!(last < first && first < second, "{last}, {first}, {second}");
        (last, slowest) = (second, slowest.max(took));
    }
    println!("{rounds} failovers: the slowest waiter took {slowest:?}");
}

#[test]
fn guard_outlives_a_failover_that_its_lease_was_copied_before() {
    let set = SentinelSet::start();
    // What was copied last, and the last renewal at the old master, are from the last tenths of a ttl.
    let builder = builder(&set.url()).renew_every(TTL / 10);
    let locker = builder.build().expect("open");
    let guard = held(&locker);
    let old = set.master();
    set.wait_until_settled();
    let new = set.failover();
    assert_ne!(old, new);
    // Until the old master follows, it renews and releases as before.
    set.wait_until_settled();
    assert!(guard.is_held(), "{:?}", guard.lost().try_recv());
    let renewed = || {
        let before = guard.remaining();
        thread::sleep(millis(20));
        guard.remaining() > before
    };
    wait_until("a renewal at the new master", PATIENCE, renewed);
    guard.verify().expect("still held");
    assert!(has_lock(&set, new));
    guard.unlock().expect("unlock");
    assert!(!has_lock(&set, new));
}

#[test]
fn inbox_follows_to_the_new_master() {
    let set = SentinelSet::start();
    // Its heartbeats are 20 s apart.
    let lasting = || {
        let builder = builder(&set.url()).ttl(Duration::from_secs(60));
        builder.build().expect("open")
    };
    let (holder, waiter) = (lasting(), lasting());
    let guard = held(&holder);
    let old = set.master();
    let waiting = waiting(&waiter);
    wait_until("the waiter's inbox", PATIENCE, || is_heard(&set, old));
    set.wait_until_settled();
    let new = set.failover();
    wait_until("its inbox at the new master", PATIENCE, || {
        is_heard(&set, new)
    });
    let watch = Stopwatch::start();
    let released = Instant::now();
    guard.unlock().expect("unlock");
    let (guard, got) = waiting.join().expect("no panic");
    let took = got.saturating_duration_since(released);
    println!("handed off {took:?} after the release at the new master began");
    watch.assert_took(took, millis(500));
    guard.unlock().expect("unlock");
}

/// Whether a message to the one that waits is heard at that server.
fn is_heard(set: &SentinelSet, index: usize) -> bool {
    let server = set.member(index);
    let waiters: Vec<String> = server.query(&["HVALS", "{crosslock:n}:waiters"]);
    let words = waiters.iter().flat_map(|waiter| waiter.split(' '));
    let mut channels = words.filter(|word| word.starts_with("crosslock:inbox:"));
    channels.any(|channel| {
        let (_, heard): (String, u64) = server.query(&["PUBSUB", "NUMSUB", channel]);
        heard > 0
    })
}

#[test]
fn calls_go_on_at_the_new_master() {
    let set = SentinelSet::start();
    let locker = open(&set);
    assert_works(&locker);
    let new = set.failover();
    // A pooled connection to the old master is there still, or was closed by it.
    within(Duration::from_secs(1), || assert_works(&locker));
    let counter = set.member(new).counter("{crosslock:n}:fence");
    assert!(counter.is_some_and(|counter| counter % 2 == 0));
    assert_eq!(locker.list("").expect("list").count(), 0);
}
