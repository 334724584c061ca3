//! An open file of a lock, and the same while this process has it locked.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// An open file, unlocked before it is closed.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) path: PathBuf,
    identity: Identity,
    /// Whether its waiter wakes when something happens to it.
    pub(super) is_watched: bool,
}

/// The device and the number of a file, by which it is another one than those that are open elsewhere.
type Identity = (u64, u64);

/// One that is locked. The lock belongs to the open file, so whoever drops this releases.
#[derive(Debug)]
pub(super) struct Locked(Opened);

impl Opened {
    pub(super) fn new(file: File, path: PathBuf, found: &Metadata) -> Self {
        Opened {
            file,
            path,
            identity: identity(found),
            is_watched: false,
        }
    }

    /// Gives itself back when another has it locked.
    pub(super) fn try_lock(self) -> io::Result<Result<Locked, Self>> {
        match self.file.try_lock() {
            Ok(()) => Ok(Ok(Locked(self))),
            Err(TryLockError::WouldBlock) => Ok(Err(self)),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }

    /// Whether those who open the path now have this file: it may have been removed, or replaced by another.
    pub(super) fn is_at_its_path(&self) -> io::Result<bool> {
        match fs::metadata(&self.path) {
            Ok(found) => Ok(identity(&found) == self.identity),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    pub(super) fn is_same(&self, other: &Opened) -> bool {
        self.identity == other.identity
    }
}

fn identity(found: &Metadata) -> Identity {
    (found.dev(), found.ino())
}

impl Locked {
    /// Others may lock it from then on. It stays open.
    pub(super) fn unlock(self) -> io::Result<Opened> {
        self.0.file.unlock()?;
        Ok(self.0)
    }
}

impl Deref for Locked {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.0
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // A child that is being spawned has a copy of the descriptor for some milliseconds: closing alone
        // would leave the file locked for as long.
        if let Err(e) = self.file.unlock() {
            log::warn!("can't unlock {}: {e}", self.path.display());
        }
    }
}
