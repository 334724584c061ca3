//! A process that has no file descriptor for an inbox: its waiters ask.

use std::fs::File;
use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use log::{Level, LevelFilter, Log, Metadata, Record};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;
use support::say;

/// Counts the warnings of the library.
struct Warnings(AtomicUsize);

static WARNINGS: Warnings = Warnings(AtomicUsize::new(0));

impl Log for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("crosslock") && metadata.level() <= Level::Warn
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) && record.args().to_string().contains("grants") {
            self.0.fetch_add(1, Relaxed);
        }
    }

    fn flush(&self) {}
}

/// Waits twice without a descriptor for an inbox, and tells how often that was warned of.
pub(crate) fn wait_without() {
    log::set_logger(&WARNINGS).expect("there is no other");
    log::set_max_level(LevelFilter::Warn);
    let (locker, name) = (Locker::open(&arg(URL)).expect("open"), &arg(FILE));
    // From now on a connection is idle.
    assert!(locker.try_lock(name).expect("an answer").is_none());
    let before = getrlimit(Resource::Nofile);
    let few = Rlimit {
        current: Some(64),
        ..before
    };
    setrlimit(Resource::Nofile, few).expect("a lower limit");
    let all: Vec<_> = iter::from_fn(|| File::open("/dev/null").ok()).collect();
    for _ in 0..2 {
        let lock = locker.try_lock_for(name, Duration::from_millis(700));
        assert!(lock.expect("an answer").is_none());
    }
    drop(all);
    setrlimit(Resource::Nofile, before).expect("the limit that was");
    say(&format!("warned {}", WARNINGS.0.load(Relaxed)));
}
