//! How long to wait before asking again.

use std::time::Duration;

use crate::base::sys;

/// The growth of waits: doubling from `base` to `cap`, each shortened at random by up to `jitter`.
///
/// See "Exponential backoff and jitter" of the AWS Architecture Blog.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Backoff {
    pub(crate) base: Duration,
    pub(crate) cap: Duration,
    /// 0 to 1: the part of each wait that is random.
    pub(crate) jitter: f64,
}

impl Backoff {
    /// The waits of one caller.
    pub(crate) fn waits(self) -> Waits {
        Waits {
            next: self.base.min(self.cap),
            backoff: self,
        }
    }
}

/// The waits of one caller, without end.
#[derive(Debug)]
pub(crate) struct Waits {
    next: Duration,
    backoff: Backoff,
}

impl Iterator for Waits {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let wait = self.next;
        self.next = wait.saturating_mul(2).min(self.backoff.cap);
        Some(shortened(wait, self.backoff.jitter))
    }
}

/// `wait`, less a random part of at most `jitter` of it.
pub(crate) fn shortened(wait: Duration, jitter: f64) -> Duration {
    wait.saturating_sub(wait.mul_f64(jitter * sys::random_fraction()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(1);
    const CAP: Duration = Duration::from_millis(100);

    fn backoff(jitter: f64) -> Backoff {
        Backoff {
            base: BASE,
            cap: CAP,
            jitter,
        }
    }

    #[test]
    fn waits_double_up_to_the_cap() {
        let waits: Vec<_> = backoff(0.0)
            .waits()
            .take(10)
            .map(|w| w.as_millis())
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 100, 100, 100]);
    }
}
