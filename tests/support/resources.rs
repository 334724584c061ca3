//! What this process holds, read from `/proc/self`: threads, sockets, files and memory.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns how many threads have a name that begins with `prefix`.
///
/// The kernel keeps 15 bytes of a name, so a longer `prefix` is cut as well.
pub fn threads_named(prefix: &str) -> usize {
    let prefix = &prefix.as_bytes()[..prefix.len().min(15)];
    fs::read_dir("/proc/self/task")
        .expect("list the threads")
        .flatten()
        .filter_map(|task| fs::read(task.path().join("comm")).ok())
        .filter(|name| name.starts_with(prefix))
        .count()
}

pub fn sockets() -> usize {
    open_files()
        .filter(|target| target.to_string_lossy().starts_with("socket:"))
        .count()
}

/// Returns how many open files lie in `dir` or below it.
pub fn open_files_under(dir: impl AsRef<Path>) -> usize {
    // The links in /proc are resolved, so the directory has to be, too.
    let dir = fs::canonicalize(dir).expect("the directory exists");
    open_files()
        .filter(|target| target.starts_with(&dir))
        .count()
}

pub fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("read the status");
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .and_then(|number| number.parse::<u64>().ok())
        .expect("the status tells VmRSS in kB");
    kib * 1024
}

fn open_files() -> impl Iterator<Item = PathBuf> {
    fs::read_dir("/proc/self/fd")
        .expect("list the descriptors")
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
}
