//! Which host of a URL is asked next, where any of them would do.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::base::sys;

/// What a host may take at first, where there are others: a host that doesn't answer costs the others no more.
const FIRST_ROUND: Duration = Duration::from_millis(250);

/// The hosts of a URL, by their places in it. Clients begin at random, so that they spread.
#[derive(Debug)]
pub(in crate::engine) struct Rotation {
    hosts: usize,
    first: AtomicUsize,
}

impl Rotation {
    pub(in crate::engine) fn new(hosts: usize) -> Self {
        let hosts = hosts.max(1);
        Rotation {
            hosts,
            first: sys::random_below(hosts).into(),
        }
    }

    /// The host that is asked first: the last that answered, if it hasn't failed since.
    pub(in crate::engine) fn first(&self) -> usize {
        self.first.load(Ordering::Relaxed)
    }

    /// That host has answered.
    pub(in crate::engine) fn answered(&self, host: usize) {
        // Threads that find it so don't take the cache line from each other.
        if self.first() != host {
            self.first.store(host, Ordering::Relaxed);
        }
    }

    /// That host has failed: it is asked after all others, unless another thread has found a better one already.
    pub(in crate::engine) fn failed(&self, host: usize) {
        let (next, order) = ((host + 1) % self.hosts, Ordering::Relaxed);
        let _ = self.first.compare_exchange(host, next, order, order);
    }

    /// The turns of the hosts for one call. None takes longer than `most`.
    pub(in crate::engine) fn turns(&self, most: Duration) -> Turns {
        Turns {
            hosts: self.hosts,
            first: self.first(),
            taken: 0,
            most,
        }
    }
}

/// Round after round of all hosts, and how long each may take.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Turns {
    hosts: usize,
    first: usize,
    /// How many turns there were.
    taken: usize,
    most: Duration,
}

impl Turns {
    /// The next host, and what it may take of what remains. With each round hosts get twice the time, for a network that is slow.
    pub(in crate::engine) fn next(&mut self, remaining: Duration) -> (usize, Duration) {
        let (round, left) = (self.taken / self.hosts, self.left());
        let host = (self.first + self.taken % self.hosts) % self.hosts;
        self.taken += 1;
        let fair = (remaining / left).min(self.most);
        let longest = match self.hosts {
            1 => fair,
            _ => FIRST_ROUND
                .saturating_mul(2u32.saturating_pow(round.try_into().unwrap_or(u32::MAX))),
        };
        (host, fair.min(longest))
    }

    /// How many hosts are still to have a turn in this round; all of them, if it hasn't begun.
    pub(in crate::engine) fn left(&self) -> u32 {
        (self.hosts - self.taken % self.hosts)
            .try_into()
            .unwrap_or(u32::MAX)
    }

    /// Whether each host has had as many turns as the others.
    pub(in crate::engine) fn is_round_over(&self) -> bool {
        self.taken.is_multiple_of(self.hosts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::for_any;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn from_the_first(hosts: usize, most: u64) -> Turns {
        let rotation = Rotation::new(hosts);
        rotation.answered(0);
        rotation.turns(millis(most))
    }

    #[test]
    fn only_host_gets_all_the_time() {
        let mut turns = from_the_first(1, 2_000);
        assert_eq!(turns.next(millis(1_500)), (0, millis(1_500)));
        assert_eq!(turns.next(Duration::MAX), (0, millis(2_000)));
    }

    #[test]
    fn host_that_does_not_answer_leaves_time_for_the_others() {
        let mut turns = from_the_first(3, 2_000);
        assert_eq!(turns.next(millis(300)), (0, millis(100)));
        assert_eq!(turns.next(millis(200)), (1, millis(100)));
        assert!(!turns.is_round_over());
        assert_eq!(turns.next(millis(100)), (2, millis(100)));
        assert!(turns.is_round_over());
        assert_eq!(turns.next(millis(9_000)), (0, millis(500)));
    }

    #[test]
    fn clients_begin_at_different_hosts() {
        let firsts: std::collections::HashSet<_> =
            (0..1_000).map(|_| Rotation::new(3).first()).collect();
        assert_eq!(firsts.len(), 3);
    }

    #[test]
    fn host_that_failed_is_asked_last_and_one_that_answered_first() {
        let rotation = Rotation::new(3);
        rotation.answered(2);
        rotation.failed(2);
        rotation.failed(2);
        let mut turns = rotation.turns(Duration::MAX);
        assert_eq!([(); 3].map(|()| turns.next(Duration::MAX).0), [0, 1, 2]);
        rotation.answered(1);
        assert_eq!(rotation.turns(Duration::MAX).next(Duration::MAX).0, 1);
    }

    #[test]
    fn each_host_gets_its_share_within_what_remains() {
        for_any(|random| {
            let hosts = random.usize(1..9);
            let mut remaining = millis(random.u64(0..5_000));
            let mut turns = from_the_first(hosts, random.u64(0..5_000));
            for _ in 0..random.usize(0..40) {
                let share = turns.next(remaining).1;
                assert!(share <= remaining);
                remaining -= share;
                // The last of a round may take what is left, but for the bounds.
                assert!(turns.is_round_over() || hosts == 1 || remaining >= share);
            }
            // No overflow, however often.
            turns.taken = usize::MAX / 2;
            assert!(turns.next(Duration::MAX).1 <= Duration::MAX);
        });
    }
}
