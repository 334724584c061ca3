//! Locks in a directory of this host, released by the kernel when a process dies.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use self::content::{Content, read_content, remove_kept, write_counter, write_kept};
use self::create::{open_file, read_file, replace_file};
use self::directory::{directory_of, make, make_private, private_directory};
use self::kept::KeptUntil;
use self::name::{file_name, value_name};
use super::url::invalid_url;
use super::{Acquired, Engine, Failed, IfTaken, Kept, Release, Released, Request};
use crate::base::claim::Claim;
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::base::fork::ForkLocal;
use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::base::token::{Token, host_micros};
use crate::base::value::Stored;

mod content;
mod create;
mod directory;
mod kept;
mod name;

/// One file a name, locked while its lease lasts, holding the counter of its fencing tokens.
#[derive(Debug)]
pub(crate) struct FileEngine {
    directory: PathBuf,
    /// For errors: `file:///dir`.
    place: String,
    /// A child has copies of its parent's files, and nothing to do with them.
    held: ForkLocal<Mutex<HashMap<Owner, HeldFiles>>>,
}

/// The files of a lease: one for each of its names.
#[derive(Debug)]
struct HeldFiles {
    files: Vec<Locked>,
    token: Token,
}

/// What comes of locking all files of a claim.
enum Locking {
    Free(Vec<Locked>, Vec<Content>),
    /// By another, or, for so much longer, by nobody.
    Taken(Option<Duration>),
}

/// A locked file. The lock belongs to the open file, so whoever drops this releases.
#[derive(Debug)]
struct Locked {
    file: File,
    path: PathBuf,
}

impl FileEngine {
    pub(crate) fn open(url: &str, rest: &str) -> Result<Self> {
        let private = rest.is_empty();
        let directory = if private {
            private_directory()
        } else {
            directory_of(url, rest)?
        };
        let place = format!("file://{}", directory.display());
        let checked = if private {
            make_private(&directory)
        } else {
            make(&directory)
        };
        match checked {
            Ok(()) => Ok(FileEngine {
                directory,
                place,
                held: ForkLocal::new(Mutex::default()),
            }),
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                Err(Error::denied(None, &place, e))
            }
            Err(e) if e.kind() == ErrorKind::ReadOnlyFilesystem => {
                Err(Error::denied(None, &place, e))
            }
            Err(e) => {
                let reason = format!("{}: {e}: name a directory", directory.display());
                Err(invalid_url(url, &reason))
            }
        }
    }

    fn error(&self, key: &Key, cause: io::Error) -> Error {
        self.error_at(key, file_name(key), cause)
    }

    fn value_error(&self, key: &Key, cause: io::Error) -> Error {
        self.error_at(key, value_name(key), cause)
    }

    fn error_at(&self, key: &Key, file: PathBuf, cause: io::Error) -> Error {
        let name = Some(key.name());
        match cause.kind() {
            ErrorKind::PermissionDenied => Error::denied(name, &self.place, cause),
            ErrorKind::IsADirectory => {
                let path = self.directory.join(file);
                let (name, key) = (key.name().to_owned(), path.display().to_string());
                Error::Conflict {
                    name,
                    key,
                    reason: "it is no regular file".to_owned(),
                }
            }
            _ => Error::engine(name, &self.place, cause),
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
    fn lock_free(&self, claim: &Claim, block: bool) -> Result<Locking> {
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
    fn take(&self, key: &Key, files: Vec<Locked>, contents: &[Content]) -> Result<HeldFiles> {
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
    fn value(&self, request: Request<'_>) -> Result<Option<Stored>> {
        if !request.claim.valued {
            return Ok(None);
        }
        self.load(request.key(), &Deadline::NEVER).map(Some)
    }

    fn replace(&self, key: &Key, value: &[u8]) -> Result<()> {
        let path = self.directory.join(value_name(key));
        replace_file(&self.directory, &path, value).map_err(|e| self.value_error(key, e))
    }
}

impl Engine for FileEngine {
    fn acquire(
        &self,
        request: Request<'_>,
        if_taken: IfTaken<'_>,
        _deadline: &Deadline,
    ) -> Result<Acquired, Failed> {
        let ours = self.held.get(request.owner.process());
        let known = ours.lock().get(request.owner).map(|held| held.token);
        if let Some(token) = known {
            let value = self.value(request)?;
            return Ok(Acquired::Granted { token, value });
        }
        let block = matches!(if_taken, IfTaken::Wait { endless: true, .. });
        let (files, contents) = match self.lock_free(request.claim, block)? {
            Locking::Free(files, contents) => (files, contents),
            Locking::Taken(remaining) => {
                return Ok(Acquired::Taken {
                    remaining,
                    counter: 0,
                    stood: false,
                    known: true,
                    length: 0,
                    holder: None,
                });
            }
        };
        // Read first: what fails leaves the lock as it was.
        let value = self.value(request)?;
        let held = self.take(request.key(), files, &contents)?;
        let token = held.token;
        ours.lock().insert(request.owner.clone(), held);
        Ok(Acquired::Granted { token, value })
    }

    /// There is nothing to renew: the kernel keeps the lock for as long as the process lives.
    fn renew(&self, request: Request<'_>, deadline: &Deadline) -> Result<bool> {
        self.is_owner(request, deadline)
    }

    fn release(
        &self,
        request: Request<'_>,
        release: Release<'_>,
        _deadline: &Deadline,
    ) -> Result<Released> {
        let ours = self.held.get(request.owner.process());
        let Some(held) = ours.lock().remove(request.owner) else {
            return Ok(Released::NotOwner);
        };
        let kept = held.are_kept();
        let stored = match release.value {
            Some(value) if kept => self.replace(request.key(), value),
            _ => Ok(()),
        };
        let counter = release.ending.counter();
        let counter = counter.unwrap_or_else(|| held.token.called_back());
        let until = (!release.keep.is_zero()).then(|| KeptUntil::since_now(release.keep));
        let mut written = Ok(());
        for Locked { file, .. } in &held.files {
            written = written.and(match &until {
                Some(until) => write_kept(file, counter, until),
                None => write_counter(file, counter),
            });
        }
        drop(held);
        stored?;
        written.map_err(|e| self.error(request.key(), e))?;
        Ok(if kept {
            Released::Done
        } else {
            Released::NotOwner
        })
    }

    fn store(&self, request: Request<'_>, value: &[u8], deadline: &Deadline) -> Result<Kept> {
        let kept = self.is_owner(request, deadline)?;
        if kept {
            self.replace(request.key(), value)?;
        }
        Ok(if kept { Kept::Yes } else { Kept::No })
    }

    fn load(&self, key: &Key, _deadline: &Deadline) -> Result<Stored> {
        let read = read_file(&self.directory.join(value_name(key)));
        let read = read.map_err(|e| self.value_error(key, e))?;
        Ok(read.map(Into::into))
    }

    fn remove(&self, key: &Key, _deadline: &Deadline) -> Result<()> {
        match fs::remove_file(self.directory.join(value_name(key))) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(self.value_error(key, e)),
            _ => Ok(()),
        }
    }

    fn value_key(&self, key: &Key) -> String {
        self.directory.join(value_name(key)).display().to_string()
    }

    fn is_owner(&self, request: Request<'_>, _deadline: &Deadline) -> Result<bool> {
        Ok(self
            .held
            .get(request.owner.process())
            .lock()
            .get(request.owner)
            .is_some_and(HeldFiles::are_kept))
    }

    fn has_ttl(&self) -> bool {
        false
    }

    /// The counter stays odd: the next holder sees that this one never released.
    fn forget(&self, owner: &Owner) {
        self.held.get(owner.process()).lock().remove(owner);
    }

    fn place(&self) -> &str {
        &self.place
    }
}

impl HeldFiles {
    fn are_kept(&self) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_removed_while_held_is_lost() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("file://{}", directory.path().display());
        let engine = FileEngine::open(&url, url.strip_prefix("file:").unwrap()).unwrap();
        let (claim, owner) = (Claim::exclusive("x", "y"), Owner::new());
        let request = Request {
            claim: &claim,
            owner: &owner,
            ttl: std::time::Duration::from_secs(1),
        };
        engine
            .acquire(request, IfTaken::Leave, &Deadline::NEVER)
            .unwrap();
        assert!(engine.is_owner(request, &Deadline::NEVER).unwrap());
        fs::remove_file(directory.path().join(file_name(&claim.key))).unwrap();
        assert!(!engine.is_owner(request, &Deadline::NEVER).unwrap());
        let released = engine
            .release(request, Release::UNKNOWN, &Deadline::NEVER)
            .unwrap();
        assert_eq!(released, Released::NotOwner);
    }
}
