//! What becomes of locks when processes compete, crash, stall, fork and exit.

#![cfg(any(feature = "file", feature = "redis"))]
// A test that unwraps fails with the error, which is what it is for.
#![allow(clippy::unwrap_used)]

mod support;

use std::env;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{Error, LockGuard, Locker};
use fork::Fork;
use rustix::process::{Pid, Signal, geteuid, kill_process, set_parent_process_death_signal};
use support::{Child, hear, is_child, say};
use tempfile::TempDir;

#[cfg(feature = "redis")]
use support::RedisServer;

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a loaded machine may add to a time that is asserted from above.
#[cfg(feature = "redis")]
const SLACK: Duration = Duration::from_secs(1);

const URL: &str = "TEST_URL";
const NAME: &str = "TEST_NAME";
const TTL: &str = "TEST_TTL_MS";
const FILE: &str = "TEST_FILE";

fn arg(name: &str) -> String {
    env::var(name).unwrap()
}

/// The locker that the parent's arguments describe.
fn locker() -> Locker {
    let builder = Locker::builder(&arg(URL));
    match env::var(TTL) {
        Ok(millis) => builder.ttl(Duration::from_millis(millis.parse().unwrap())),
        Err(_) => builder,
    }
    .build()
    .unwrap()
}

fn temp_dir() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[cfg(feature = "file")]
fn file_url(dir: impl AsRef<Path>) -> String {
    format!("file://{}", dir.as_ref().display())
}

/// Adds one to the number in a file, in a way that loses it when another does the same meanwhile.
fn increment(file: impl AsRef<Path>) {
    let number: u64 = fs::read_to_string(&file).unwrap().parse().unwrap();
    fs::write(file, (number + 1).to_string()).unwrap();
}

// Exclusion

#[test]
fn child_increments() {
    if !is_child("child_increments") {
        return;
    }
    let lock = locker();
    say("ready");
    hear();
    for _ in 0..500 {
        let _guard = lock.lock("counter").unwrap();
        increment(arg(FILE));
    }
}

fn processes_lose_no_increment(url: &str) {
    let dir = temp_dir();
    let file = dir.path().join("counter");
    fs::write(&file, "0").unwrap();
    let args = [(URL, url), (FILE, file.to_str().unwrap())];
    let mut children: Vec<_> = (0..4)
        .map(|_| Child::spawn("child_increments", &args))
        .collect();
    for child in &mut children {
        child.wait_for("ready", PATIENCE);
    }
    for child in &mut children {
        child.tell("go");
    }
    for child in &mut children {
        assert!(child.wait(PATIENCE).success());
    }
    assert_eq!(fs::read_to_string(file).unwrap(), "2000");
}

#[cfg(feature = "file")]
#[test]
fn processes_lose_no_increment_on_file() {
    let dir = temp_dir();
    processes_lose_no_increment(&file_url(&dir));
}

#[cfg(feature = "redis")]
#[test]
fn processes_lose_no_increment_on_redis() {
    processes_lose_no_increment(&RedisServer::start().url());
}

// Holders that crash, stall or exit

/// Holds a lock and does what it is told.
#[test]
fn child_holds() {
    if !is_child("child_holds") {
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
            "exit" => std::process::exit(0),
            order => panic!("{order:?}"),
        }
    }
}

/// Asked locally first: nothing that does I/O may have told the guard before.
fn state(guard: &LockGuard) -> String {
    let held = guard.is_held();
    let told = guard.lost().try_recv().is_ok();
    let verified = guard.verify().is_ok();
    format!("held={held} told={told} verified={verified}")
}

fn holder(url: &str, ttl: Duration) -> (Child, u64) {
    let millis = ttl.as_millis().to_string();
    let args = [(URL, url), (NAME, "a"), (TTL, millis.as_str())];
    let mut child = Child::spawn("child_holds", &args);
    let token = child.wait_for("holds", PATIENCE).parse().unwrap();
    (child, token)
}

fn asked(child: &mut Child, order: &str) -> String {
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
    assert!(
        waited < remaining + SLACK,
        "in after {waited:?}, not after {remaining:?}"
    );
    assert!(guard.abandoned());
    assert!(guard.fencing_token() > token);
    guard.unlock().unwrap();
    assert!(!lock.lock("a").unwrap().abandoned());
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
    assert!(guard.abandoned());
    assert!(guard.fencing_token() > token);
    guard.unlock().unwrap();
    assert!(!lock.lock("a").unwrap().abandoned());
}

fn kill(child: &mut Child) {
    child.kill();
}

fn exit(child: &mut Child) {
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
    assert!(guard.abandoned());
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
    assert!(!lock.try_lock("a").unwrap().unwrap().abandoned());
}

// Waiters that crash

#[test]
fn child_waits() {
    if !is_child("child_waits") {
        return;
    }
    let lock = locker();
    assert!(lock.try_lock("a").unwrap().is_none());
    say("waits");
    let _guard = lock.lock("a").unwrap();
    say("holds");
}

/// Kills a process that waits for "a", which `guard` holds.
fn terminate_a_waiter(url: &str, guard: &LockGuard) {
    let mut child = Child::spawn("child_waits", &[(URL, url)]);
    child.wait_for("waits", PATIENCE);
    // That it has begun to wait can't be seen from outside; a pause makes it all but certain.
    thread::sleep(Duration::from_millis(50));
    let pid = Pid::from_raw(child.pid().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let status = child.wait(PATIENCE);
    assert_eq!(status.signal(), Some(Signal::TERM.as_raw()), "{status}");
    assert!(!child.has_said("holds"));
    guard.verify().unwrap();
}

#[cfg(feature = "redis")]
#[test]
fn terminated_waiter_leaves_nothing_on_redis() {
    let server = RedisServer::start();
    let lock = Locker::open(&server.url()).unwrap();
    let guard = lock.lock("a").unwrap();
    let clients = server.connected_clients();
    terminate_a_waiter(&server.url(), &guard);
    assert_eq!(server.keys(), ["{crosslock:a}", "{crosslock:a}:fence"]);
    support::wait_until("its connections to be closed", PATIENCE, || {
        server.connected_clients() <= clients
    });
    guard.unlock().unwrap();
    assert_eq!(server.keys(), ["{crosslock:a}:fence"]);
    let next = lock.try_lock("a").unwrap().expect("nobody waits");
    assert!(!next.abandoned());
}

#[cfg(feature = "file")]
#[test]
fn terminated_waiter_leaves_nothing_on_file() {
    let dir = temp_dir();
    let lock = Locker::open(&file_url(&dir)).unwrap();
    let guard = lock.lock("a").unwrap();
    let files = || fs::read_dir(&dir).unwrap().count();
    let before = files();
    terminate_a_waiter(&file_url(&dir), &guard);
    assert_eq!(files(), before);
    guard.unlock().unwrap();
    let next = lock.try_lock("a").unwrap().expect("nobody waits");
    assert!(!next.abandoned());
}

// Forks, in a process of their own: the other threads of this one may hold anything

/// Runs `body` in a forked child of this process; returns its process id.
fn forked(body: impl FnOnce()) -> i32 {
    match fork::fork().unwrap() {
        Fork::Parent(pid) => pid,
        Fork::Child => {
            set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
            let outcome = catch_unwind(AssertUnwindSafe(body));
            // Not back into the test's harness, which goes on in the parent.
            std::process::exit(i32::from(outcome.is_err()));
        }
    }
}

#[track_caller]
fn assert_succeeds(pid: i32) {
    let status = fork::waitpid(pid).unwrap();
    assert!(fork::WIFEXITED(status), "{status}");
    assert_eq!(fork::WEXITSTATUS(status), 0);
}

/// Runs the test `entry` in a process of its own, for each engine.
fn succeeds_in_a_process_of_its_own(entry: &str, url: &str) {
    let dir = temp_dir();
    let file = dir.path().join("counter");
    fs::write(&file, "0").unwrap();
    let args = [(URL, url), (FILE, file.to_str().unwrap()), (TTL, "400")];
    let mut child = Child::spawn(entry, &args);
    assert!(child.wait(PATIENCE).success());
}

#[test]
fn child_forks_with_guards() {
    if !is_child("child_forks_with_guards") {
        return;
    }
    let lock = locker();
    // In the parent these stay as they are, whatever the child does to its copies.
    let mut dropped = Some(lock.lock("dropped").unwrap());
    let mut unlocked = Some(lock.lock("unlocked").unwrap());
    let exited = lock.lock("exited").unwrap();
    let pid = forked(|| {
        for guard in [&dropped, &unlocked].map(|guard| guard.as_ref().unwrap()) {
            assert!(!guard.is_held());
            assert_eq!(guard.remaining(), Duration::ZERO);
            assert!(matches!(guard.check(), Err(Error::Lost { .. })));
            assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
        }
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

#[test]
fn child_forks_and_both_lock() {
    if !is_child("child_forks_and_both_lock") {
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
    const LEASE: Duration = Duration::from_millis(400);
    if !is_child("child_forks_and_lets_the_child_hold") {
        return;
    }
    let lock = locker();
    // Whatever is kept for the next guard is the parent's.
    lock.lock("warm-up").unwrap().unlock().unwrap();
    let pid = forked(|| {
        let guard = lock.lock("a").unwrap();
        let end = Instant::now() + 3 * LEASE;
        while Instant::now() < end {
            guard.check().unwrap();
            thread::sleep(LEASE / 20);
        }
        guard.verify().unwrap();
        guard.unlock().unwrap();
    });
    assert_succeeds(pid);
    assert!(!lock.try_lock("a").unwrap().unwrap().abandoned());
}

#[test]
fn child_forks_and_drops_all() {
    if !is_child("child_forks_and_drops_all") {
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
        succeeds("child_forks_with_guards");
    }

    #[test]
    fn parent_and_forked_child_lock_through_one_locker() {
        succeeds("child_forks_and_both_lock");
    }

    #[test]
    fn forked_child_keeps_a_lock_of_its_own() {
        succeeds("child_forks_and_lets_the_child_hold");
    }

    #[test]
    fn forked_child_that_drops_its_locker_releases_nothing() {
        succeeds("child_forks_and_drops_all");
    }
}

#[cfg(feature = "redis")]
mod forks_on_redis {
    use super::*;

    fn succeeds(entry: &str) {
        let server = RedisServer::start();
        succeeds_in_a_process_of_its_own(entry, &server.url());
        let keys = server.keys();
        assert!(keys.iter().all(|key| key.ends_with(":fence")), "{keys:?}");
    }

    #[test]
    fn inherited_guard_is_neither_held_nor_renewed_nor_released() {
        succeeds("child_forks_with_guards");
    }

    #[test]
    fn parent_and_forked_child_lock_through_one_locker() {
        succeeds("child_forks_and_both_lock");
    }

    #[test]
    fn forked_child_keeps_a_lock_of_its_own() {
        succeeds("child_forks_and_lets_the_child_hold");
    }

    #[test]
    fn forked_child_that_drops_its_locker_releases_nothing() {
        succeeds("child_forks_and_drops_all");
    }
}

// Users without rights, and the environment

/// Runs a test of this binary as a user who may do little, with no environment variable of ours but `vars`; returns
/// what it said.
fn run_as(uid: Option<u32>, entry: &str, vars: &[(&str, &str)]) -> Vec<String> {
    // Not by its path, which that user may be unable to walk.
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["--exact", entry, "--nocapture", "--test-threads=1"])
        .env_remove("CROSSLOCK_URL")
        .env("CROSSLOCK_CHILD", entry)
        .env("CROSSLOCK_CHILD_OF", std::process::id().to_string())
        .envs(vars.iter().copied())
        .current_dir("/");
    if let Some(uid) = uid {
        command.uid(uid).gid(uid);
    }
    let output = command.output().expect("run this binary again");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    let lines = said.lines().filter_map(|line| line.strip_prefix("@ "));
    lines.map(String::from).collect()
}

/// A user of this test alone, where this process may become one; nothing of it is left afterwards.
struct Stranger {
    uid: u32,
    /// Where `file:` keeps the locks of this user.
    directory: PathBuf,
}

impl Stranger {
    fn new() -> Option<Self> {
        static TAKEN: AtomicU32 = AtomicU32::new(0);
        if !geteuid().is_root() {
            return None;
        }
        // A range in which systems have no users, different for each test and for test runs at the same time.
        let first = std::process::id();
        (0..5000)
            .map(|_| 60_000 + (first + TAKEN.fetch_add(1, Relaxed)) % 5000)
            .map(|uid| (uid, PathBuf::from(format!("/tmp/crosslock-{uid}"))))
            .find(|(_, directory)| fs::symlink_metadata(directory).is_err())
            .map(|(uid, directory)| Stranger { uid, directory })
    }

    #[cfg(feature = "file")]
    fn opens(&self, vars: &[(&str, &str)]) -> Vec<String> {
        run_as(Some(self.uid), "child_opens", vars)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        // One of them, or none when the test has failed early.
        let _ = fs::remove_dir_all(&self.directory);
        let _ = fs::remove_file(&self.directory);
    }
}

/// Opens what it is told to, or what the environment says, and tells the outcome.
#[test]
fn child_opens() {
    if !is_child("child_opens") {
        return;
    }
    let opened = match env::var(URL) {
        Ok(url) => Locker::open(&url),
        Err(_) => Locker::from_env(),
    };
    let outcome = match opened {
        Ok(lock) => match lock.lock("a") {
            Ok(_) => "Ok".to_owned(),
            Err(error) => format!("locking {error}"),
        },
        Err(Error::Denied { source, engine, .. }) => format!("Denied {engine} {source}"),
        Err(error @ Error::InvalidUrl { .. }) => format!("InvalidUrl {error}"),
        Err(error) => format!("another error {error}"),
    };
    say(&outcome);
}

#[track_caller]
fn assert_says(said: &[String], kind: &str, part: &str) {
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with(kind), "{said:?} is no {kind}");
    assert!(said[0].contains(part), "{said:?} doesn't name {part:?}");
}

/// Tests with a [`Stranger`] need a user whose directory in /tmp is nobody's; without the right to become one there is
/// nothing that they may try.
#[cfg(feature = "file")]
mod directories {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn set_mode(path: impl AsRef<Path>, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: impl AsRef<Path>) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn directory_without_rights_is_denied_and_left_as_it_is() {
        let dir = temp_dir();
        // Nobody may write here, but the super-user, as whom tests are sometimes run.
        let closed = dir.path().join("closed");
        fs::create_dir(&closed).unwrap();
        for path in [dir.path(), &closed] {
            set_mode(path, 0o555);
        }
        let stranger = Stranger::new().map(|stranger| stranger.uid);
        for place in [closed.clone(), closed.join("new"), closed.join("new/er")] {
            let said = run_as(stranger, "child_opens", &[(URL, &file_url(&place))]);
            assert_says(&said, "Denied", place.to_str().unwrap());
        }
        assert_eq!(fs::read_dir(&closed).unwrap().count(), 0);
        assert_eq!(mode(&closed), 0o555);
        set_mode(dir.path(), 0o755);
    }

    #[test]
    fn file_where_the_directory_should_be_is_an_invalid_url_and_left_as_it_is() {
        let dir = temp_dir();
        let file = dir.path().join("file");
        fs::write(&file, "precious").unwrap();
        for place in [file.clone(), file.join("below")] {
            match Locker::open(&file_url(&place)) {
                Err(error @ Error::InvalidUrl { .. }) => {
                    let text = error.to_string();
                    assert!(text.contains(place.to_str().unwrap()), "{text}");
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
    }

    #[test]
    fn directory_of_a_user_is_private() {
        let Some(stranger) = Stranger::new() else {
            return;
        };
        for _ in 0..2 {
            assert_says(&stranger.opens(&[(URL, "file:")]), "Ok", "");
            assert_eq!(mode(&stranger.directory) & 0o777, 0o700);
        }
    }

    #[test]
    fn directory_of_a_user_that_others_may_enter_is_denied() {
        let Some(stranger) = Stranger::new() else {
            return;
        };
        let directory = stranger.directory.to_str().unwrap();
        stranger.opens(&[(URL, "file:")]);
        let before = fs::read_dir(directory).unwrap().count();
        for open in [0o755, 0o710, 0o702, 0o1777] {
            set_mode(directory, open);
            let said = stranger.opens(&[(URL, "file:")]);
            assert_says(&said, "Denied", directory);
            assert_eq!(mode(directory), open, "it was changed");
            assert_eq!(fs::read_dir(directory).unwrap().count(), before);
        }
    }

    #[test]
    fn directory_of_another_user_is_denied() {
        let Some(stranger) = Stranger::new() else {
            return;
        };
        let directory = stranger.directory.to_str().unwrap();
        // Ours, where the stranger's should be; even open to all it isn't the stranger's.
        for mode in [0o700, 0o777] {
            let _ = fs::create_dir(directory);
            set_mode(directory, mode);
            let said = stranger.opens(&[(URL, "file:")]);
            assert_says(&said, "Denied", directory);
            assert_eq!(fs::read_dir(directory).unwrap().count(), 0);
        }
    }

    #[test]
    fn link_in_place_of_a_users_directory_is_refused() {
        let Some(stranger) = Stranger::new() else {
            return;
        };
        let elsewhere = temp_dir();
        symlink(elsewhere.path(), &stranger.directory).unwrap();
        chown(&elsewhere, Some(stranger.uid), None).unwrap();
        let said = stranger.opens(&[(URL, "file:")]);
        assert_ne!(said, ["Ok"]);
        assert!(
            said[0].contains(stranger.directory.to_str().unwrap()),
            "{said:?}"
        );
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }

    #[test]
    fn environment_without_the_variable_means_the_users_directory() {
        let Some(stranger) = Stranger::new() else {
            return;
        };
        assert_says(&stranger.opens(&[]), "Ok", "");
        assert_eq!(fs::read_dir(&stranger.directory).unwrap().count(), 1);
    }

    #[test]
    fn environment_can_name_a_directory() {
        let dir = temp_dir();
        let url = file_url(&dir);
        let said = run_as(None, "child_opens", &[("CROSSLOCK_URL", &url)]);
        assert_says(&said, "Ok", "");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
    }
}

#[test]
fn environment_with_the_variable_opens_what_it_names() {
    let said = run_as(None, "child_opens", &[("CROSSLOCK_URL", "memory:")]);
    assert_says(&said, "Ok", "");
}

#[test]
fn wrong_variable_is_an_invalid_url_that_names_it() {
    for url in ["", " ", "nonsense", "memory:x", "carrier-pigeon://roof/"] {
        let said = run_as(None, "child_opens", &[("CROSSLOCK_URL", url)]);
        assert_says(&said, "InvalidUrl", "CROSSLOCK_URL");
    }
}

// Threads that can't be started

#[cfg(feature = "redis")]
#[test]
fn child_starts_no_threads() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    if !is_child("child_starts_no_threads") {
        return;
    }
    let lock = locker();
    let before = getrlimit(Resource::Nproc);
    let none = Rlimit {
        current: Some(0),
        ..before
    };
    setrlimit(Resource::Nproc, none).unwrap();
    assert!(thread::Builder::new().spawn(|| ()).is_err());
    for _ in 0..2 {
        match lock.lock("refused") {
            Err(error @ Error::Engine { .. }) => say(&error.to_string()),
            other => panic!("{other:?}"),
        }
        assert!(lock.try_lock("refused").is_err());
    }
    setrlimit(Resource::Nproc, before).unwrap();
    lock.lock("granted").unwrap().unlock().unwrap();
}

/// As another user, because the limit doesn't bind the super-user.
#[cfg(feature = "redis")]
#[test]
fn lock_that_nobody_could_renew_is_not_taken() {
    let server = RedisServer::start();
    let stranger = Stranger::new().map(|stranger| stranger.uid);
    let args = [(URL, server.url())];
    let args = args.each_ref().map(|(name, value)| (*name, value.as_str()));
    let said = run_as(stranger, "child_starts_no_threads", &args);
    assert_eq!(said.len(), 2);
    assert!(said[0].contains("\"refused\""), "{said:?}");
    // A lock that was taken, if only for a moment, would have left a counter.
    assert_eq!(server.keys(), ["{crosslock:granted}:fence"]);
}
