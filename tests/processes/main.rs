//! What becomes of locks when processes stall, fork and exit.

#![cfg(any(feature = "file", feature = "redis"))]

mod directories;
mod everywhere;
#[cfg(feature = "redis")]
mod forks;
mod holders;
mod places;
mod users;

#[cfg(feature = "file")]
use std::path::Path;
use std::time::Duration;

use crosslock::Locker;
use support::puppet::{TTL, URL};
use tempfile::TempDir;

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

const COUNT: &str = "TEST_COUNT";

fn temp_dir() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[cfg(feature = "file")]
fn file_url(dir: impl AsRef<Path>) -> String {
    format!("file://{}", dir.as_ref().display())
}
