//! Locks in a directory of this host, released by the kernel when a process dies.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use parking_lot::Mutex;

use self::counter::{read_counter, write_counter};
use self::create::open_file;
use self::directory::{directory_of, make, make_private, private_directory};
use self::name::file_name;
use super::{Acquired, Engine, Failed, IfTaken, Released, Request, invalid_url};
use crate::clock::Deadline;
use crate::error::{Error, Result};
use crate::fence::{Token, host_micros};
use crate::lease::Owner;
use crate::name::Key;
use crate::per_process::PerProcess;

mod counter;
mod create;
mod directory;
mod name;

/// One file a name, locked while its lease lasts, holding the counter of its fencing tokens.
#[derive(Debug)]
pub(crate) struct FileEngine {
    directory: PathBuf,
    /// For errors: `file:///dir`.
    place: String,
    /// A child has copies of its parent's files, and nothing to do with them.
    held: PerProcess<Mutex<HashMap<Owner, HeldFile>>>,
}

#[derive(Debug)]
struct HeldFile {
    locked: Locked,
    token: Token,
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
                held: PerProcess::new(Mutex::default()),
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
        let name = Some(key.name());
        match cause.kind() {
            ErrorKind::PermissionDenied => Error::denied(name, &self.place, cause),
            ErrorKind::IsADirectory => {
                let path = self.directory.join(file_name(key));
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

    /// Takes the next token of a file that was just locked.
    fn take(&self, key: &Key, locked: Locked) -> Result<HeldFile> {
        let counted = read_counter(&locked.file).map_err(|e| self.error(key, e))?;
        let Some(stored) = counted else {
            let reason = "it doesn't hold a counter".to_owned();
            let (name, key) = (key.name().to_owned(), locked.path.display().to_string());
            return Err(Error::Conflict { name, key, reason });
        };
        let token = Token::next(stored, host_micros());
        write_counter(&locked.file, token.number).map_err(|e| self.error(key, e))?;
        Ok(HeldFile { locked, token })
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
        if let Some(held) = ours.lock().get(request.owner) {
            return Ok(Acquired::Granted(held.token));
        }
        let key = request.key;
        let block = matches!(if_taken, IfTaken::Wait { endless: true, .. });
        let Some(locked) = self.lock(key, block).map_err(|e| self.error(key, e))? else {
            return Ok(Acquired::Taken {
                remaining: None,
                counter: 0,
                stood: false,
            });
        };
        let held = self.take(key, locked)?;
        let token = held.token;
        ours.lock().insert(request.owner.clone(), held);
        Ok(Acquired::Granted(token))
    }

    /// There is nothing to renew: the kernel keeps the lock for as long as the process lives.
    fn renew(&self, request: Request<'_>, deadline: &Deadline) -> Result<bool> {
        self.is_owner(request, deadline)
    }

    fn release(
        &self,
        request: Request<'_>,
        last_used: Option<u64>,
        _deadline: &Deadline,
    ) -> Result<Released> {
        let ours = self.held.get(request.owner.process());
        let Some(held) = ours.lock().remove(request.owner) else {
            return Ok(Released::NotOwner);
        };
        let counter = last_used.map_or_else(|| held.token.called_back(), Token::released);
        let written = write_counter(&held.locked.file, counter);
        let kept = held.locked.is_kept();
        drop(held);
        written.map_err(|e| self.error(request.key, e))?;
        Ok(if kept {
            Released::Done
        } else {
            Released::NotOwner
        })
    }

    fn is_owner(&self, request: Request<'_>, _deadline: &Deadline) -> Result<bool> {
        Ok(self
            .held
            .get(request.owner.process())
            .lock()
            .get(request.owner)
            .is_some_and(|held| held.locked.is_kept()))
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
    use crate::name::Namespace;

    fn key(namespace: &str, name: &str) -> Key {
        Key::new(&Namespace::new(namespace).unwrap(), name).unwrap()
    }

    #[test]
    fn file_removed_while_held_is_lost() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("file://{}", directory.path().display());
        let engine = FileEngine::open(&url, url.strip_prefix("file:").unwrap()).unwrap();
        let (key, owner) = (key("x", "y"), Owner::new());
        let request = Request {
            key: &key,
            owner: &owner,
            ttl: std::time::Duration::from_secs(1),
        };
        engine
            .acquire(request, IfTaken::Leave, &Deadline::NEVER)
            .unwrap();
        assert!(engine.is_owner(request, &Deadline::NEVER).unwrap());
        fs::remove_file(directory.path().join(file_name(&key))).unwrap();
        assert!(!engine.is_owner(request, &Deadline::NEVER).unwrap());
        let released = engine.release(request, None, &Deadline::NEVER).unwrap();
        assert_eq!(released, Released::NotOwner);
    }
}
