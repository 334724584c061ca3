//! The files of a directory: how they are locked, and what is read and written while they are.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::content::{Content, read_content, remove_kept, write_counter};
use super::create::{open_file, read_file, replace_file};
use super::kept::KeptUntil;
use super::name::{file_name, value_name};
use crate::base::claim::Claim;
use crate::base::error::{Error, Result};
use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::base::token::{Token, host_micros};
use crate::base::value::Stored;
use crate::engine::{Request, denied};

/// What to check when a user has no access.
pub(super) const RIGHTS: &str = "the directory's owner and rights";
pub(super) const DISK: &str = "the directory, its disk and its rights";

/// One file a name, locked while its lease lasts, holding the counter of its fencing tokens.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) directory: PathBuf,
    /// For errors: `file:///dir`.
    pub(super) place: String,
    pub(super) held: Mutex<HashMap<Owner, HeldFiles>>,
}

/// The files of a lease: one for each of its names.
#[derive(Debug)]
pub(super) struct HeldFiles {
    pub(super) files: Vec<Locked>,
    pub(super) token: Token,
}

/// What comes of locking all files of a claim.
pub(super) enum Locking {
    Free(Vec<Locked>, Vec<Content>),
    /// By another, or, for so much longer, by nobody.
    Taken(Option<Duration>),
}

/// A locked file. The lock belongs to the open file, so whoever drops this releases.
#[derive(Debug)]
pub(super) struct Locked {
    pub(super) file: File,
    path: PathBuf,
}

impl Files {
    pub(super) fn error(&self, key: &Key, cause: io::Error) -> Error {
        self.error_at(key, file_name(key), cause)
    }

    pub(super) fn value_error(&self, key: &Key, cause: io::Error) -> Error {
        self.error_at(key, value_name(key), cause)
    }

    fn error_at(&self, key: &Key, file: PathBuf, cause: io::Error) -> Error {
        let name = Some(key.name());
        match cause.kind() {
            ErrorKind::PermissionDenied => denied(name, &self.place, RIGHTS, cause),
            ErrorKind::IsADirectory => {
                let path = self.directory.join(file);
                let (name, key) = (key.name().to_owned(), path.display().to_string());
                Error::Conflict {
                    name,
                    key,
                    reason: "it is no regular file".to_owned(),
                }
            }
            _ => Error::engine(name, &self.place, DISK, cause),
        }
    }

    /// The locked file of `key`, or `None` when it is taken. To block is to wait in the kernel until it isn't.
    fn lock(&self, key: &Key, block: bool) -> io::Result<Option<Locked>> {
        let path = self.directory.join(file_name(key));
        loop {
            let file = open_file(&self.directory, &path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if block => match file.lock() {
                    Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                    locked => locked?,
                },
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(e)) => return Err(e),
            }
            // Somebody may have removed the file between open and lock: then its lock excludes nobody.
            let locked = Locked {
                file,
                path: path.clone(),
            };
            if locked.is_at_its_path()? {
                return Ok(Some(locked));
            }
        }
    }

    /// The locked files of all names, or `None` when one is taken. They are locked in the order of their names, so
    /// that nobody who waits for several waits for one that waits for it.
    fn lock_all(&self, claim: &Claim, block: bool) -> Result<Option<Vec<Locked>>> {
        let mut files = Vec::with_capacity(claim.keys().len());
        for key in claim.keys() {
            match self.lock(key, block).map_err(|e| self.error(key, e))? {
                Some(locked) => files.push(locked),
                None => return Ok(None),
            }
        }
        Ok(Some(files))
    }

    /// The locked files of all names and what they hold, or for how much longer one is taken, if that is known. To
    /// block is to wait until none is.
    pub(super) fn lock_free(&self, claim: &Claim, block: bool) -> Result<Locking> {
        // So often one looks whether a lock that is kept was freed by removing its file.
        const LOOK: Duration = Duration::from_secs(1);
        loop {
            let Some(files) = self.lock_all(claim, block)? else {
                return Ok(Locking::Taken(None));
            };
            let contents = self.read(&claim.key, &files)?;
            let kept = contents.iter().filter_map(|content| content.kept.as_ref());
            let remaining = kept.map(KeptUntil::remaining).max().unwrap_or_default();
            if remaining.is_zero() {
                return Ok(Locking::Free(files, contents));
            }
            drop(files);
            if !block {
                return Ok(Locking::Taken(Some(remaining)));
            }
            thread::sleep(remaining.min(LOOK));
        }
    }

    fn read(&self, key: &Key, files: &[Locked]) -> Result<Vec<Content>> {
        let read = |locked: &Locked| {
            let content = read_content(&locked.file).map_err(|e| self.error(key, e))?;
            content.ok_or_else(|| Error::Conflict {
                name: key.name().to_owned(),
                key: locked.path.display().to_string(),
                reason: "it doesn't hold a counter".to_owned(),
            })
        };
        files.iter().map(read).collect()
    }

    /// Takes the next token of files that were just locked.
    pub(super) fn take(
        &self,
        key: &Key,
        files: Vec<Locked>,
        contents: &[Content],
    ) -> Result<HeldFiles> {
        let tokens = contents
            .iter()
            .map(|content| Token::next(content.counter, host_micros()));
        let token = tokens.fold(Token::from_number(0), Token::and);
        for (locked, content) in files.iter().zip(contents) {
            let written = match content.kept {
                Some(_) => remove_kept(&locked.file),
                None => Ok(()),
            };
            let written = written.and_then(|()| write_counter(&locked.file, token.number));
            written.map_err(|e| self.error(key, e))?;
        }
        Ok(HeldFiles { files, token })
    }

    /// What comes with the lock, if it was asked for.
    pub(super) fn value(&self, request: Request<'_>) -> Result<Option<Stored>> {
        if !request.claim.valued {
            return Ok(None);
        }
        self.load(request.key()).map(Some)
    }

    pub(super) fn load(&self, key: &Key) -> Result<Stored> {
        let read = read_file(&self.directory.join(value_name(key)));
        let read = read.map_err(|e| self.value_error(key, e))?;
        Ok(read.map(Into::into))
    }

    pub(super) fn replace(&self, key: &Key, value: &[u8]) -> Result<()> {
        let path = self.directory.join(value_name(key));
        replace_file(&self.directory, &path, value).map_err(|e| self.value_error(key, e))
    }
}

impl HeldFiles {
    pub(super) fn are_kept(&self) -> bool {
        self.files.iter().all(Locked::is_kept)
    }
}

impl Locked {
    /// Whether the lock still excludes others: they would lock another file if this one was removed.
    fn is_kept(&self) -> bool {
        self.is_at_its_path().unwrap_or(false)
    }

    fn is_at_its_path(&self) -> io::Result<bool> {
        let ours = self.file.metadata()?;
        match fs::metadata(&self.path) {
            Ok(found) => Ok((found.dev(), found.ino()) == (ours.dev(), ours.ino())),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // A child that is being spawned has a copy of the descriptor for some milliseconds: closing alone
        // would leave the file locked for as long.
        if let Err(e) = self.file.unlock() {
            log::warn!("can't unlock {}: {e}", self.path.display());
        }
    }
}
