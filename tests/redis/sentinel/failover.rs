//! Another server takes the place of the master.

use super::*;
use support::{Member, Stopwatch};

/// When a new master answered first, and when a sentinel named it first: it looks at a server once a second.
fn new_master(set: &SentinelSet, old: usize) -> [Instant; 2] {
    wait_until("a new master", PATIENCE, || {
        let mut all = (0..set.members().len()).filter(|index| *index != old);
        all.any(|index| set.role(index).as_deref() == Some("master"))
    });
    let answered = Instant::now();
    wait_until("a sentinel to name it", PATIENCE, || set.master() != old);
    [answered, Instant::now()]
}

/// How a master fails.
#[derive(Clone, Copy, Debug)]
enum Fails {
    IsKilled,
    /// It goes on when another has its place, and takes itself for the master until sentinels tell it.
    Stops,
}

impl Fails {
    fn begin(self, server: &Member) {
        match self {
            Fails::IsKilled => server.kill(),
            Fails::Stops => server.stop(),
        }
    }

    fn end(self, server: &Member) {
        match self {
            Fails::IsKilled => server.restart(),
            Fails::Stops => server.cont(),
        }
    }
}

/// What came of one failover.
#[derive(Debug)]
struct Round {
    /// From when the new master answered first until the waiter had the lock, and from when a sentinel named it.
    served_after: [Duration; 2],
    /// Of the holder, and of the waiter.
    tokens: [u64; 2],
}

/// The master fails while one process holds the lock, which it releases then, and another waits for it.
fn fails_while_held_and_waited_for(set: &SentinelSet, how: Fails) -> Round {
    let (holder, waiter) = (open(set), open(set));
    let guard = held(&holder);
    let first = guard.fencing_token();
    let waiting = waiting(&waiter);
    set.wait_until_settled();
    let old = where_it_is_waited(set);
    how.begin(set.member(old));
    drop(guard);
    let began = new_master(set, old);
    let (guard, got) = waiting.join().expect("no panic");
    let tokens = [first, guard.fencing_token()];
    how.end(set.member(old));
    guard.unlock().expect("unlock");
    set.wait_until_settled();
    Round {
        served_after: began.map(|began| got.saturating_duration_since(began)),
        tokens,
    }
}

/// The master, with the waiter in its queue. On a busy machine the sentinels may have replaced it once more.
fn where_it_is_waited(set: &SentinelSet) -> usize {
    let mut master = 0;
    wait_until("the waiter", PATIENCE, || {
        master = set.master();
        queue_length(set, master) == Some(1)
    });
    master
}

/// So many failovers of one set: the waiter of each has the lock in time, and tokens increase over all of them.
fn fails_many_times(how: Fails) {
    let rounds = std::env::var("CROSSLOCK_TEST_FAILOVERS");
    let rounds = rounds.map_or(2, |rounds| rounds.parse().expect("a number"));
    // Sentinels ask once a second: a shorter time takes a new master for down that is slow to answer the first
    // question.
    let setup = Setup::new().down_after(millis(1_500));
    let set = setup.sentinels();
    let (mut last, mut times) = (0, Vec::new());
    for _ in 0..rounds {
        let watch = Stopwatch::start();
        let round = fails_while_held_and_waited_for(&set, how);
        let [first, second] = round.tokens;
        assert!(last < first && first < second, "{last}, {round:?}");
        watch.assert_took(round.served_after[1], Duration::from_secs(1));
        last = second;
        times.push(round.served_after);
    }
    for (since, which) in ["answered", "was named"].iter().zip(0..) {
        let mut times: Vec<_> = times.iter().map(|both| both[which]).collect();
        times.sort_unstable();
        let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
        println!(
            "{how:?}, {rounds} failovers: the waiter had the lock {median:?} after the new master {since}, \
             {longest:?} at most"
        );
    }
}

#[test]
fn waiters_are_served_soon_after_each_new_master_of_killed_ones_answers() {
    fails_many_times(Fails::IsKilled);
}

#[test]
fn waiters_are_served_soon_after_each_new_master_of_stopped_ones_answers() {
    fails_many_times(Fails::Stops);
}

/// A holder that dies together with the master.
#[test]
fn waiter_has_the_lock_of_a_dead_holder_soon_after_its_lease() {
    let set = SentinelSet::start();
    set.wait_until_settled();
    // What is forgotten is renewed otherwise.
    let dying = builder(&set.url()).renew(false).ttl(2 * TTL).build();
    let guard = held(&dying.expect("open"));
    let first = guard.fencing_token();
    let waiting = waiting(&open(&set));
    wait_for_queue(&set, 0, 1);
    let watch = Stopwatch::start();
    set.member(0).kill();
    // The lease goes on at the new master until its end: what a server counts is the ttl.
    let lease_ends = Instant::now() + guard.remaining() + TTL / 25;
    std::mem::forget(guard);
    let [_, named] = new_master(&set, 0);
    let (guard, got) = waiting.join().expect("no panic");
    assert!(guard.fencing_token() > first);
    let took = got.saturating_duration_since(named.max(lease_ends));
    watch.assert_took(took, Duration::from_secs(1));
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
fn error_names_the_master_that_is_down() {
    // The sentinels don't replace it before the test ends.
    let set = Setup::new().down_after(PATIENCE).sentinels();
    set.wait_until_settled();
    let locker = Locker::open(&set.url()).expect("open");
    let master = set.member(set.master());
    let address = master.addr().to_string();
    master.kill();
    let listed = locker
        .list("")
        .and_then(|mut names| names.next().transpose());
    for error in [
        listed.expect_err("it is down"),
        locker.inspect(NAME).expect_err("it is down"),
        locker.diagnose().expect_err("it is down"),
    ] {
        assert!(shown(&error).contains(&address), "{}", shown(&error));
    }
}

#[test]
fn doctor_names_the_sentinels_that_are_down() {
    let set = SentinelSet::start();
    let locker = open(&set);
    let servers = || {
        let findings = locker.diagnose().expect("diagnose");
        let found = findings.into_iter().find(|one| one.check == "servers");
        found.expect("it is looked at")
    };
    assert_eq!(servers().verdict, crosslock::Verdict::Fine);
    set.sentinel(1).kill();
    let address = set.sentinel(1).addr().to_string();
    let found = servers();
    assert!(
        matches!(found.verdict, crosslock::Verdict::Weak { .. }),
        "{found:?}"
    );
    assert!(
        found
            .found
            .contains(&format!("1 of 4 without an answer: {address}: ")),
        "{found:?}"
    );
}

/// The master is killed while one process holds the lock and others wait. Their order is that of their coming.
#[test]
fn failover_keeps_the_order_of_waiters() {
    for ttl in [3, 10].map(Duration::from_secs).repeat(order::rounds()) {
        // Longer than what a waiter announces with a ttl of 3 s.
        let set = Setup::new().down_after(millis(1_500)).sentinels();
        set.wait_until_settled();
        let master = set.master();
        let open = || builder(&set.url()).ttl(ttl).build().expect("open");
        // All servers have it.
        let wait_for_queue = |length| {
            (0..set.members().len()).for_each(|index| wait_for_queue(&set, index, length));
        };
        let fail = |guard| {
            set.member(master).kill();
            new_master(&set, master);
            drop(guard);
        };
        let order = order::order_of_service(NAME, open, wait_for_queue, fail);
        assert_eq!(order, order::in_order(), "{ttl:?}");
    }
}
