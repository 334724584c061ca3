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

#[derive(Default)]
struct Names(Mutex<Vec<String>>);

impl Observer for Names {
    fn event(&self, event: &Event<'_>) {
        let name = match event {
            Event::Waiting { name, .. }
            | Event::Acquired { name, .. }
            | Event::GaveUp { name, .. }
            | Event::Released { name, .. }
            | Event::Renewed { name, .. }
            | Event::RenewalFailed { name, .. }
            | Event::Lost { name, .. } => (*name).to_owned(),
            other => panic!("{other:?}"),
        };
        self.0.lock().unwrap().push(name);
    }
}

impl Names {
    #[track_caller]
    fn assert_told(&self, name: &str, events: usize) {
        let all = self.0.lock().unwrap();
        let told = all.iter().filter(|one| *one == name).count();
        assert_eq!(told, events, "{name}");
    }
}

pub(crate) fn fork_with_an_observer() {
    let names = Arc::new(Names::default());
    let ttl = Duration::from_millis(arg(TTL).parse().unwrap());
    let builder = Locker::builder(&arg(URL)).ttl(ttl).renew(false);
    let locker = builder.observer(names.clone()).build().unwrap();
    let guards =
        ["dropped", "unlocked", "downgraded", "kept"].map(|name| locker.write(name).unwrap());
    let mut inherited = Some(guards);
    let pid = forked(|| inherit(&locker, &names, inherited.take().unwrap(), ttl));
    assert_succeeds(pid);
    drop(inherited);
    for name in ["dropped", "unlocked", "downgraded", "kept"] {
        names.assert_told(name, 2);
    }
}

fn inherit(locker: &Locker, names: &Names, guards: [LockGuard; 4], ttl: Duration) {
    thread::sleep(2 * ttl);
    let [dropped, unlocked, downgraded, kept] = guards;
    drop(dropped);
    assert!(unlocked.unlock().is_err());
    assert!(downgraded.downgrade().is_err());
    assert!(!kept.is_held());
    assert!(kept.verify().is_err());
    for name in ["dropped", "unlocked", "downgraded", "kept"] {
        names.assert_told(name, 1);
    }
    drop(locker.lock("own").unwrap());
    names.assert_told("own", 2);
}
