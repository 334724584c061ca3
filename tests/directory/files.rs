//! Files of locks, as `docs/file.md` has them. The helper has these, too.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use self::written::file_that_says;

#[path = "written.rs"]
mod written;

/// Where the lock `name` is, for a name without odd characters.
pub(crate) fn file_of(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("crosslock+{name}.lock"))
}

/// How long a name has to be idle until its file may go.
pub(crate) const IDLE: u64 = 2 * 86_400 * 1_000_000;

/// As one that was used last at that time, in microseconds since 1970.
pub(crate) fn use_last_at(file: &Path, micros: u64, more: &str) {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let content = file_that_says(&boot[..8], &format!("counter {micros}\n{more}"));
    let opened = fs::OpenOptions::new().write(true).open(file).unwrap();
    opened.write_all_at(content.as_bytes(), 0).unwrap();
}
