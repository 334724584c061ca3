//! The files of a directory: how they are locked, and what is read and written while they are.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use super::aside::counter_after;
use super::content::{
    Content, Held, Record, is_marked_broken, read_content, write_content, write_counter,
};
use super::create::{draft_value, open_file, read_file};
use super::moment::Moment;
use super::name::{file_name, value_name};
use super::opened::{Locked, Opened};
use super::watch::Watches;
use crate::base::claim::Claim;
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::base::fork::{AfterFork, ForkLocal, get_or_make};
use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::base::sync::Mutex;
use crate::base::token::{Ending, Token, host_micros};
use crate::base::value::Stored;
use crate::engine::{Renewed, Request, Revocations, denied};

/// What to check when a user has no access.
pub(super) const RIGHTS: &str = "the directory's owner and rights";
pub(super) const DISK: &str = "the directory, its disk and its rights";

/// One file a name, locked while its lease lasts, holding the counter of its fencing tokens.
pub(super) struct Files {
    pub(super) directory: PathBuf,
    /// For errors: `file:///dir`.
    pub(super) place: String,
    pub(super) held: Mutex<HashMap<Owner, HeldFiles>>,
    pub(super) watches: Watches,
    pub(super) revocations: Mutex<Vec<Weak<dyn Revocations>>>,
}

/// The files of a lease: one for each of its names.
#[derive(Debug)]
pub(super) struct HeldFiles {
    pub(super) files: Vec<Locked>,
    pub(super) token: Token,
    /// `Done` until it is known that some of the files aren't its own any more.
    known: Renewed,
}

/// What comes of locking all files of a claim.
pub(super) enum Locking {
    Free(Vec<Locked>, Vec<Content>),
    /// By another, or, for so much longer, by nobody.
    Taken(Option<Duration>),
}

/// What the lockers of this process use.
#[derive(Default)]
struct InUse(Mutex<Vec<Weak<Files>>>);

impl AfterFork for InUse {
    fn after_fork(&self) -> Self {
        InUse::default()
    }
}

impl Files {
    /// Those of a directory: all lockers of a process use the same.
    pub(super) fn open(directory: PathBuf, place: String) -> Arc<Self> {
        static IN_USE: OnceLock<ForkLocal<InUse>> = OnceLock::new();
        let in_use = get_or_make(&IN_USE, || ForkLocal::new(InUse::default()));
        let mut all = in_use.get().0.lock();
        all.retain(|files| files.strong_count() > 0);
        let mut open = all.iter().filter_map(Weak::upgrade);
        if let Some(files) = open.find(|files| files.directory == directory) {
            return files;
        }
        let files = Arc::new(Files {
            directory,
            place,
            held: Mutex::default(),
            watches: Watches::default(),
            revocations: Mutex::default(),
        });
        all.push(Arc::downgrade(&files));
        files
    }

    pub(super) fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        let mut listeners = self.revocations.lock();
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(to);
    }

    pub(super) fn path(&self, key: &Key) -> PathBuf {
        self.directory.join(file_name(key))
    }

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

    /// The error for a file that holds something else.
    pub(super) fn no_counter(&self, key: &Key) -> Error {
        Error::Conflict {
            name: key.name().to_owned(),
            key: self.path(key).display().to_string(),
            reason: "it doesn't hold a counter".to_owned(),
        }
    }

    /// The locked file of `key`, or `None` when it is taken: then it is left open, and is used when it is asked for again.
    fn lock(&self, key: &Key, left: &mut Option<Opened>) -> io::Result<Option<Locked>> {
        let path = self.path(key);
        let mut open = left.take_if(|left| left.path == path);
        loop {
            let is_new = open.is_none();
            let opened = match open.take() {
                Some(opened) => opened,
                None => open_file(&self.directory, &path)?,
            };
            match opened.try_lock()? {
                Ok(locked) => return Ok(Some(locked)),
                Err(taken) if is_new || taken.is_at_its_path()? => {
                    *left = Some(taken);
                    return Ok(None);
                }
                // Another file has taken its place.
                Err(_) => {}
            }
        }
    }

    /// The locked files of all names, or `None` when one is taken. They are locked in the order of their names, so
    /// that of those who want several at the same time one gets them.
    fn lock_all(&self, claim: &Claim, left: &mut Option<Opened>) -> Result<Option<Vec<Locked>>> {
        let mut files = Vec::with_capacity(claim.keys().len());
        for key in claim.keys() {
            match self.lock(key, left).map_err(|e| self.error(key, e))? {
                Some(locked) => files.push(locked),
                None => return Ok(None),
            }
        }
        Ok(Some(files))
    }

    /// The locked files of all names and what they hold, or for how much longer one is taken, if that is known. That one
    /// is `left` open.
    pub(super) fn lock_free(&self, claim: &Claim, left: &mut Option<Opened>) -> Result<Locking> {
        loop {
            let Some(mut files) = self.lock_all(claim, left)? else {
                return Ok(Locking::Taken(None));
            };
            let keys = claim.keys().iter();
            let contents = keys.zip(&files).map(|(key, file)| self.read(key, file));
            let contents = contents.collect::<Result<Vec<_>>>()?;
            let kept = contents.iter().map(Content::kept).enumerate();
            let longest = kept.max_by_key(|(_, remaining)| *remaining);
            let Some((at, remaining)) = longest.filter(|(_, remaining)| !remaining.is_zero())
            else {
                return Ok(Locking::Free(files, contents));
            };
            let error = |e| self.error(&claim.key, e);
            let unlocked = files.swap_remove(at).unlock().map_err(error)?;
            if unlocked.is_at_its_path().map_err(error)? {
                *left = Some(unlocked);
                return Ok(Locking::Taken(Some(remaining)));
            }
        }
    }

    /// What a file holds that was just locked.
    fn read(&self, key: &Key, locked: &Locked) -> Result<Content> {
        let content = read_content(&locked.file).map_err(|e| self.error(key, e))?;
        let content = content.ok_or_else(|| self.no_counter(key))?;
        Ok(Content {
            counter: counter_after(&locked.path, &content),
            ..content
        })
    }

    /// Takes the next token of files that were just locked. `None` when another file has taken the place of one.
    ///
    /// The token is written before the look whether the file is still there. So whoever puts another file in its place
    /// finds every token in it that was ever granted.
    pub(super) fn take(
        &self,
        request: Request<'_>,
        files: Vec<Locked>,
        contents: &[Content],
    ) -> Result<Option<HeldFiles>> {
        let tokens = contents
            .iter()
            .map(|content| Token::next(content.counter, host_micros()));
        let token = tokens.fold(Token::from_number(0), Token::and);
        let held = HeldFiles {
            files,
            token,
            known: Renewed::Done,
        };
        let record = Record::Held(Held {
            since: Moment::now(),
            holder: request.owner.holder().to_owned(),
        });
        let error = |e| self.error(request.key(), e);
        let taken = held.write(token.number, &record);
        if taken.and_then(|()| held.are_kept()).map_err(error)? {
            return Ok(Some(held));
        }
        held.write(called_back(token), &Record::None)
            .map_err(error)?;
        Ok(None)
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

    /// Stores the value of a lock, if `is_owner` says so. The lock can't be broken between that and the storing, so a holder
    /// that has lost it overwrites nothing of the next one's.
    pub(super) fn replace(
        &self,
        key: &Key,
        value: &[u8],
        deadline: &Deadline,
        is_owner: impl Fn() -> io::Result<bool>,
    ) -> Result<bool> {
        let path = self.directory.join(value_name(key));
        let error = |e| self.value_error(key, e);
        let mut draft = {
            let _unbroken = self.keep_from_breaking(key, deadline)?;
            if !is_owner().map_err(error)? {
                return Ok(false);
            }
            draft_value(&self.directory, &path).map_err(error)?
        };
        let written = draft.file.write_all(value);
        let written = written.and_then(|()| draft.file.sync_data());
        let unbroken = self.keep_from_breaking(key, deadline);
        if unbroken.is_err() || !is_owner().map_err(error)? {
            // It may be the next holder's.
            draft.leave();
            return unbroken.map(|_| false);
        }
        written.and_then(|()| draft.publish()).map_err(error)?;
        Ok(true)
    }
}

impl HeldFiles {
    /// Whether they still exclude others: they would lock another file if this one was removed.
    pub(super) fn are_kept(&self) -> io::Result<bool> {
        for locked in &self.files {
            if !locked.is_at_its_path()? {
                return Ok(false);
            }
        }
        Ok(self.known == Renewed::Done)
    }

    /// Whether this file is one of them.
    pub(super) fn have(&self, file: &Opened) -> bool {
        let mut files = self.files.iter();
        files.any(|locked| locked.is_same(file))
    }

    /// Whether the lease is still the owner's.
    pub(super) fn standing(&self) -> io::Result<Renewed> {
        let mut standing = self.known;
        for locked in &self.files {
            if locked.is_at_its_path()? {
                continue;
            }
            if is_marked_broken(&locked.file)? {
                return Ok(Renewed::Broken);
            }
            standing = Renewed::NotOwner;
        }
        Ok(standing)
    }

    /// Ends a lease that is lost. Of several names whose files are still there, the holder may be at work on what they
    /// protect: they stay locked until it releases, unless the lease has ended by itself. Says whether any is left.
    pub(super) fn lose(&mut self) -> bool {
        let Ok(standing @ (Renewed::NotOwner | Renewed::Broken)) = self.standing() else {
            return false;
        };
        self.known = standing;
        self.files
            .retain(|locked| locked.is_at_its_path().unwrap_or(false));
        !self.files.is_empty()
    }

    /// The first failure doesn't keep it from the others.
    pub(super) fn write(&self, counter: u64, record: &Record) -> io::Result<()> {
        let written = self
            .files
            .iter()
            .map(|locked| write_content(&locked.file, counter, record));
        written.fold(Ok(()), io::Result::and)
    }

    /// Ends the lease: by an owner that doesn't know what it has, as if there had been none.
    pub(super) fn write_end(&self, ending: Ending, keep: Duration) -> io::Result<()> {
        let counter = ending.counter();
        let counter = counter.unwrap_or_else(|| called_back(self.token));
        if !keep.is_zero() {
            return self.write(counter, &Record::Kept(Moment::in_future(keep)));
        }
        if counter % 2 == 1 {
            // The record would still say who has an odd counter.
            return self.write(counter, &Record::None);
        }
        let written = self
            .files
            .iter()
            .map(|locked| write_counter(&locked.file, counter));
        written.fold(Ok(()), io::Result::and)
    }
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files")
            .field("place", &self.place)
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}

/// What the counter holds when an acquire is called back whose answer nobody has seen: if it found the lock
/// abandoned, the next one has to find that again.
fn called_back(token: Token) -> u64 {
    if token.abandoned {
        token.number
    } else {
        Token::released(token.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abandonment_that_nobody_was_told_of_stays() {
        let token = Token::next(Token::next(0, 1_000).number, 0);
        assert!(Token::next(called_back(token), 0).abandoned);
        let token = Token::next(0, 1_000);
        assert!(!Token::next(called_back(token), 0).abandoned);
    }
}
