//! Forks: the other threads of the process may hold anything.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crosslock::CancelToken;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::*;
use support::{Stopwatch, eventually, forked, hear};

#[track_caller]
pub(crate) fn assert_succeeds(pid: i32) {
    let status = fork::waitpid(pid).unwrap();
    assert!(fork::WIFEXITED(status), "{status}");
    assert_eq!(fork::WEXITSTATUS(status), 0);
}

/// That of a forked child, which is killed if it doesn't end.
fn exit_status(pid: i32) -> Option<i32> {
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

pub(crate) fn while_threads_lock() {
    let (lock, stop) = (locker(), AtomicBool::new(false));
    let ttl = Duration::from_millis(arg(TTL).parse().unwrap());
    let watch = Stopwatch::start();
    let held = lock.lock("held").unwrap();
    let token = CancelToken::new();
    let cancelled = lock.with_cancel(&token);
    thread::scope(|scope| {
        scope.spawn(|| cancel_in_a_loop(&cancelled, &stop));
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
                lock_in_threads(&lock, round);
                token.cancel();
                assert!(cancelled.lock("other").is_err());
            });
            let status = exit_status(pid);
            stop.store(status != Some(0), Ordering::Relaxed);
            assert_eq!(status, Some(0), "fork {round}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    if let Err(error) = held.check() {
        watch.assert_late(ttl / 2, ttl, error);
    }
}

fn cancel_in_a_loop(cancelled: &Locker, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let _ = cancelled.try_lock_for("held", Duration::from_micros(50));
        let token = CancelToken::new();
        let both = cancelled.with_cancel(&token);
        token.cancel();
        drop(both.lock("held"));
        thread::sleep(Duration::from_millis(1));
    }
}

/// The threads of a child wait for each other, as those of its parent did when it was forked off.
fn lock_in_threads(lock: &Locker, round: u32) {
    thread::scope(|scope| {
        for name in ["childs", "childs", "childs too"] {
            scope.spawn(move || {
                for _ in 0..5 {
                    // Of one fork: one that a busy machine has no time to release isn't waited for by the next.
                    let guard = lock.lock(&format!("{name} of {round}")).unwrap();
                    assert!(guard.is_held());
                }
            });
        }
    });
}

/// While a child has its parent's connections, a server takes a parent that has died for one that lives.
#[cfg(target_os = "linux")]
pub(crate) fn with_idle_connections() {
    let lock = locker();
    let both = ["x", "y"].map(|name| lock.lock(name).unwrap());
    let idle = support::sockets();
    let pid = forked(|| {
        lock.lock("childs").unwrap().unlock().unwrap();
        assert_eq!(support::sockets(), 1, "of its own; it inherited {idle}");
    });
    assert_succeeds(pid);
    // The parent's work as before.
    both.into_iter().for_each(|guard| guard.unlock().unwrap());
    assert_eq!(support::sockets(), idle);
}

pub(crate) fn beside_a_waiter() {
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
