//! Guards of values.

use std::time::Duration;

use crosslock::{Locker, MutexGuard};

use super::{Level, lines_with, listen};

/// A guard is dropped when its lease is over; what it logged then.
fn dropped_when_lost(name: &str, change: bool) -> Vec<String> {
    listen();
    let ttl = Duration::from_millis(100);
    let lock = Locker::builder("memory:").ttl(ttl).renew(false).build();
    let counter = lock.unwrap().mutex(name, 7_u64).unwrap();
    let mut guard = counter.lock().unwrap();
    if change {
        *guard += 1;
    }
    MutexGuard::lease(&guard).lost().recv().unwrap();
    drop(guard);
    let lines = lines_with(&format!("{name:?}"));
    let warnings = lines.into_iter().filter(|line| line.level == Level::Warn);
    warnings.map(|line| line.text).collect()
}

#[test]
fn lost_guard_that_changed_something_tells_that_it_may_be_lost() {
    let lines = dropped_when_lost("logs-changed", true);
    assert!(
        lines
            .iter()
            .any(|line| line.contains("change of a value may be lost")),
        "{lines:?}"
    );
}

#[test]
fn lost_guard_that_changed_nothing_tells_of_no_change() {
    let lines = dropped_when_lost("logs-unchanged", false);
    assert!(!lines.is_empty());
    assert!(
        !lines
            .iter()
            .any(|line| line.contains("change of a value may be lost")),
        "{lines:?}"
    );
}
