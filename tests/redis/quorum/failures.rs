//! Servers that are killed, and waiters that are stopped.

use support::puppet::Puppet;

use super::*;

/// The first has the queue, and the last is asked beside it.
#[test]
fn lock_outlives_one_of_three_servers_and_goes_to_who_waits() {
    for killed in [0, 2] {
        let set = Setup::new().quorum(3);
        let url = set.url("0s");
        let locker = open(&url);
        let queued = |at| set.server(at).query::<usize>(&["LLEN", QUEUE]);
        let has_it = |at| eventually(TTL / 10, || set.server(at).get(LOCK).is_some());
        // The first time not all are connected.
        let mut all = std::iter::repeat_with(|| held(&locker));
        let guard = all.find(|_| [0, 1, 2].into_iter().all(has_it));
        let guard = guard.expect("one that all have");
        let waiters = [(); 3].map(|()| {
            let locker = open(&url);
            thread::spawn(move || (held(&locker).fencing_token(), Instant::now()))
        });
        wait_until("the queue", PATIENCE, || queued(0) == 3);
        set.server(killed).kill();
        // Without a renewal it would be lost.
        thread::sleep(TTL);
        assert!(guard.is_held(), "{:?}", guard.lost().try_recv());
        guard.verify().expect("verify");
        let line = usize::from(killed == 0);
        wait_until("the other queue", PATIENCE, || queued(line) == 3);
        let (watch, released) = (Stopwatch::start(), Instant::now());
        let mut tokens = vec![guard.fencing_token()];
        guard.unlock().expect("unlock");
        let mut got = waiters.map(|waiter| waiter.join().expect("no panic"));
        got.sort_by_key(|(_, at)| *at);
        tokens.extend(got.map(|(token, _)| token));
        assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
        watch.assert_took(got[2].1 - released, TTL / 4);
    }
}

#[test]
fn lease_that_only_a_minority_renews_is_lost() {
    let set = Setup::new().quorum(3);
    let locker = open(&set.url("0s"));
    let guard = held(&locker);
    for killed in [1, 2] {
        set.server(killed).kill();
    }
    let lost = guard.lost().recv_timeout(PATIENCE);
    assert!(lost.is_ok() && !guard.is_held(), "{lost:?}");
}

/// A waiter that is stopped when the line's server lets it in hears of that late. The lease there has begun by then: it
/// counts from its own beginning, though the other servers are asked only now.
#[test]
fn lease_is_no_longer_than_that_of_the_server_that_let_the_waiter_in() {
    const TTL: Duration = Duration::from_secs(4);
    let set = Setup::new().quorum(3);
    let locker = open(&set.url("0s"));
    let guard = held(&locker);
    let mut waiter = Puppet::start(&set.url("0s"), TTL);
    waiter.lock(NAME);
    let is_queued = || set.server(0).query::<usize>(&["LLEN", QUEUE]) == 1;
    wait_until("the queue", PATIENCE, is_queued);
    waiter.stop();
    guard.unlock().expect("unlock");
    thread::sleep(TTL / 4);
    waiter.cont();
    waiter.holding();
    let asked = Instant::now();
    let remaining = waiter.ask("remaining").parse().expect("a number");
    let at_line = set.server(0).pttl(LOCK).try_into().expect("it is there");
    let passed = asked.elapsed();
    let remaining = Duration::from_millis(remaining);
    assert!(
        remaining <= Duration::from_millis(at_line) + passed,
        "{remaining:?}, and {at_line} ms after {passed:?}"
    );
}
