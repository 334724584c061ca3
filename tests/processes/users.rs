//! Users without rights, and the environment.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rustix::process::geteuid;

use super::*;
use support::Child;

/// Runs the helper as a user who may do little, with no environment variable of ours but `vars`; returns what it said.
pub(crate) fn run_as(uid: Option<u32>, role: &str, vars: &[(&str, &str)]) -> Vec<String> {
    let mut child = Child::spawn_as(uid, role, vars);
    let said = child.rest(PATIENCE);
    assert!(child.wait(PATIENCE).success(), "{said:?}");
    said
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
        run_as(Some(self.uid), "opens", vars)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        // One of them, or none when the test has failed early.
        let _ = fs::remove_dir_all(&self.directory);
        let _ = fs::remove_file(&self.directory);
    }
}

#[track_caller]
pub(crate) fn assert_says(said: &[String], kind: &str, part: &str) {
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with(kind), "{said:?} is no {kind}");
    assert!(said[0].contains(part), "{said:?} doesn't name {part:?}");
}

#[test]
fn environment_with_the_variable_opens_what_it_names() {
    let said = run_as(None, "opens", &[("CROSSLOCK_URL", "memory:")]);
    assert_says(&said, "Ok", "");
}

#[test]
fn wrong_variable_is_an_invalid_url_that_names_it() {
    for url in ["", " ", "nonsense", "memory:/x", "carrier-pigeon://roof/"] {
        let said = run_as(None, "opens", &[("CROSSLOCK_URL", url)]);
        assert_says(&said, "InvalidUrl", "CROSSLOCK_URL");
    }
}
