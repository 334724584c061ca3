//! Whether it pays for a waiter to stay awake.

use std::sync::atomic::{AtomicU32, Ordering};

/// What became of the last waiters of this process that stayed awake for a lock. Where locks are held for long it doesn't pay; then
/// one waiter in some does it, to find out when that has changed.
#[derive(Debug, Default)]
pub(super) struct Staying {
    /// How many times one had to sleep in the end, or at once, since one was served in time.
    in_vain: AtomicU32,
}

/// So many in a row may have been unlucky.
const UNLUCKY: u32 = 2;

/// After that, one in so many stays awake.
const SELDOM: u32 = 16;

impl Staying {
    pub(super) fn pays(&self) -> bool {
        let in_vain = self.in_vain.load(Ordering::Relaxed);
        in_vain < UNLUCKY || in_vain.is_multiple_of(SELDOM)
    }

    /// One was served while it was awake.
    pub(super) fn served(&self) {
        // Most are: what needn't change isn't written.
        if self.in_vain.load(Ordering::Relaxed) > 0 {
            self.in_vain.store(0, Ordering::Relaxed);
        }
    }

    #[cfg(test)]
    pub(super) fn in_vain(&self) -> u32 {
        self.in_vain.load(Ordering::Relaxed)
    }

    /// One sleeps.
    pub(super) fn sleeps(&self) {
        self.in_vain.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_some_stays_awake_after_it_was_in_vain() {
        let staying = Staying::default();
        let tries = |count: u32| {
            let paid = (0..count).filter(|_| {
                let pays = staying.pays();
                staying.sleeps();
                pays
            });
            paid.count()
        };
        assert_eq!(tries(UNLUCKY), 2);
        assert_eq!(tries(10 * SELDOM), 10);
        staying.served();
        assert!(staying.pays());
    }
}
