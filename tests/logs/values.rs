//! Guards of values.

use std::time::Duration;

use crosslock::{Locker, MutexGuard};

use super::{Level, lines_with, listen};

#[test]
fn guard_that_was_lost_tells_of_a_change_if_there_was_one() {
    listen();
    let ttl = Duration::from_millis(100);
    let lock = Locker::builder("memory:").ttl(ttl).renew(false).build();
    let lock = lock.unwrap();
    for (name, is_changed) in [("logs-changed", true), ("logs-unchanged", false)] {
        let counter = lock.mutex(name, 7_u64).unwrap();
        let mut guard = counter.lock().unwrap();
        if is_changed {
            *guard += 1;
        }
        MutexGuard::lease(&guard).lost().recv().unwrap();
        drop(guard);
        let mut lines = lines_with(&format!("{name:?}"));
        lines.retain(|line| line.level == Level::Warn);
        let mut texts = lines.iter().map(|line| &line.text);
        let is_told = texts.any(|text| text.contains("may not have been stored"));
        assert!(!lines.is_empty() && is_told == is_changed, "{lines:?}");
    }
}
