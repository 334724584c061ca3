//! Calls that wait.

use std::thread;
use std::time::Duration;

use crosslock::{CancelToken, Error, LockGuard, Locker, Result};

use super::{Level, lines_with, listen};
use support::{eventually, wait_until};

#[cfg(feature = "redis")]
use support::RedisServer;

const PATIENCE: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(250);

const OWN: &str = "hasn't dropped the guard";
const CIRCLE: &str = "wait for each other";

/// How many lines about `name` have this level, and this in their text.
fn count(name: &str, level: Level, text: &str) -> usize {
    let lines = lines_with(&format!("{name:?}")).into_iter();
    lines
        .filter(|line| line.level == level && line.text.contains(text))
        .count()
}

fn each_engine(test: impl Fn(&Locker, &str)) {
    each_url(|url, engine| test(&Locker::open(url).unwrap(), engine));
}

fn each_url(test: impl Fn(&str, &str)) {
    listen();
    test("memory:", "memory");
    #[cfg(feature = "file")]
    {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("file://{}", dir.path().display());
        test(&url, "file");
    }
    #[cfg(feature = "redis")]
    {
        let server = RedisServer::start();
        test(&server.url(), "redis");
    }
}

type Take = fn(&Locker, &[&str; 2]) -> Result<Option<LockGuard>>;

const LOCK: Take = |lock, [name, _]| lock.try_lock_for(name, SHORT);
const BOTH: Take = |lock, names| lock.try_lock_all_for(names, SHORT);
const READ: Take = |lock, [name, _]| lock.try_read_for(name, SHORT);
const WRITE: Take = |lock, [name, _]| lock.try_write_for(name, SHORT);

/// Also one of several, by another locker, and as a reader that waits to write or the other way around.
#[test]
fn thread_that_waits_for_itself_is_warned_once_a_call() {
    let ways = [
        (LOCK, LOCK),
        (LOCK, BOTH),
        (BOTH, LOCK),
        (READ, WRITE),
        (WRITE, READ),
    ];
    each_url(|url, engine| {
        let lockers = [(); 2].map(|()| Locker::open(url).unwrap());
        for (way, (hold, wait)) in ways.into_iter().enumerate() {
            let by = if way == 0 { 2 } else { 1 };
            for (at, lock) in lockers.iter().enumerate().take(by) {
                let names = ["own", "other"].map(|name| format!("{name}-{engine}-{way}-{at}"));
                let names = names.each_ref().map(|name| &**name);
                let guard = hold(&lockers[0], &names).unwrap().expect("it is free");
                // Of another namespace's lock it has none.
                let elsewhere = lock.with_namespace("elsewhere").unwrap();
                drop(elsewhere.lock(names[0]).unwrap());
                let shown = || lines_with(names[0]).into_iter();
                let warned =
                    || shown().filter(|line| line.level == Level::Warn && line.text.contains(OWN));
                for calls in 1..=2 {
                    assert!(wait(lock, &names).unwrap().is_none());
                    assert_eq!(warned().count(), calls, "{names:?}");
                }
                // This one doesn't wait.
                assert!(lock.try_lock(names[0]).unwrap().is_none());
                assert_eq!(warned().count(), 2, "{names:?}");
                drop(guard);
            }
        }
    });
}

/// Also where the engine blocks, and answers nothing meanwhile.
#[test]
fn call_without_an_end_tells_before_it_blocks() {
    each_engine(|lock, engine| {
        let (name, both) = (format!("first-{engine}"), format!("second-{engine}"));
        let (give, given) = crossbeam_channel::bounded(1);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                give.send(lock.lock(&name).unwrap()).unwrap();
                drop(lock.lock_all(&[&*name, &*both]).unwrap());
            });
            let shown = format!("{name}, {both}");
            wait_until("the warning", PATIENCE, || {
                count(&shown, Level::Warn, OWN) == 1
            });
            drop(given.recv().unwrap());
            waiter.join().unwrap();
            assert_eq!(count(&shown, Level::Debug, "waiting for"), 1, "{engine}");
        });
    });
}

#[test]
fn thread_that_waits_for_another_is_not_warned() {
    each_engine(|lock, engine| {
        let (name, own) = (format!("others-{engine}"), format!("own-{engine}"));
        drop(lock.lock(&name).unwrap());
        let take = || lock.lock(&name).unwrap();
        let guard: LockGuard = thread::scope(|scope| scope.spawn(take).join().unwrap());
        assert!(lock.try_lock_for(&name, SHORT).unwrap().is_none());
        // Nor one that holds another lock.
        let held = lock.lock(&own).unwrap();
        assert!(lock.try_lock_for(&name, SHORT).unwrap().is_none());
        assert_eq!(count(&name, Level::Warn, ""), 0, "{engine}");
        assert_eq!(count(&name, Level::Debug, "waiting for"), 2, "{engine}");
        drop((guard, held));
    });
}

/// As a thread of a pool does, which takes a lock for a task that goes on elsewhere.
#[test]
fn thread_whose_guard_moved_is_not_warned() {
    each_engine(|lock, engine| {
        for is_used in [true, false] {
            let name = format!("moved-{engine}-{is_used}");
            let guard = lock.lock(&name).unwrap();
            let (told, waits) = crossbeam_channel::bounded(1);
            thread::scope(|scope| {
                scope.spawn(|| {
                    let guard = guard;
                    if is_used {
                        guard.check().unwrap();
                    }
                    told.send(()).unwrap();
                    let begun = || count(&name, Level::Debug, "waiting for") == 1;
                    wait_until("the wait", PATIENCE, begun);
                    thread::sleep(SHORT);
                    drop(guard);
                });
                waits.recv().unwrap();
                drop(lock.lock(&name).unwrap());
            });
            assert_eq!(count(&name, Level::Warn, OWN), 0, "{name}");
        }
    });
}

#[test]
fn threads_that_wait_for_each_other_are_warned() {
    each_engine(|lock, engine| {
        let names = ["a", "b", "c"].map(|name| format!("circle-{engine}-{name}"));
        let all_hold = std::sync::Barrier::new(names.len());
        let token = CancelToken::new();
        let lock = lock.with_cancel(&token);
        thread::scope(|scope| {
            for (at, name) in names.iter().enumerate() {
                let (next, lock, all_hold) = (&names[(at + 1) % names.len()], &lock, &all_hold);
                scope.spawn(move || {
                    let guard = lock.lock(name).unwrap();
                    all_hold.wait();
                    let waited = lock.lock(next);
                    assert!(matches!(waited, Err(Error::Cancelled { .. })));
                    drop(guard);
                });
            }
            let circle = format!("circle-{engine}-");
            let is_told = || {
                lines_with(&circle)
                    .iter()
                    .any(|line| line.text.contains(CIRCLE))
            };
            let told = eventually(PATIENCE, is_told);
            token.cancel();
            assert!(told, "{engine}");
        });
    });
}

#[test]
fn another_number_of_permits_is_warned_of_where_it_keeps_a_call_waiting() {
    each_url(|url, engine| {
        // Calls that wait look again after a third of it.
        let locker = Locker::builder(url).ttl(Duration::from_secs(1)).build();
        let (locker, name) = (locker.unwrap(), format!("number-{engine}"));
        let of = |number| locker.semaphore(&name, number).unwrap();
        let permits = of(2).acquire_many(2).unwrap();
        thread::scope(|scope| {
            let calls =
                [1, 2].map(|number| scope.spawn(move || drop(of(number).acquire().unwrap())));
            let is_told = || count(&name, Level::Warn, "this program gives it 1") == 1;
            wait_until("the other number to be told", PATIENCE, is_told);
            drop(permits);
            calls.into_iter().for_each(|call| call.join().unwrap());
        });
        assert_eq!(count(&name, Level::Warn, ""), 1, "{engine}");
    });
}

#[test]
fn call_that_waits_tells_who_has_the_lock() {
    listen();
    assert_tells_who_has("whose-memory", "memory:");
    #[cfg(feature = "redis")]
    assert_tells_who_has("whose-redis", &RedisServer::start().url());
}

fn assert_tells_who_has(name: &str, url: &str) {
    let [locker, other] = [(); 2].map(|()| Locker::open(url).unwrap());
    let guard = other.lock(name).unwrap();
    assert!(locker.try_lock_for(name, SHORT).unwrap().is_none());
    drop(guard);
    let pid = std::process::id();
    assert_eq!(count(name, Level::Debug, &format!("/{pid}/")), 1, "{name}");
    assert_eq!(count(name, Level::Debug, ""), 1, "{name}");
    // `<host>/<pid>/<thread>` has two, and the proof of ownership one more.
    let line = &lines_with(&format!("{name:?}"))[0].text;
    assert_eq!(line.matches('/').count(), 2, "{line}");
}
