//! Whether a directory has room for locks.

use std::io;

use rustix::fs::StatVfs;

use crate::base::diagnosis::Finding;
use crate::engine::file::dir::Dir;

pub(super) fn space(directory: &Dir) -> io::Result<Finding> {
    Ok(room(&rustix::fs::fstatvfs(directory)?))
}

/// A lock takes a file of one block.
fn room(found: &StatVfs) -> Finding {
    const CHECK: &str = "space";
    const LEAST: u64 = 1 << 20;
    const FEWEST: u64 = 100;
    let bytes = found.f_bavail.saturating_mul(found.f_frsize);
    // Some file systems have no number of files.
    let files = Some(found.f_favail).filter(|_| found.f_files > 0);
    let mut text = format!("{} MiB free", bytes >> 20);
    if let Some(files) = files {
        text += &format!(", and room for {files} files");
    }
    if bytes >= LEAST && files.is_none_or(|files| files >= FEWEST) {
        return Finding::fine(CHECK, text);
    }
    Finding::weak(
        CHECK,
        text,
        "a new lock needs a file: without room it fails",
        "make room, or use another disk",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_is_weak() {
        let mut found = rustix::fs::statvfs("/").unwrap();
        (found.f_frsize, found.f_bavail) = (4096, 1 << 20);
        (found.f_files, found.f_favail) = (1000, 500);
        assert_eq!(room(&found).verdict.to_string(), "fine");
        found.f_favail = 5;
        assert_eq!(room(&found).verdict.to_string(), "weak");
        found.f_files = 0;
        assert_eq!(room(&found).verdict.to_string(), "fine");
        found.f_bavail = 0;
        assert_eq!(room(&found).verdict.to_string(), "weak");
    }
}
