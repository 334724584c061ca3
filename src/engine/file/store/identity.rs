//! Which file is open, whatever is at its path by now.
//!
//! It uses nothing.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, statat};

/// The device and the number of a file, by which it is another one than those that are open elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::file) struct Identity(u64, u64);

impl Identity {
    pub(in crate::engine::file) fn of(found: &Metadata) -> Self {
        Identity(found.dev(), found.ino())
    }

    /// Whether those who open `path` now have this file: it may have been removed, or replaced by another.
    pub(super) fn is_at(self, path: &Path) -> io::Result<bool> {
        self.is_found(identity_at(CWD, path, AtFlags::SYMLINK_NOFOLLOW))
    }

    /// The same, where the last part of `path` may be a link.
    pub(in crate::engine::file) fn is_reached_by(self, path: &Path) -> io::Result<bool> {
        self.is_found(identity_at(CWD, path, AtFlags::empty()))
    }

    /// Whether a directory has this file under that name.
    pub(in crate::engine::file) fn is_in(self, dir: impl AsFd, name: &Path) -> io::Result<bool> {
        self.is_found(identity_at(dir, name, AtFlags::SYMLINK_NOFOLLOW))
    }

    fn is_found(self, found: io::Result<Identity>) -> io::Result<bool> {
        match found {
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
fn identity_at(dir: impl AsFd, path: &Path, flags: AtFlags) -> io::Result<Identity> {
    use rustix::fs::{StatxFlags, makedev, statx};
    use rustix::io::Errno;
    match statx(&dir, path, flags, StatxFlags::INO) {
        // Containers may forbid the call.
        Err(Errno::NOSYS | Errno::PERM) => by_stat(dir, path, flags),
        found => {
            let found = found?;
            let device = makedev(found.stx_dev_major, found.stx_dev_minor);
            Ok(Identity(device, found.stx_ino))
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn identity_at(dir: impl AsFd, path: &Path, flags: AtFlags) -> io::Result<Identity> {
    by_stat(dir, path, flags)
}

fn by_stat(dir: impl AsFd, path: &Path, flags: AtFlags) -> io::Result<Identity> {
    let found = statat(dir, path, flags)?;
    // Their types are others on each system.
    Ok(Identity(found.st_dev as u64, found.st_ino as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn file_is_the_same_whichever_call_tells() {
        let dir = tempfile::tempdir().unwrap();
        let [path, other, link] = ["a", "b", "c"].map(|name| dir.path().join(name));
        fs::write(&path, "").unwrap();
        fs::write(&other, "").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let identity = Identity::of(&fs::metadata(&path).unwrap());
        let itself = AtFlags::SYMLINK_NOFOLLOW;
        assert_eq!(by_stat(CWD, &path, itself).unwrap(), identity);
        assert_eq!(identity_at(CWD, &path, itself).unwrap(), identity);
        assert!(identity.is_at(&path).unwrap() && identity.is_reached_by(&link).unwrap());
        let opened = fs::File::open(dir.path()).unwrap();
        assert!(identity.is_in(&opened, "a".as_ref()).unwrap());
        assert!(!identity.is_in(&opened, "c".as_ref()).unwrap());
        for elsewhere in [&other, &link, &path.join("below"), &dir.path().join("d")] {
            assert!(!identity.is_at(elsewhere).unwrap(), "{elsewhere:?}");
        }
    }
}
