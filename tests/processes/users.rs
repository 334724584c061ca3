//! Users without rights, and the environment.

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crosslock::{Error, Locker};
use rustix::process::geteuid;

use super::*;
use support::{is_child, say};

/// Runs a test of this binary as a user who may do little, with no environment variable of ours but `vars`; returns
/// what it said.
pub(crate) fn run_as(uid: Option<u32>, entry: &str, vars: &[(&str, &str)]) -> Vec<String> {
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
pub(crate) struct Stranger {
    pub(crate) uid: u32,
    /// Where `file:` keeps the locks of this user.
    pub(crate) directory: PathBuf,
}

impl Stranger {
    pub(crate) fn new() -> Option<Self> {
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
    pub(crate) fn opens(&self, vars: &[(&str, &str)]) -> Vec<String> {
        run_as(Some(self.uid), "users::child_opens", vars)
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
    if !is_child("users::child_opens") {
        return;
    }
    let opened = match env::var(URL) {
        Ok(url) => Locker::open(&url),
        Err(_) => Locker::from_env(),
    };
    let outcome = match opened {
        Ok(lock) => match lock.lock("a") {
            Ok(_) => "Ok".to_owned(),
            Err(Error::Denied { source, engine, .. }) => format!("Denied {engine} {source}"),
            Err(error) => format!("locking {error}"),
        },
        Err(Error::Denied { source, engine, .. }) => format!("Denied {engine} {source}"),
        Err(error @ Error::InvalidUrl { .. }) => format!("InvalidUrl {error}"),
        Err(error) => format!("another error {error}"),
    };
    say(&outcome);
}

#[track_caller]
pub(crate) fn assert_says(said: &[String], kind: &str, part: &str) {
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with(kind), "{said:?} is no {kind}");
    assert!(said[0].contains(part), "{said:?} doesn't name {part:?}");
}

#[test]
fn environment_with_the_variable_opens_what_it_names() {
    let said = run_as(None, "users::child_opens", &[("CROSSLOCK_URL", "memory:")]);
    assert_says(&said, "Ok", "");
}

#[test]
fn wrong_variable_is_an_invalid_url_that_names_it() {
    for url in ["", " ", "nonsense", "memory:/x", "carrier-pigeon://roof/"] {
        let said = run_as(None, "users::child_opens", &[("CROSSLOCK_URL", url)]);
        assert_says(&said, "InvalidUrl", "CROSSLOCK_URL");
    }
}
