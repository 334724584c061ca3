//! What a quorum once did wrong.

use std::time::SystemTime;

use super::*;

/// A server that missed the lock has a counter ahead of it, as a waiter leaves it that had it there in passing. It is
/// asked for the lock again when it is needed for a majority.
#[test]
fn lock_that_was_taken_again_is_verified() {
    let set = Setup::new().quorum(3);
    let locker = open(&set.url("0s"));
    pass(&locker);
    set.server(1).kill();
    let guard = held(&locker);
    set.server(1).restart();
    let ahead = guard.fencing_token() + 1 + 4_000_000;
    set.server(1)
        .query::<()>(&["SET", COUNTER, &ahead.to_string()]);
    set.server(2).kill();
    let has_it = || set.server(1).get(LOCK).is_some();
    wait_until("it is taken again", PATIENCE, has_it);
    guard.verify().expect("it is held");
}

/// By its counter such a server denied the lease, and another that had lost it made a majority of them.
#[test]
fn lock_that_was_taken_again_outlives_the_loss_of_another_server() {
    let set = Setup::new().quorum(3);
    let locker = open(&set.url("0s"));
    pass(&locker);
    let guard = held(&locker);
    let ahead = guard.fencing_token() + 1 + 4_000_000;
    for at in [1, 2] {
        let has_it = || set.server(at).get(LOCK).is_some();
        wait_until("it is there", PATIENCE, has_it);
        set.server(at).query::<()>(&["DEL", LOCK]);
        if at == 1 {
            set.server(at)
                .query::<()>(&["SET", COUNTER, &ahead.to_string()]);
        }
        wait_until("it is taken again", PATIENCE, has_it);
    }
    guard.verify().expect("it is held");
    let ticket = guard.into_ticket().expect("it is held");
    let guard = locker.adopt(ticket).expect("it is held");
    guard.unlock().expect("it was held");
}

/// It was to give back what it may have got there, and awaited that for as long as any answer.
#[test]
fn lock_that_is_taken_is_told_soon_though_a_server_hangs() {
    let set = Setup::new().quorum(3);
    let [holder, other] = [(); 2].map(|()| open(&set.url("0s")));
    pass(&holder);
    pass(&other);
    let _guard = held(&holder);
    set.server(2).stop();
    let (watch, asked) = (Stopwatch::start(), Instant::now());
    let got = other.try_lock(NAME).expect("try_lock");
    assert!(got.is_none());
    watch.assert_took(asked.elapsed(), TTL);
    set.server(2).cont();
}

/// A server counts whole seconds of its uptime: one that was started at the end of a second says 1 at once.
#[test]
fn server_that_was_started_at_the_end_of_a_second_waits_for_all_of_rejoin() {
    const REJOIN: Duration = Duration::from_secs(3);
    let set = Setup::new().proxies().quorum(3);
    let open = || builder(&set.url("3s")).ttl(REJOIN).renew(false).build();
    let [holder, other] = [(); 2].map(|()| open().expect("open"));
    pass(&holder);
    pass(&other);
    let in_second = || {
        SystemTime::UNIX_EPOCH
            .elapsed()
            .map_or(0, |since| since.subsec_millis())
    };
    wait_until("a new second", PATIENCE, || in_second() < 100);
    set.server(2).proxy().set(support::Fault::BlackHole);
    wait_until("its end", PATIENCE, || (750..800).contains(&in_second()));
    let guard = held(&holder);
    set.server(2).proxy().set(support::Fault::None);
    set.server(0).restart();
    wait_until("a new second", PATIENCE, || in_second() < 100);
    let mut found = None;
    wait_until("the lock", PATIENCE, || {
        found = other.try_lock(NAME).expect("try_lock");
        found.is_some()
    });
    let second = found.expect("held");
    assert!(
        !guard.is_held(),
        "both have it, for {:?}",
        guard.remaining()
    );
    second.verify().expect("verify");
}
