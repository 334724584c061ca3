//! Calls that wait.

use std::thread;
use std::time::Duration;

use crosslock::{LockGuard, Locker};

use super::{Level, lines_with, listen};
use support::wait_until;

#[cfg(feature = "redis")]
use support::RedisServer;

const PATIENCE: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(50);

const OWN: &str = "this thread already holds it";

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

#[test]
fn thread_that_waits_for_itself_is_warned_once_a_call() {
    each_engine(|lock, engine| {
        let name = format!("twice-{engine}");
        let guard = lock.lock(&name).unwrap();
        for calls in 1..=2 {
            assert!(lock.try_lock_for(&name, SHORT).unwrap().is_none());
            assert_eq!(count(&name, Level::Warn, OWN), calls, "{engine}");
        }
        // These don't wait.
        assert!(lock.try_lock(&name).unwrap().is_none());
        assert_eq!(count(&name, Level::Warn, OWN), 2, "{engine}");
        drop(guard);
    });
}

#[test]
fn thread_that_waits_for_itself_by_another_locker_is_warned() {
    each_url(|url, engine| {
        let name = format!("by-another-{engine}");
        let lockers = [(); 2].map(|()| Locker::open(url).unwrap());
        let guard = lockers[0].lock(&name).unwrap();
        let elsewhere = lockers[1].namespace("elsewhere").unwrap();
        drop(elsewhere.lock(&name).unwrap());
        assert!(lockers[1].try_lock_for(&name, SHORT).unwrap().is_none());
        assert_eq!(count(&name, Level::Warn, OWN), 1, "{engine}");
        drop(guard);
    });
}

#[test]
fn thread_that_waits_for_one_of_its_own_among_several_is_warned() {
    each_engine(|lock, engine| {
        let names = [format!("one-{engine}"), format!("other-{engine}")];
        let shown = names.join(", ");
        let guard = lock.lock(&names[1]).unwrap();
        let both = [&*names[0], &*names[1]];
        assert!(lock.try_lock_all_for(&both, SHORT).unwrap().is_none());
        assert_eq!(count(&shown, Level::Warn, OWN), 1, "{engine}");
        drop(guard);
        let guard = lock.lock_all(&both).unwrap();
        assert!(lock.try_lock_for(&names[0], SHORT).unwrap().is_none());
        assert_eq!(count(&names[0], Level::Warn, OWN), 1, "{engine}");
        drop(guard);
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
fn reader_that_waits_to_write_is_warned() {
    each_engine(|lock, engine| {
        let name = format!("upgrade-{engine}");
        let Ok(reading) = lock.read(&name) else {
            return;
        };
        assert!(lock.try_write_for(&name, SHORT).unwrap().is_none());
        assert_eq!(count(&name, Level::Warn, OWN), 1, "{engine}");
        drop(reading);
        let writing = lock.write(&name).unwrap();
        assert!(lock.try_read_for(&name, SHORT).unwrap().is_none());
        assert_eq!(count(&name, Level::Warn, OWN), 2, "{engine}");
        drop(writing);
    });
}

#[test]
fn thread_that_waits_for_another_is_not_warned() {
    each_engine(|lock, engine| {
        let name = format!("others-{engine}");
        drop(lock.lock(&name).unwrap());
        let take = || lock.lock(&name).unwrap();
        let guard: LockGuard = thread::scope(|scope| scope.spawn(take).join().unwrap());
        assert!(lock.try_lock_for(&name, SHORT).unwrap().is_none());
        assert_eq!(count(&name, Level::Warn, OWN), 0, "{engine}");
        assert_eq!(count(&name, Level::Debug, "waiting for"), 1, "{engine}");
        drop(guard);
    });
}

#[test]
fn thread_that_waits_for_permits_is_not_warned() {
    each_engine(|lock, engine| {
        let name = format!("permits-{engine}");
        let Ok(semaphore) = lock.semaphore(&name, 1) else {
            return;
        };
        let permit = semaphore.acquire().unwrap();
        assert!(semaphore.try_acquire_for(SHORT).unwrap().is_none());
        assert_eq!(count(&name, Level::Warn, OWN), 0, "{engine}");
        assert_eq!(count(&name, Level::Debug, "waiting for"), 1, "{engine}");
        drop(permit);
    });
}

#[test]
fn lost_guard_is_not_held_against_its_thread() {
    listen();
    let short = Duration::from_millis(100);
    let careless = Locker::builder("memory:").ttl(short).renew(false).build();
    let careless = careless.unwrap();
    let guard = careless.lock("lost-own").unwrap();
    guard.lost().recv().unwrap();
    let take = || careless.lock("lost-own").unwrap();
    let other = thread::scope(|scope| scope.spawn(take).join().unwrap());
    drop(careless.lock("lost-own").unwrap());
    assert_eq!(count("lost-own", Level::Warn, OWN), 0);
    drop((guard, other));
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

#[cfg(feature = "redis")]
#[test]
fn call_that_goes_on_in_an_outage_tells_of_its_beginning_and_end() {
    listen();
    let server = RedisServer::start();
    let lock = Locker::builder(&server.url()).unavailable_for(PATIENCE);
    let lock = lock.build().unwrap();
    server.kill();
    thread::scope(|scope| {
        let call = scope.spawn(|| lock.lock("outage").unwrap());
        let begun = || count("outage", Level::Debug, "trying again") > 0;
        wait_until("the outage to be told", PATIENCE, begun);
        thread::sleep(SHORT);
        server.restart();
        drop(call.join().unwrap());
    });
    assert_eq!(count("outage", Level::Debug, "trying again"), 1);
    assert_eq!(count("outage", Level::Debug, "answers again"), 1);
    drop(lock.lock("outage").unwrap());
    assert_eq!(count("outage", Level::Debug, ""), 2);
}
