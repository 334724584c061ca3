//! The clock of a server that takes another's place may be ahead, or behind.
//!
//! A lease is copied to replicas as the time at which it ends (Redis 7.0). So a server whose clock is ahead ends it as
//! much earlier, and one whose clock is behind as much later, which is what these tests have the promoted server do:
//! its process has the clock of this machine.

use std::time::Instant;

use super::*;

/// By how much the replica's clock is ahead, in milliseconds.
const AHEAD: u64 = 600;
const TTL: Duration = millis(2_400);

/// A replica whose clock is ahead is promoted while a lease is held. Gives for how long two had the lock, if they had.
fn overlap(clock_skew: Duration) -> Option<Duration> {
    let set = Replicated::start(1);
    let of = |index, replicas| {
        let builder = builder(&set, index, replicas).ttl(TTL);
        builder.clock_skew(clock_skew).renew(false).build().unwrap()
    };
    let first = held(&of(0, 1));
    let ends = Instant::now() + first.remaining();
    set.member(0).kill();
    set.promote(1);
    let end: u64 = set.member(1).query(&["PEXPIRETIME", LOCK]);
    let early = (end - AHEAD).to_string();
    set.member(1).query::<()>(&["PEXPIREAT", LOCK, &early]);
    let second = of(1, 0).try_lock_for(NAME, PATIENCE).unwrap();
    let got = Instant::now();
    drop((first, second.expect("the lease ends")));
    (got < ends).then(|| ends - got)
}

#[test]
fn server_whose_clock_is_ahead_by_clock_skew_at_most_lets_in_nobody_too_early() {
    assert_eq!(overlap(millis(AHEAD)), None);
}
