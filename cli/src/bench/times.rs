//! Samples of time.

use std::time::Duration;

#[derive(Debug, Default)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    pub(super) fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn sort(&mut self) {
        self.0.sort_unstable();
    }

    /// Of sorted times. Zero without any.
    pub(super) fn percentile(&self, percent: usize) -> Duration {
        let at = self.0.len().saturating_sub(1) * percent / 100;
        self.0.get(at).copied().unwrap_or_default()
    }
}

/// In microseconds.
pub(super) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Counts are far below 2^52.
pub(super) fn number(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_there_is() {
        let mut times = Times::default();
        assert_eq!(times.percentile(99), Duration::ZERO);
        (1..=101)
            .rev()
            .for_each(|ms| times.add(Duration::from_millis(ms)));
        times.sort();
        assert_eq!(times.percentile(50), Duration::from_millis(51));
        assert_eq!(times.percentile(99), Duration::from_millis(100));
    }
}
