//! Ownership of a name for a limited time: the lease, what watches over it while it is held, the thread that renews it,
//! and the releases that are still to be made.
//!
//! It uses `base` and the traits of `engine`. What always holds here: a lease has one owner, from which it moves to the
//! next; a lease that was lost is never valid again.

use std::time::Duration;

use crate::base::{
    BootInstant, Claim, Ending, Options, Owner, Stored, Token, backoff::shortened,
    clock::valid_until, limits::SHORTEST_RENEWAL_PAUSE,
};

pub(crate) mod deferred_release;
pub(crate) mod monitor;
pub(crate) mod renewer;

/// In this time a lease that threads of this process take from each other comes to each that waits for it.
const ROTATION: Duration = Duration::from_micros(500);

/// Ownership of a name for a limited time: plain data with one owner.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) claim: Claim,
    pub(crate) owner: Owner,
    pub(crate) token: Token,
    pub(crate) valid_until: BootInstant,
    /// When it is to be renewed.
    pub(crate) due: BootInstant,
    /// When this process was given it.
    pub(crate) granted: BootInstant,
    /// When its holder got it: later, if it was handed over.
    pub(crate) held_since: BootInstant,
    /// When a thread got it last that had waited for it here; before that, when this process was given it.
    pub(crate) fair_since: BootInstant,
    /// How far its token is above the one that was granted.
    pub(crate) tokens: u32,
    /// Whether its holder was told its token: then the next one has another.
    pub(crate) is_token_used: bool,
    /// If it is released before this, the lock stays taken until then.
    pub(crate) kept_until: BootInstant,
    /// Whether its holder was dropped by a panic that began while it was held.
    pub(crate) panicked: bool,
    /// What the lock protects, while it is known here.
    pub(crate) value: Option<Stored>,
}

impl Lease {
    /// One that isn't valid yet: see `Core::restart`.
    pub(crate) fn new(claim: Claim, owner: Owner, token: Token) -> Self {
        Lease {
            claim,
            owner,
            token,
            valid_until: BootInstant::START,
            due: BootInstant::MAX,
            granted: BootInstant::START,
            held_since: BootInstant::START,
            fair_since: BootInstant::START,
            tokens: 0,
            is_token_used: true,
            kept_until: BootInstant::START,
            panicked: false,
            value: None,
        }
    }

    /// The token that the engine granted: threads use those above it.
    pub(crate) fn granted_token(&self) -> u64 {
        self.token.number - u64::from(self.tokens)
    }

    pub(crate) fn remaining(&self, now: BootInstant) -> Duration {
        if self.valid_until == BootInstant::MAX {
            return Duration::MAX;
        }
        self.valid_until.since(now)
    }

    pub(crate) fn is_valid(&self, now: BootInstant) -> bool {
        now < self.valid_until
    }

    /// Whether the next thread of this process may have it without asking the engine: for at most `hand_over`
    /// since it was granted, and with half of its ttl left at least; `most` tokens above the first one are allowed.
    pub(crate) fn may_be_handed_over(
        &self,
        now: BootInstant,
        ttl: Duration,
        hand_over: Duration,
        most: u64,
    ) -> bool {
        now.since(self.granted) < hand_over
            && self.remaining(now) >= ttl / 2
            && (u64::from(self.tokens) < most || !self.is_token_used)
            // The engine tells the next holder of it, or keeps the lock.
            && !self.panicked
            && self.kept_until <= now
    }

    /// Until when the lock stays taken if it is released now. A panic frees it at once.
    pub(crate) fn kept_until(&self) -> BootInstant {
        if self.panicked {
            BootInstant::START
        } else {
            self.kept_until
        }
    }

    /// How it ends when it is released. What those that share were doing is nobody's concern.
    pub(crate) fn ending(&self) -> Ending {
        let last_used = self.token.last_used();
        if self.panicked && self.claim.is_exclusive() {
            Ending::Panicked { last_used }
        } else {
            Ending::Clean { last_used }
        }
    }

    /// Whether its holder has it from another thread.
    pub(crate) fn was_handed_over(&self) -> bool {
        self.held_since != self.granted
    }

    /// Whether it is to go to the first of the threads that wait here, of which there are so many, and not to whichever
    /// comes first: so each of them gets it within about [`ROTATION`].
    pub(crate) fn is_fair_turn_due(&self, now: BootInstant, waiting: usize) -> bool {
        let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
        now.since(self.fair_since) >= ROTATION / waiting.max(1)
    }

    /// The same lease, for the next holder in this process, who gets it now, and what that one asked for. `most` tokens
    /// above the first one are allowed. While there are plenty, and the clock has come so far, it has one of its own;
    /// else it has one when it asks.
    pub(crate) fn handed_over(self, claim: &Claim, now: BootInstant, most: u64) -> Self {
        let mut next = Lease {
            claim: claim.clone(),
            held_since: now,
            token: self.token.of_next_thread(self.is_token_used),
            tokens: self.tokens + u32::from(self.is_token_used),
            ..self
        };
        next.is_token_used = u64::from(next.tokens) < most / 2 && next.token_from() <= now;
        next
    }

    /// From when on its token is no larger than that of a lease would be which the engine granted then, if it lost all
    /// that it knows. Tokens may follow each other faster than the microseconds by which an engine counts: then the
    /// later one is told a moment later. One percent is for clocks that differ.
    pub(crate) fn token_from(&self) -> BootInstant {
        const NANOS: u64 = 1_011;
        self.granted
            .plus(Duration::from_nanos(NANOS * u64::from(self.tokens)))
    }
}

/// When leases are renewed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) ttl: Duration,
    /// `None`: never.
    pub(crate) every: Option<Duration>,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) clock_skew: Duration,
}

impl Plan {
    /// On an engine whose servers' clocks may differ by `clock_skew`.
    pub(crate) fn of(options: &Options, clock_skew: Duration) -> Self {
        let every = options.renew.then(|| options.renew_every());
        Plan {
            ttl: options.ttl,
            every,
            max_hold: options.max_hold,
            clock_skew,
        }
    }

    /// The end of a lease that was granted or renewed by a command sent after `t0`.
    pub(crate) fn valid_until(&self, t0: BootInstant) -> BootInstant {
        valid_until(t0, self.ttl, self.clock_skew)
    }

    /// When a lease that was granted or renewed at `t0` is due. A little early, at random: locks that were
    /// taken together needn't be renewed together.
    pub(crate) fn due(&self, t0: BootInstant) -> BootInstant {
        const JITTER: f64 = 0.1;
        self.every
            .map_or(BootInstant::MAX, |every| t0.plus(shortened(every, JITTER)))
    }

    /// When a lease is due that was granted now, and began at `since`. If that is long ago, and most of it is left all
    /// the same, it isn't due at once: a program that locks in a loop needn't renew each lease.
    pub(crate) fn first_due(&self, since: BootInstant, now: BootInstant) -> BootInstant {
        let due = self.due(since);
        if self.valid_until(since).since(now) < self.ttl / 2 {
            return due;
        }
        self.every
            .map_or(due, |every| due.max(now.plus(shortened(every / 2, 0.1))))
    }

    /// How long to wait after a renewal that failed: there are several tries before the lease is over.
    pub(crate) fn pause(&self, remaining: Duration) -> Duration {
        let longest = self.every.unwrap_or(Duration::MAX);
        shortened(
            (remaining / 8).min(longest).max(SHORTEST_RENEWAL_PAUSE),
            0.5,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::{BootClock, Clock};
    use crate::base::fork::Process;
    use crate::base::owner::Owner;
    use crate::base::random::for_any;

    const MOST: u64 = 64;

    /// One that was granted now.
    fn granted(number: u64) -> Lease {
        let claim = Claim::exclusive("test", "a");
        let owner = Owner::of(Process::current(), None);
        let mut lease = Lease::new(claim, owner, Token::from_number(number));
        lease.granted = BootClock.now();
        (lease.fair_since, lease.valid_until) = (lease.granted, BootInstant::MAX);
        lease
    }

    #[test]
    fn tokens_that_are_told_increase_and_do_not_outrun_the_clock() {
        const FIRST: u64 = 1_001;
        for_any(|random| {
            let mut lease = granted(FIRST);
            let (begun, claim) = (lease.granted, lease.claim.clone());
            let (mut now, mut last) = (begun, FIRST);
            let long = Duration::from_secs(60);
            while lease.may_be_handed_over(now, long, long, MOST) {
                now = now.plus(Duration::from_nanos(random.u64(0..2_000)));
                if now.since(begun) > Duration::from_millis(1) {
                    break;
                }
                lease = lease.handed_over(&claim, now, MOST);
                if random.u64(0..3) > 0 {
                    // As a guard does that is asked.
                    if !lease.is_token_used {
                        now = now.max(lease.token_from());
                    }
                    lease.is_token_used = true;
                    assert!(lease.token.number > last);
                    last = lease.token.number;
                    let micros = now.since(begun).as_nanos() * 99 / 100 / 1_000;
                    assert!(u128::from(last - FIRST) <= micros + 1, "{last}, {micros}");
                }
                assert!(lease.token.last_used() <= FIRST + 2 * MOST);
                assert!(lease.token.last_used() >= last && lease.token.last_used() % 2 == 1);
            }
        });
    }
}
