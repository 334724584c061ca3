//! Holders that crash, stall or exit.

use std::time::Duration;

use crosslock::{Error, LockGuard};

use super::*;
use support::{Child, hear, is_child, say};

#[cfg(feature = "redis")]
use std::time::Instant;
#[cfg(feature = "redis")]
use support::{RedisServer, Stopwatch};

const NAME: &str = "TEST_NAME";

/// Holds a lock and does what it is told.
#[test]
fn child_holds() {
    if !is_child("holders::child_holds") {
        return;
    }
    let lock = locker();
    let mut guard = Some(lock.lock(&arg(NAME)).unwrap());
    say(&format!(
        "holds {}",
        guard.as_ref().unwrap().fencing_token()
    ));
    while let Some(order) = hear() {
        match order.as_str() {
            "state" => say(&format!("state {}", state(guard.as_ref().unwrap()))),
            "unlock" => match guard.take().unwrap().unlock() {
                Ok(()) => say("unlock ok"),
                Err(Error::Lost { .. }) => say("unlock lost"),
                Err(error) => panic!("{error}"),
            },
            "keep" => {
                let guard = guard.as_ref().unwrap();
                guard.at_least_for(Duration::from_secs(300));
                say("keep");
            }
            "exit" => std::process::exit(0),
            order => panic!("{order:?}"),
        }
    }
}

/// Asked locally first: nothing that does I/O may have told the guard before. Its renewer may need a moment for that.
fn state(guard: &LockGuard) -> String {
    let held = guard.is_held();
    let timeout = if held { Duration::ZERO } else { PATIENCE };
    let told = guard.lost().recv_timeout(timeout).is_ok();
    let verified = guard.verify().is_ok();
    format!("held={held} told={told} verified={verified}")
}

pub(super) fn holder(url: &str, ttl: Duration) -> (Child, u64) {
    let millis = ttl.as_millis().to_string();
    let args = [(URL, url), (NAME, "a"), (TTL, millis.as_str())];
    let mut child = Child::spawn("holders::child_holds", &args);
    let token = child.wait_for("holds", PATIENCE).parse().unwrap();
    (child, token)
}

pub(super) fn asked(child: &mut Child, order: &str) -> String {
    child.tell(order);
    child.wait_for(order, PATIENCE)
}

/// Ends the holder by `end`; the next one gets in when the lease is over, neither earlier nor much later.
#[cfg(feature = "redis")]
fn next_gets_in_after_the_remaining_ttl(end: impl FnOnce(&mut Child)) {
    const LEASE: Duration = Duration::from_millis(900);
    let server = RedisServer::start();
    let lock = Locker::open(&server.url()).unwrap();
    let (mut child, token) = holder(&server.url(), LEASE);
    end(&mut child);
    let watch = Stopwatch::start();
    // Read before asking: the lock can't be free earlier than so much later.
    let asked = Instant::now();
    let remaining = u64::try_from(server.pttl("{crosslock:a}")).expect("the lock is still there");
    let remaining = Duration::from_millis(remaining);
    let guard = lock.lock("a").unwrap();
    let waited = asked.elapsed();
    // The server's time to live is rounded to milliseconds.
    let least = remaining.saturating_sub(Duration::from_millis(1));
    assert!(
        waited >= least,
        "in after {waited:?}, not after {remaining:?}"
    );
    watch.assert_took(waited, remaining);
    assert!(guard.was_abandoned());
    assert!(guard.fencing_token() > token);
    guard.unlock().unwrap();
    assert!(!lock.lock("a").unwrap().was_abandoned());
}

/// Ends the holder by `end`, which frees the lock.
#[cfg(feature = "file")]
fn next_gets_in_at_once(end: impl FnOnce(&mut Child)) {
    let dir = temp_dir();
    let lock = Locker::open(&file_url(&dir)).unwrap();
    let (mut child, token) = holder(&file_url(&dir), Duration::from_secs(3600));
    assert!(lock.try_lock("a").unwrap().is_none());
    end(&mut child);
    let guard = lock.try_lock("a").unwrap().expect("its holder is gone");
    assert!(guard.was_abandoned());
    assert!(guard.fencing_token() > token);
    guard.unlock().unwrap();
    assert!(!lock.lock("a").unwrap().was_abandoned());
}

pub(super) fn kill(child: &mut Child) {
    child.kill();
}

pub(super) fn exit(child: &mut Child) {
    child.tell("exit");
    assert!(child.wait(PATIENCE).success());
}

#[cfg(feature = "redis")]
#[test]
fn killed_holder_leaves_its_lock_to_the_ttl_on_redis() {
    next_gets_in_after_the_remaining_ttl(kill);
}

#[cfg(feature = "file")]
#[test]
fn killed_holder_frees_its_lock_at_once_on_file() {
    next_gets_in_at_once(kill);
}

#[cfg(feature = "redis")]
#[test]
fn process_that_exits_with_a_guard_leaves_its_lock_to_the_ttl_on_redis() {
    next_gets_in_after_the_remaining_ttl(exit);
}

#[cfg(feature = "file")]
#[test]
fn process_that_exits_with_a_guard_frees_its_lock_at_once_on_file() {
    next_gets_in_at_once(exit);
}

#[cfg(feature = "redis")]
#[test]
fn holder_that_was_stopped_past_its_ttl_knows_that_it_lost_on_redis() {
    let server = RedisServer::start();
    let lock = Locker::open(&server.url()).unwrap();
    let (mut child, token) = holder(&server.url(), Duration::from_millis(500));
    child.stop();
    let guard = lock.try_lock_for("a", PATIENCE).unwrap();
    let guard = guard.expect("the lease ran out");
    assert!(guard.was_abandoned());
    assert!(guard.fencing_token() > token);

    child.cont();
    assert_eq!(
        asked(&mut child, "state"),
        "held=false told=true verified=false"
    );
    assert_eq!(asked(&mut child, "unlock"), "lost");
    guard.verify().unwrap();
    assert!(lock.try_lock("a").unwrap().is_none());
    guard.unlock().unwrap();
}

#[cfg(feature = "file")]
#[test]
fn holder_that_was_stopped_keeps_its_lock_on_file() {
    const LEASE: Duration = Duration::from_millis(100);
    let dir = temp_dir();
    let lock = Locker::open(&file_url(&dir)).unwrap();
    let (mut child, _) = holder(&file_url(&dir), LEASE);
    child.stop();
    assert!(lock.try_lock_for("a", 4 * LEASE).unwrap().is_none());

    child.cont();
    assert_eq!(
        asked(&mut child, "state"),
        "held=true told=false verified=true"
    );
    assert!(lock.try_lock("a").unwrap().is_none());
    assert_eq!(asked(&mut child, "unlock"), "ok");
    assert!(!lock.try_lock("a").unwrap().unwrap().was_abandoned());
}

/// It is released, and stays taken when its process has gone.
fn lock_stays_taken(url: &str) {
    let lock = Locker::open(url).unwrap();
    let (mut child, token) = holder(url, Duration::from_millis(200));
    asked(&mut child, "keep");
    assert_eq!(asked(&mut child, "unlock"), "ok");
    exit(&mut child);
    // Longer than the lease would have lasted.
    let next = lock.try_lock_for("a", Duration::from_millis(500)).unwrap();
    assert!(next.is_none(), "{token}");
}

#[cfg(feature = "redis")]
#[test]
fn lock_that_is_released_early_stays_taken_after_its_process_on_redis() {
    let server = RedisServer::start();
    lock_stays_taken(&server.url());
    // Freed by deleting its key, as any lock.
    assert_eq!(server.query::<u64>(&["DEL", "{crosslock:a}"]), 1);
    let lock = Locker::open(&server.url()).unwrap();
    assert!(!lock.try_lock("a").unwrap().unwrap().was_abandoned());
}

#[cfg(feature = "file")]
#[test]
fn lock_that_is_released_early_stays_taken_after_its_process_on_file() {
    let dir = temp_dir();
    lock_stays_taken(&file_url(&dir));
}
