//! A break that meets a lock which was just granted, and has no guard yet: the observer is told in between.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crosslock::{Event, Locker, LostReason, Observer};

use super::PATIENCE;

/// Breaks the lock that was granted, once.
#[derive(Default)]
struct Breaker {
    operator: OnceLock<Locker>,
    has_broken: AtomicBool,
}

impl Observer for Breaker {
    fn event(&self, event: &Event<'_>) {
        if let (Event::Acquired { name, .. }, Some(operator)) = (event, self.operator.get())
            && !self.has_broken.swap(true, Ordering::SeqCst)
        {
            assert_eq!(operator.break_lock(name).expect("a break").len(), 1);
        }
    }
}

fn break_before_the_guard_is_made_is_told(url: &str) {
    let breaker = Arc::new(Breaker::default());
    let operator = Locker::open(url).expect("a locker");
    assert!(breaker.operator.set(operator).is_ok());
    // Its renewals would tell it much later.
    let lock = Locker::builder(url).ttl(Duration::from_secs(3600));
    let lock = lock.observer(breaker).build().expect("a locker");
    let guard = lock.lock("broken between").expect("it is granted");
    let lost = guard.lost().recv_timeout(PATIENCE).expect("it is told");
    assert_eq!(lost.reason, LostReason::Broken);
    assert!(!guard.is_held());
}

#[test]
fn break_before_the_guard_is_made_is_told_in_memory() {
    break_before_the_guard_is_made_is_told("memory:broken-between");
}

#[cfg(feature = "file")]
#[test]
fn break_before_the_guard_is_made_is_told_of_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("file://{}", directory.path().display());
    break_before_the_guard_is_made_is_told(&url);
}
