//! Users without rights, the environment, threads that can't be started, and a child that has the process id of its
//! parent.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rustix::process::geteuid;

#[cfg(target_os = "linux")]
use super::places::{Place, in_each_place};
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
fn wrong_variable_is_an_invalid_url_that_names_it() {
    for url in ["", " ", "nonsense", "memory:/x", "carrier-pigeon://roof/"] {
        let said = run_as(None, "opens", &[("CROSSLOCK_URL", url)]);
        assert_says(&said, "InvalidUrl", "CROSSLOCK_URL");
    }
}

/// As another user, because the limit doesn't bind the super-user.
#[cfg(feature = "redis")]
#[test]
fn lock_that_nobody_could_renew_is_not_taken() {
    let server = support::RedisServer::start();
    let stranger = Stranger::new().map(|stranger| stranger.uid);
    let args = [(URL, server.url())];
    let args = args.each_ref().map(|(name, value)| (*name, value.as_str()));
    let said = run_as(stranger, "starts no threads", &args);
    assert_eq!(said.len(), 2);
    assert!(said[0].contains("\"refused\""), "{said:?}");
    // A lock that was taken, if only for a moment, would have left a counter.
    assert_eq!(server.keys(), ["{crosslock:granted}:fence"]);
}

#[cfg(target_os = "linux")]
in_each_place! {
    #[cfg(feature = "file")]
    file: fork_with_the_same_process_id_is_another;
    #[cfg(feature = "redis")]
    redis: fork_with_the_same_process_id_is_another;
}

/// In the first place of a PID namespace, and a fork of it in the first place of another.
#[cfg(target_os = "linux")]
fn fork_with_the_same_process_id_is_another(place: &Place) {
    if !geteuid().is_root() {
        println!("left out: only root can make a namespace");
        return;
    }
    let unshare = ["unshare", "--pid", "--fork", "--kill-child"];
    let mut run = support::helper_in_a_child_of(&unshare, "forks into a namespace");
    let run = run.env(URL, &place.url).output().unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{errors}");
}
