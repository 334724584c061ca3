//! A lease lasts no longer than the leader is known to keep the session, and waiters whose servers have lost their
//! majority cost little.

use super::*;
use std::thread;

/// A leader that was stopped takes sessions up, and answers a `sync`, until it looks whether it has its followers: that
/// is a tick. It doesn't hear that they have closed their connections.
#[test]
fn replaced_leader_that_goes_on_extends_no_lease() {
    const TICK: Duration = Duration::from_secs(1);
    let setup = setup().tick(TICK).proxies().config("syncLimit", "2");
    let ensemble = setup.ensemble(3);
    let old = ensemble.leader();
    // A member's first session takes it longer than others: it loads its classes.
    for member in [old, (old + 1) % 3] {
        assert_works(&super::open(&ensemble.member(member).url()));
    }
    // Longer than an election on a busy machine. Connections are made anew often: one before the leader looks.
    let open = |index: usize| {
        let builder = builder(&ensemble.member(index).url()).ttl(12 * TICK);
        builder.connect_timeout(TICK).build().expect("open")
    };
    let (locker, other) = (open(old), open((old + 1) % 3));
    let guard = held(&locker);
    ensemble.isolate(old);
    ensemble.member(old).stop();
    ensemble.wait_for_other_leader(old);
    // Time that sessions have had with the other leader.
    thread::sleep(TICK * 4);
    ensemble.member(old).cont();
    let next = held(&other);
    assert!(!guard.is_held(), "{:?} are left", guard.remaining());
    assert!(next.fencing_token() > guard.fencing_token());
    ensemble.take_back(old);
}

#[test]
fn reader_after_a_downgrade_counts_no_longer_than_the_session_is_proven() {
    let tick = millis(500);
    let server = ZooKeeper::setup().tick(tick).start();
    let ttl = tick * 8;
    let locker = builder(&server.url()).ttl(ttl).build().expect("open");
    let writing = locker.write(NAME).expect("write");
    // A new session counts at once. What is proven later is more than a tick old.
    thread::sleep(tick * 4);
    let reading = writing.downgrade().expect("downgrade");
    let left = reading.remaining();
    assert!(left <= ttl - tick, "{left:?}");
    assert!(reading.is_held());
}
