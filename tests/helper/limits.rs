//! Processes that have no file descriptor for an inbox, or no thread for a renewer.

use std::fs::File;
use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use crosslock::Error;
use log::{Level, LevelFilter, Log, Metadata, Record};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;
use support::say;

fn limited(resource: Resource, most: u64, act: impl FnOnce()) {
    let before = getrlimit(resource);
    let few = Rlimit {
        current: Some(most),
        ..before
    };
    setrlimit(resource, few).expect("a lower limit");
    act();
    setrlimit(resource, before).expect("the limit that was");
}

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

pub(crate) fn wait_without_descriptors() {
    log::set_logger(&WARNINGS).expect("there is no other");
    log::set_max_level(LevelFilter::Warn);
    let (locker, name) = (Locker::open(&arg(URL)).expect("open"), &arg(FILE));
    // From now on a connection is idle.
    assert!(locker.try_lock(name).expect("an answer").is_none());
    limited(Resource::Nofile, 64, || {
        let _all: Vec<_> = iter::from_fn(|| File::open("/dev/null").ok()).collect();
        for _ in 0..2 {
            let lock = locker.try_lock_for(name, Duration::from_millis(700));
            assert!(lock.expect("an answer").is_none());
        }
    });
    say(&format!("warned {}", WARNINGS.0.load(Relaxed)));
}

pub(crate) fn start_no_threads() {
    let lock = locker();
    limited(Resource::Nproc, 0, || {
        assert!(thread::Builder::new().spawn(|| ()).is_err());
        for _ in 0..2 {
            match lock.lock("refused") {
                Err(error @ Error::Engine { .. }) => say(&error.to_string()),
                other => panic!("{other:?}"),
            }
            assert!(lock.try_lock("refused").is_err());
        }
    });
    lock.lock("granted").unwrap().unlock().unwrap();
}
