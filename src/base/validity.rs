//! For how long a lease is valid: the one place where that is computed.

use std::time::Duration;

use super::clock::BootInstant;

/// The end of a lease that was granted or renewed by a command sent after `t0`.
///
/// The server's lease starts no earlier than `t0`; one percent and 2 ms cover the drift of the two clocks and
/// the server's rounding. Where servers take each other's place, their clocks may differ by `clock_skew`.
pub(crate) fn valid_until(t0: BootInstant, ttl: Duration, clock_skew: Duration) -> BootInstant {
    let margin = ttl / 100 + Duration::from_millis(2) + clock_skew;
    t0.plus(ttl.saturating_sub(margin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::{BootClock, Clock};
    use crate::base::random::for_any;

    #[test]
    fn validity_ends_before_the_servers_lease_and_after_most_of_it() {
        for_any(|random| {
            let ttl = Duration::from_millis(random.u64(100..=86_400_000));
            let t0 = BootClock.now();
            let valid_for = valid_until(t0, ttl, Duration::ZERO).since(t0);
            assert!(valid_for + Duration::from_millis(2) < ttl, "{ttl:?}");
            assert!(valid_for > ttl * 9 / 10, "{ttl:?}");
        });
    }

    #[test]
    fn short_ttl_never_wraps() {
        let t0 = BootClock.now();
        assert_eq!(
            valid_until(t0, Duration::from_millis(1), Duration::ZERO),
            t0
        );
    }
}
