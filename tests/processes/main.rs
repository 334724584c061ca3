//! What becomes of locks when processes compete, crash, stall, fork and exit.

#![cfg(any(feature = "file", feature = "redis"))]

mod directories;
mod exclusion;
mod exits;
mod forks;
#[cfg(feature = "redis")]
mod forks_of_sets;
mod forks_stopping;
mod holders;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(feature = "redis")]
mod passing;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
mod sessions;
mod threads;
mod users;
mod waiters;

use std::env;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crosslock::Locker;
use tempfile::TempDir;

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

const URL: &str = "TEST_URL";
const TTL: &str = "TEST_TTL_MS";
const FILE: &str = "TEST_FILE";
const COUNT: &str = "TEST_COUNT";

fn arg(name: &str) -> String {
    env::var(name).unwrap()
}

/// The locker that the parent's arguments describe.
fn locker() -> Locker {
    // Servers answer, however late on a busy machine.
    let builder = Locker::builder(&arg(URL)).io_timeout(PATIENCE);
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
