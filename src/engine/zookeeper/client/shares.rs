//! How the time for connecting is shared among hosts.

use std::time::Duration;

/// What a host may take at first, where there are others: a host that doesn't answer costs the others no more.
const FIRST_ROUND: Duration = Duration::from_millis(250);

/// Round after round of all hosts, and what of the time each may take.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    hosts: usize,
    /// How many have had their share.
    tried: usize,
    most: Duration,
}

impl Shares {
    /// No host gets more than `most`.
    pub(super) fn new(hosts: usize, most: Duration) -> Self {
        Shares {
            hosts: hosts.max(1),
            tried: 0,
            most,
        }
    }

    /// What the next host may take of what remains. With each round hosts get twice the time, for a network that is slow.
    pub(super) fn next(&mut self, remaining: Duration) -> Duration {
        let (round, place) = (self.tried / self.hosts, self.tried % self.hosts);
        self.tried += 1;
        let [round, left] =
            [round, self.hosts - place].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        let fair = (remaining / left).min(self.most);
        if self.hosts == 1 {
            return fair;
        }
        fair.min(FIRST_ROUND.saturating_mul(2u32.saturating_pow(round)))
    }

    /// Whether each host has had as many shares as the others.
    pub(super) fn is_round_over(&self) -> bool {
        self.tried.is_multiple_of(self.hosts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::for_any;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn only_host_gets_all_the_time() {
        let mut shares = Shares::new(1, millis(2_000));
        assert_eq!(shares.next(millis(1_500)), millis(1_500));
        assert_eq!(shares.next(Duration::MAX), millis(2_000));
    }

    #[test]
    fn host_that_does_not_answer_leaves_time_for_the_others() {
        let mut shares = Shares::new(3, millis(2_000));
        assert_eq!(shares.next(millis(300)), millis(100));
        assert_eq!(shares.next(millis(200)), millis(100));
        assert!(!shares.is_round_over());
        assert_eq!(shares.next(millis(100)), millis(100));
        assert!(shares.is_round_over());
        assert_eq!(shares.next(millis(9_000)), millis(500));
    }

    #[test]
    fn each_host_gets_its_share_within_what_remains() {
        for_any(|random| {
            let hosts = random.usize(1..9);
            let mut remaining = millis(random.u64(0..5_000));
            let mut shares = Shares::new(hosts, millis(random.u64(0..5_000)));
            for _ in 0..random.usize(0..40) {
                let share = shares.next(remaining);
                assert!(share <= remaining);
                remaining -= share;
                // The last of a round may take what is left, but for the bounds.
                assert!(shares.is_round_over() || hosts == 1 || remaining >= share);
            }
            // No overflow, however often.
            shares.tried = usize::MAX / 2;
            assert!(shares.next(Duration::MAX) <= Duration::MAX);
        });
    }
}
