//! What a process is told by the log and by an observer.

use std::sync::{Arc, Mutex};
use std::thread;

use crosslock::{Event, LockGuard, Observer};
use log::{LevelFilter, Log, Metadata, Record};

use super::forks::assert_succeeds;
use super::*;
use support::{forked, say};

struct Said;

impl Log for Said {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("crosslock")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            say(&format!("{}: {}", record.level(), record.args()));
        }
    }

    fn flush(&self) {}
}

pub(crate) fn open_and_log() {
    log::set_logger(&Said).unwrap();
    log::set_max_level(LevelFilter::Debug);
    let opened = Locker::from_env();
    say(&format!("opened: {}", opened.is_ok()));
}

/// What it is told, as `Debug` shows it.
#[derive(Default)]
struct Events(Mutex<Vec<String>>);

impl Observer for Events {
    fn event(&self, event: &Event<'_>) {
        self.0.lock().unwrap().push(format!("{event:?}"));
    }
}

impl Events {
    #[track_caller]
    fn assert_told(&self, name: &str, events: usize) {
        let (all, shown) = (self.0.lock().unwrap(), format!(" name: {name:?}"));
        let told = all.iter().filter(|one| one.contains(&shown)).count();
        assert_eq!(told, events, "{name}");
    }
}

const NAMES: [&str; 4] = ["dropped", "unlocked", "downgraded", "kept"];

pub(crate) fn fork_with_an_observer() {
    let events = Arc::new(Events::default());
    let ttl = Duration::from_millis(arg(TTL).parse().unwrap());
    let builder = Locker::builder(&arg(URL)).ttl(ttl).renew(false);
    let locker = builder.observer(events.clone()).build().unwrap();
    let guards = NAMES.map(|name| locker.write(name).unwrap());
    let mut inherited = Some(guards);
    let pid = forked(|| inherit(&locker, &events, inherited.take().unwrap(), ttl));
    assert_succeeds(pid);
    drop(inherited);
    NAMES.iter().for_each(|name| events.assert_told(name, 2));
}

fn inherit(locker: &Locker, events: &Events, guards: [LockGuard; 4], ttl: Duration) {
    thread::sleep(2 * ttl);
    let [dropped, unlocked, downgraded, kept] = guards;
    drop(dropped);
    assert!(unlocked.unlock().is_err());
    assert!(downgraded.downgrade().is_err());
    assert!(!kept.is_held());
    assert!(kept.verify().is_err());
    NAMES.iter().for_each(|name| events.assert_told(name, 1));
    drop(locker.lock("own").unwrap());
    events.assert_told("own", 2);
}
