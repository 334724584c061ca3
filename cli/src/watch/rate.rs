//! How often locks go from one holder to the next, as far as looks show it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Older looks don't count.
const WINDOW: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Rate {
    began: Instant,
    /// When one looked, and how many hand-offs that showed.
    looks: VecDeque<(Instant, usize)>,
}

impl Rate {
    pub(super) fn new(began: Instant) -> Self {
        Rate {
            began,
            looks: VecDeque::new(),
        }
    }

    pub(super) fn add(&mut self, at: Instant, hand_offs: usize) {
        self.looks.push_back((at, hand_offs));
        while self
            .looks
            .front()
            .is_some_and(|(look, _)| at.duration_since(*look) > WINDOW)
        {
            self.looks.pop_front();
        }
    }

    /// `0.4/s`, or `>= 4.0/s` where so many looks show one that others are missed.
    pub(super) fn text(&self, now: Instant) -> String {
        let seen: usize = self.looks.iter().map(|(_, count)| count).sum();
        let busy = self.looks.iter().filter(|(_, count)| *count > 0).count();
        let over = now.duration_since(self.began).min(WINDOW);
        let over = over.max(Duration::from_secs(1)).as_secs_f64();
        let is_least = busy * 4 > self.looks.len();
        let sign = if is_least { ">= " } else { "" };
        // Counts of a few seconds are far below 2^52.
        let rate = seen as f64 / over;
        format!("{sign}{rate:.1}/s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_exact_while_most_looks_show_none() {
        let began = Instant::now();
        let at = |tenths: u32| began + Duration::from_millis(100) * tenths;
        let mut rate = Rate::new(began);
        assert_eq!(rate.text(began), "0.0/s");
        (1..=100).for_each(|look| rate.add(at(look), usize::from(look % 10 == 0)));
        assert_eq!(rate.text(at(100)), "1.0/s");
        (101..=200).for_each(|look| rate.add(at(look), 1));
        assert!(
            rate.text(at(200)).starts_with(">= 10."),
            "{}",
            rate.text(at(200))
        );
        (201..=400).for_each(|look| rate.add(at(look), 0));
        assert_eq!(rate.text(at(400)), "0.0/s");
    }
}
