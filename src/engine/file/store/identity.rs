//! Which file is open, whatever is at its path by now.
//!
//! It uses nothing.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The device and the number of a file, by which it is another one than those that are open elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity(u64, u64);

impl Identity {
    pub(super) fn of(found: &Metadata) -> Self {
        Identity(found.dev(), found.ino())
    }

    /// Whether those who open `path` now have this file: it may have been removed, or replaced by another.
    pub(super) fn is_at(self, path: &Path) -> io::Result<bool> {
        match identity_at(path) {
            Ok(found) => Ok(found == self),
            Err(e) if is_missing(&e) => Ok(false),
            Err(e) => Err(e),
        }
    }
}

/// Whether there is nothing at a path, or no directory that it could be in.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Since Linux 6.13 a file whose times were asked for has its next write note a time of its own, which takes longer than
/// the write: here nobody asks for them.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn identity_at(path: &Path) -> io::Result<Identity> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
    use rustix::io::Errno;
    match statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::INO) {
        // Containers may forbid the call.
        Err(Errno::NOSYS | Errno::PERM) => by_metadata(path),
        found => {
            let found = found?;
            let device = makedev(found.stx_dev_major, found.stx_dev_minor);
            Ok(Identity(device, found.stx_ino))
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn identity_at(path: &Path) -> io::Result<Identity> {
    by_metadata(path)
}

fn by_metadata(path: &Path) -> io::Result<Identity> {
    fs::symlink_metadata(path).map(|found| Identity::of(&found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_the_same_whichever_call_tells() {
        let dir = tempfile::tempdir().unwrap();
        let [path, other, link] = ["a", "b", "c"].map(|name| dir.path().join(name));
        fs::write(&path, "").unwrap();
        fs::write(&other, "").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let identity = by_metadata(&path).unwrap();
        assert_eq!(identity_at(&path).unwrap(), identity);
        assert!(identity.is_at(&path).unwrap());
        for elsewhere in [&other, &link, &path.join("below"), &dir.path().join("d")] {
            assert!(!identity.is_at(elsewhere).unwrap(), "{elsewhere:?}");
        }
    }
}
