//! When a locker looks next whether a namespace is to be swept, and the clock by which it judges what it finds.

use std::collections::HashMap;
use std::time::Duration;

use crate::base::clock::BootInstant;
use crate::base::sys::sync::Mutex;

/// The leader's clock, in milliseconds since 1970, as it was then or before.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeadersClock(pub(super) i64, pub(super) BootInstant);

impl LeadersClock {
    pub(super) fn at(self, now: BootInstant) -> i64 {
        let LeadersClock(then, at) = self;
        let passed = now.since(at).as_millis();
        then.saturating_add(passed.try_into().unwrap_or(i64::MAX))
    }
}

/// When a locker looks next whether a namespace is to be swept.
#[derive(Debug, Default)]
pub(super) struct Looks(Mutex<HashMap<Box<str>, BootInstant>>);

/// So often it looks.
const EVERY: Duration = Duration::from_secs(3600);

impl Looks {
    /// Whether it is time. Then it isn't for an hour.
    pub(super) fn is_time(&self, namespace: &str, now: BootInstant) -> bool {
        let mut all = self.0.lock();
        if all.get(namespace).is_some_and(|next| now < *next) {
            return false;
        }
        all.insert(namespace.into(), now.plus(EVERY));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_namespace_is_looked_at_once_an_hour() {
        let (looks, now) = (Looks::default(), BootInstant::START);
        assert!(looks.is_time("a", now) && looks.is_time("b", now));
        assert!(!looks.is_time("a", now.plus(EVERY / 2)));
        assert!(looks.is_time("a", now.plus(EVERY)));
        assert!(!looks.is_time("a", now.plus(EVERY)));
    }
}
