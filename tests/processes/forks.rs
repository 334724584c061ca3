//! Forks, in a process of their own: the other threads of this one may hold anything.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{Error, LockGuard, Locker};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::*;
use support::{Child, Stopwatch, eventually, forked, is_child};

/// Of what children hold, which is renewed several times.
pub(super) const LEASE: Duration = Duration::from_millis(400);

#[track_caller]
pub(super) fn assert_succeeds(pid: i32) {
    let status = fork::waitpid(pid).unwrap();
    assert!(fork::WIFEXITED(status), "{status}");
    assert_eq!(fork::WEXITSTATUS(status), 0);
}

/// Runs the test `entry` in a process of its own, for each engine.
pub(super) fn succeeds_in_a_process_of_its_own(entry: &str, url: &str) {
    succeeds_with(entry, url, LEASE);
}

/// The same with leases that last for so long.
pub(super) fn succeeds_with(entry: &str, url: &str, lease: Duration) {
    succeeds_in_turns(entry, url, lease, 150);
}

/// The same, of so many forks where many are tried.
pub(super) fn succeeds_in_turns(entry: &str, url: &str, lease: Duration, forks: u32) {
    let dir = temp_dir();
    let file = dir.path().join("counter");
    fs::write(&file, "0").unwrap();
    let ttl = lease.as_millis().to_string();
    let (file, forks) = (file.to_str().unwrap(), forks.to_string());
    let args = [(URL, url), (FILE, file), (TTL, &ttl), (COUNT, &forks)];
    let mut child = Child::spawn(entry, &args);
    // Many forks may take long; a child that hangs is found by itself.
    assert!(child.wait(10 * PATIENCE).success());
}

/// The guard in a forked child holds nothing, and isn't told of a loss: the lock is the parent's.
#[track_caller]
pub(super) fn assert_is_a_copy(guard: &LockGuard) {
    assert!(!guard.is_held());
    assert!(guard.lost().is_empty());
    assert_eq!(guard.remaining(), Duration::ZERO);
    assert!(matches!(guard.check(), Err(Error::Lost { .. })));
    assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
}

#[test]
fn child_forks_with_guards() {
    if !is_child("forks::child_forks_with_guards") {
        return;
    }
    let lock = locker();
    // In the parent these stay as they are, whatever the child does to its copies.
    let mut dropped = Some(lock.lock("dropped").unwrap());
    let mut unlocked = Some(lock.lock("unlocked").unwrap());
    let exited = lock.lock("exited").unwrap();
    let pid = forked(|| {
        assert_is_a_copy(dropped.as_ref().unwrap());
        assert_is_a_copy(unlocked.as_ref().unwrap());
        assert!(!exited.is_held());
        drop(dropped.take());
        let outcome = unlocked.take().unwrap().unlock();
        assert!(matches!(outcome, Err(Error::Lost { .. })));
        // The parent's, here as anywhere.
        for name in ["dropped", "unlocked", "exited"] {
            assert!(lock.try_lock(name).unwrap().is_none(), "{name}");
        }
    });
    assert_succeeds(pid);
    let guards = [dropped.unwrap(), unlocked.unwrap(), exited];
    for round in 0..2 {
        for guard in &guards {
            let verified = guard.verify();
            verified.unwrap_or_else(|e| panic!("round {round}: {e}"));
            assert!(guard.lost().is_empty(), "{guard:?}");
            assert!(lock.try_lock(guard.name()).unwrap().is_none());
        }
        // It goes on being renewed.
        thread::sleep(Duration::from_millis(900));
    }
    for guard in guards {
        guard.unlock().unwrap();
    }
}

/// That of a forked child, which is killed if it doesn't end.
pub(super) fn exit_status(pid: i32) -> Option<i32> {
    let pid = Pid::from_raw(pid).unwrap();
    let mut ended = None;
    let ends = eventually(PATIENCE, || {
        ended = waitpid(Some(pid), WaitOptions::NOHANG).unwrap();
        ended.is_some()
    });
    if !ends {
        kill_process(pid, Signal::KILL).unwrap();
    }
    ended.and_then(|(_, status)| status.exit_status())
}

#[test]
fn child_forks_while_its_threads_lock() {
    if !is_child("forks::child_forks_while_its_threads_lock") {
        return;
    }
    let (lock, stop) = (locker(), AtomicBool::new(false));
    let watch = Stopwatch::start();
    let held = lock.lock("held").unwrap();
    thread::scope(|scope| {
        for name in ["x", "x", "y"] {
            let (lock, stop) = (lock.clone(), &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    drop(lock.lock(name).unwrap());
                }
            });
        }
        let forks: u32 = arg(COUNT).parse().unwrap();
        for round in (0..forks).take_while(|_| held.is_held()) {
            let pid = forked(|| {
                assert!(held.lost().is_empty());
                // Its threads wait for each other, as those of its parent did when it was forked off.
                thread::scope(|scope| {
                    for name in ["childs", "childs", "childs too"] {
                        let lock = lock.clone();
                        scope.spawn(move || {
                            for _ in 0..5 {
                                // Of one fork: one that a busy machine has no time to release isn't waited for by the next.
                                let guard = lock.lock(&format!("{name} of {round}")).unwrap();
                                assert!(guard.is_held());
                            }
                        });
                    }
                });
            });
            let status = exit_status(pid);
            stop.store(status != Some(0), Ordering::Relaxed);
            assert_eq!(status, Some(0), "fork {round}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    if let Err(error) = held.check() {
        watch.assert_late(LEASE / 2, LEASE, error);
    }
}

#[test]
fn child_forks_and_both_lock() {
    if !is_child("forks::child_forks_and_both_lock") {
        return;
    }
    let lock = locker();
    // Several connections to inherit.
    let several: Vec<_> = ["x", "y", "z"]
        .map(|name| {
            let lock = lock.clone();
            thread::spawn(move || (0..20).for_each(|_| drop(lock.lock(name).unwrap())))
        })
        .into();
    several.into_iter().for_each(|one| one.join().unwrap());
    let guard = lock.lock("parents").unwrap();
    let cycles = |who: &str| {
        for cycle in 0..200 {
            let name = format!("{who}-{}", cycle % 7);
            let own = lock.lock(&name).unwrap();
            let shared = lock.lock("shared").unwrap();
            increment(arg(FILE));
            assert_eq!((own.name(), shared.name()), (name.as_str(), "shared"));
            own.verify().unwrap();
            shared.verify().unwrap();
            own.unlock().unwrap();
            shared.unlock().unwrap();
            assert!(lock.try_lock("parents").unwrap().is_none());
        }
    };
    let pid = forked(|| cycles("child"));
    cycles("parent");
    assert_succeeds(pid);
    guard.verify().unwrap();
    guard.unlock().unwrap();
    assert_eq!(fs::read_to_string(arg(FILE)).unwrap(), "400");
}

#[test]
fn child_forks_and_lets_the_child_hold() {
    if !is_child("forks::child_forks_and_lets_the_child_hold") {
        return;
    }
    let lock = locker();
    // Whatever is kept for the next guard is the parent's.
    lock.lock("warm-up").unwrap().unlock().unwrap();
    let pid = forked(|| {
        let guard = lock.lock("a").unwrap();
        let watch = Stopwatch::start();
        let end = Instant::now() + 3 * LEASE;
        while Instant::now() < end {
            if let Err(error) = guard.check() {
                return watch.assert_late(LEASE / 2, LEASE, error);
            }
            thread::sleep(LEASE / 20);
        }
        guard.verify().unwrap();
        guard.unlock().unwrap();
    });
    assert_succeeds(pid);
    assert!(!lock.try_lock("a").unwrap().unwrap().was_abandoned());
}

#[test]
fn child_forks_and_drops_all() {
    if !is_child("forks::child_forks_and_drops_all") {
        return;
    }
    let mut lock = Some(locker());
    let mut guard = Some(lock.as_ref().unwrap().lock("a").unwrap());
    let pid = forked(|| {
        drop(lock.take());
        drop(guard.take());
    });
    assert_succeeds(pid);
    let (lock, guard) = (lock.unwrap(), guard.unwrap());
    guard.verify().unwrap();
    assert!(
        Locker::open(&arg(URL))
            .unwrap()
            .try_lock("a")
            .unwrap()
            .is_none()
    );
    guard.unlock().unwrap();
    assert!(lock.try_lock("a").unwrap().is_some());
}

#[cfg(feature = "file")]
mod forks_on_file {
    use super::*;

    fn succeeds(entry: &str) {
        let dir = temp_dir();
        succeeds_in_a_process_of_its_own(entry, &file_url(&dir));
    }

    #[test]
    fn inherited_guard_is_neither_held_nor_renewed_nor_released() {
        succeeds("forks::child_forks_with_guards");
    }

    #[test]
    fn parent_and_forked_child_lock_through_one_locker() {
        succeeds("forks::child_forks_and_both_lock");
    }

    #[test]
    fn forked_child_keeps_a_lock_of_its_own() {
        succeeds("forks::child_forks_and_lets_the_child_hold");
    }

    #[test]
    fn child_forked_while_other_threads_lock_can_lock() {
        succeeds("forks::child_forks_while_its_threads_lock");
    }

    #[test]
    fn forked_child_that_drops_its_locker_releases_nothing() {
        succeeds("forks::child_forks_and_drops_all");
    }
}

#[cfg(feature = "redis")]
mod forks_on_redis {
    use super::*;
    use support::RedisServer;

    fn succeeds(entry: &str) {
        let server = RedisServer::start();
        succeeds_in_a_process_of_its_own(entry, &server.url());
        let keys = server.keys();
        assert!(keys.iter().all(|key| key.ends_with(":fence")), "{keys:?}");
    }

    #[test]
    fn inherited_guard_is_neither_held_nor_renewed_nor_released() {
        succeeds("forks::child_forks_with_guards");
    }

    #[test]
    fn parent_and_forked_child_lock_through_one_locker() {
        succeeds("forks::child_forks_and_both_lock");
    }

    #[test]
    fn forked_child_keeps_a_lock_of_its_own() {
        succeeds("forks::child_forks_and_lets_the_child_hold");
    }

    #[test]
    fn child_forked_while_other_threads_lock_can_lock() {
        succeeds("forks::child_forks_while_its_threads_lock");
    }

    #[test]
    fn forked_child_that_drops_its_locker_releases_nothing() {
        succeeds("forks::child_forks_and_drops_all");
    }
}

/// While a child has its parent's connections, a server takes a parent that has died for one that lives.
#[cfg(all(feature = "redis", target_os = "linux"))]
mod connections {
    use super::*;
    use support::{RedisServer, hear, sockets, wait_until};

    #[test]
    fn child_forks_with_idle_connections() {
        if !is_child("forks::connections::child_forks_with_idle_connections") {
            return;
        }
        let lock = locker();
        let both = ["x", "y"].map(|name| lock.lock(name).unwrap());
        let idle = sockets();
        let pid = forked(|| {
            lock.lock("childs").unwrap().unlock().unwrap();
            assert_eq!(sockets(), 1, "of its own; it inherited {idle}");
        });
        assert_succeeds(pid);
        // The parent's work as before.
        both.into_iter().for_each(|guard| guard.unlock().unwrap());
        assert_eq!(sockets(), idle);
    }

    #[test]
    fn child_forks_beside_a_waiter() {
        if !is_child("forks::connections::child_forks_beside_a_waiter") {
            return;
        }
        let lock = locker();
        let wait = || lock.lock("a").unwrap().unlock().unwrap();
        thread::scope(|scope| {
            let waiter = scope.spawn(wait);
            hear();
            let pid = forked(|| {
                let pid = forked(wait);
                wait();
                assert_succeeds(pid);
            });
            assert_succeeds(pid);
            waiter.join().unwrap();
        });
    }

    #[test]
    fn forked_children_are_notified_as_their_parent_is() {
        // A waiter that isn't notified would ask too late.
        const LONG: Duration = Duration::from_secs(300);
        let server = RedisServer::start();
        let lock = Locker::builder(&server.url()).ttl(LONG).build().unwrap();
        let guard = lock.lock("a").unwrap();
        let ttl = LONG.as_millis().to_string();
        let args = [(URL, &*server.url()), (TTL, &*ttl)];
        let mut child = Child::spawn("forks::connections::child_forks_beside_a_waiter", &args);
        let await_waiters = |number| {
            wait_until("the waiters", PATIENCE, || {
                server.query::<usize>(&["LLEN", "{crosslock:a}:queue"]) == number
            });
        };
        await_waiters(1);
        child.tell("fork");
        await_waiters(3);
        guard.unlock().unwrap();
        assert!(child.wait(PATIENCE).success());
        assert_eq!(server.keys(), ["{crosslock:a}:fence"]);
    }

    #[test]
    fn forked_child_closes_the_idle_connections_that_it_inherited() {
        let server = RedisServer::start();
        let entry = "forks::connections::child_forks_with_idle_connections";
        // A renewal takes a connection beside that of a call: of the child's lock, or of the parent's at the moment of the fork.
        succeeds_with(entry, &server.url(), Duration::from_secs(60));
    }
}
