//! The open files of a directory, and the presences in it, which all lockers of a process share.

use std::io::{self, ErrorKind};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use std::{fmt, fs::File, path::PathBuf};

use super::create::{check_size, read_file, replace_file, unless_missing};
use super::dir::{Root, is_exhausted, last_of};
#[cfg(feature = "delay")]
use super::journal::QueueFile;
use super::presence::Presence;
use super::section::{NameFile, file_name, value_name};
use crate::base::sys::collections::HashMap;
use crate::base::{
    AfterFork, Error, ForkLocal, Key, Owner, Result, Stored, fork::get_or_make, sys::sync::Mutex,
    sys::time,
};
use crate::engine::rules::{PresenceId, Values};
use crate::engine::{Receivers, denied};

/// What to check when a user has no access.
pub(super) const RIGHTS: &str = "the owner and the permissions of the directory";
const LENGTH: &str = "the file size limit (`ulimit -f`) and the disk quota";
const DESCRIPTORS: &str = "the limit of open files (`ulimit -n`): this process has reached it, although the files of \
                           idle locks are closed";
pub(super) const DISK: &str = "the directory, its disk and its permissions";

/// What a process has open of a directory.
pub(super) struct Files {
    pub(super) root: Root,
    /// For errors: `file:///dir`.
    pub(super) endpoint: String,
    /// The files of names that were used last.
    names: Mutex<HashMap<Key, Arc<NameFile>>>,
    #[cfg(feature = "delay")]
    queues: Mutex<HashMap<Key, Arc<QueueFile>>>,
    pub(super) presences: OwnPresences,
    /// The lockers of this process, which hear at once of leases that one of them has ended. Others find it when they
    /// look.
    pub(super) receivers: Receivers,
}

/// So many files stay open although nobody uses them.
const MOST_OPEN: usize = 64;

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
    pub(super) fn open(root: Root, endpoint: String) -> Arc<Self> {
        static IN_USE: OnceLock<ForkLocal<InUse>> = OnceLock::new();
        let in_use = get_or_make(&IN_USE, || ForkLocal::new(InUse::default()));
        let mut all = in_use.get().0.lock();
        all.retain(|files| files.strong_count() > 0);
        let mut open = all.iter().filter_map(Weak::upgrade);
        if let Some(files) = open.find(|files| files.root.path() == root.path()) {
            return files;
        }
        let files = Arc::new(Files::of(root, endpoint));
        all.push(Arc::downgrade(&files));
        files
    }

    /// Of nobody else.
    pub(super) fn of(root: Root, endpoint: String) -> Self {
        Files {
            root,
            endpoint,
            names: Mutex::default(),
            #[cfg(feature = "delay")]
            queues: Mutex::default(),
            presences: OwnPresences::default(),
            receivers: Receivers::default(),
        }
    }

    /// The file of a name, made if it isn't there.
    pub(super) fn name(&self, key: &Key) -> Result<Arc<NameFile>> {
        let mut names = self.names.lock();
        if let Some(file) = names.get(key) {
            return Ok(file.clone());
        }
        let open = || NameFile::open(&self.root.get_or_make()?, &file_name(key));
        let file = match open() {
            Err(e) if is_exhausted(&e) => {
                self.give_back(&mut names);
                open()
            }
            opened => opened,
        };
        let file = Arc::new(file.map_err(|e| self.error(key, e))?);
        if names.len() >= MOST_OPEN {
            names.retain(|_, file| Arc::strong_count(file) > 1);
        }
        names.insert(key.clone(), file.clone());
        // Before anybody uses it.
        self.presences.look_again();
        Ok(file)
    }

    /// Gives an owner a presence, unless it has one, and says whether it has it from now on.
    pub(super) fn take_presence(&self, owner: &Owner) -> io::Result<bool> {
        self.with_descriptors(|| self.presences.take(owner, &self.root))
    }

    /// Tries it again with descriptors of what nobody uses, if none is left.
    fn with_descriptors<T>(&self, open: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match open() {
            Err(e) if is_exhausted(&e) => {
                self.give_back(&mut self.names.lock());
                open()
            }
            opened => opened,
        }
    }

    /// Closes what is open and nobody uses: no descriptor is left for something else.
    fn give_back(&self, names: &mut HashMap<Key, Arc<NameFile>>) {
        names.retain(|_, file| Arc::strong_count(file) > 1);
        self.presences.close_resting();
    }

    /// Another file, or none, is at the path of this one.
    pub(super) fn forget_name(&self, key: &Key, gone: &Arc<NameFile>) {
        let mut names = self.names.lock();
        if names.get(key).is_some_and(|file| Arc::ptr_eq(file, gone)) {
            names.remove(key);
        }
    }

    /// The file of a delay queue, made if it isn't there.
    #[cfg(feature = "delay")]
    pub(super) fn queue(&self, key: &Key) -> io::Result<Arc<QueueFile>> {
        let mut queues = self.queues.lock();
        if let Some(queue) = queues.get(key) {
            return Ok(queue.clone());
        }
        if queues.len() >= MOST_OPEN {
            queues.retain(|_, queue| Arc::strong_count(queue) > 1);
        }
        let open = || QueueFile::open(&self.root.get_or_make()?, key);
        let queue = Arc::new(self.with_descriptors(open)?);
        queues.insert(key.clone(), queue.clone());
        self.presences.look_again();
        Ok(queue)
    }

    /// Another file, or none, is at the path of this one.
    #[cfg(feature = "delay")]
    pub(super) fn forget_queue(&self, key: &Key, gone: &Arc<QueueFile>) {
        let mut queues = self.queues.lock();
        if queues
            .get(key)
            .is_some_and(|queue| Arc::ptr_eq(queue, gone))
        {
            queues.remove(key);
        }
    }

    pub(super) fn remove_value(&self, key: &Key) -> Result<()> {
        let below = value_name(key);
        let removed = self.root.get().and_then(|root| {
            let parent = root.parent_of(&below)?;
            parent.map_or(Ok(()), |parent| parent.remove(last_of(&below)))
        });
        unless_missing(removed).map_err(|e| self.value_error(key, e))?;
        self.tell_watches(key, false);
        Ok(())
    }

    pub(super) fn path(&self, key: &Key) -> PathBuf {
        self.root.path().join(file_name(key))
    }

    pub(super) fn value_path(&self, key: &Key) -> PathBuf {
        self.root.path().join(value_name(key))
    }

    pub(super) fn error(&self, key: &Key, cause: io::Error) -> Error {
        match cause.kind() {
            ErrorKind::TimedOut => self.busy(key),
            _ => self.error_at(key, file_name(key), cause),
        }
    }

    pub(super) fn value_error(&self, key: &Key, cause: io::Error) -> Error {
        self.error_at(key, value_name(key), cause)
    }

    pub(super) fn error_at(&self, key: &Key, file: PathBuf, cause: io::Error) -> Error {
        let name = Some(key.name());
        match cause.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                denied(name, &self.endpoint, RIGHTS, cause)
            }
            ErrorKind::QuotaExceeded => Error::engine(name, &self.endpoint, LENGTH, cause),
            _ if is_exhausted(&cause) => Error::engine(name, &self.endpoint, DESCRIPTORS, cause),
            ErrorKind::IsADirectory => {
                let path = self.root.path().join(file);
                let (name, key) = (key.name().to_owned(), path.display().to_string());
                Error::Conflict {
                    name,
                    key,
                    reason: "it isn't a regular file".to_owned(),
                }
            }
            _ => Error::engine(name, &self.endpoint, DISK, cause),
        }
    }

    /// The error for a file that holds something else.
    pub(super) fn no_state(&self, key: &Key) -> Error {
        Error::Conflict {
            name: key.name().to_owned(),
            key: self.path(key).display().to_string(),
            reason: "it doesn't contain the state of a lock".to_owned(),
        }
    }

    /// The error for a file that another process has had locked for too long: while it was stopped, or by flock(1).
    pub(super) fn busy(&self, key: &Key) -> Error {
        let cause = format!("another program keeps {} locked", self.path(key).display());
        Error::unavailable(Some(key.name()), &self.endpoint, cause)
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// They are files beside those of the names.
impl Values for &Files {
    fn load(&self, key: &Key) -> Result<Stored> {
        let read = self.root.find().and_then(|root| match root {
            Some(root) => read_file(&root, &value_name(key)),
            None => Ok(None),
        });
        let read = read.map_err(|e| self.value_error(key, e))?;
        Ok(read.map(Into::into))
    }

    /// Stores it, on the disk. Only for who has the name's file locked: there is one draft for each.
    fn store(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        let stored = self.root.get().and_then(|root| {
            check_size(value.len())?;
            replace_file(&root, &value_name(key), value)
        });
        let dir = stored.map_err(|e| self.value_error(key, e))?;
        self.tell_watches(key, true);
        dir.sync().map_err(|e| self.value_error(key, e))
    }
}

/// Which owner of this process has which presence. One that nobody has rests, and is the next one's: it is made once,
/// and not for each lock.
#[derive(Debug, Default)]
pub(super) struct OwnPresences(Mutex<Presences>);

#[derive(Debug, Default)]
struct Presences {
    of: HashMap<Owner, Known>,
    resting: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    presence: Arc<Presence>,
    /// When it was last found at its path; `None` when that must be looked at, because the directory may be another
    /// one.
    seen: Option<Instant>,
    /// Whether others have copies of it, which keep it open.
    is_copied: bool,
}

/// More that rest are closed.
const MOST_RESTING: usize = 16;

/// What removes old files from a directory for temporary ones leaves those that are younger than days.
const LOOK_EVERY: Duration = Duration::from_secs(60);

impl OwnPresences {
    /// Gives an owner one, unless it has one, and says whether it has it from now on.
    pub(super) fn take(&self, owner: &Owner, root: &Root) -> io::Result<bool> {
        let mut presences = self.0.lock();
        if let Some(known) = presences.of.get_mut(owner) {
            // It asks again: somebody may have removed it meanwhile.
            known.seen = None;
            return Ok(false);
        }
        let known = match rested(&mut presences.resting) {
            Some(known) => known,
            None => {
                // Those who have a file locked need the presences, too.
                drop(presences);
                let made = Known::make(root)?;
                presences = self.0.lock();
                made
            }
        };
        presences.of.insert(owner.clone(), known);
        Ok(true)
    }

    /// That of an owner as others find it: another one, should it have been removed, with its directory or alone. For
    /// who has the owner's names locked.
    pub(super) fn found(&self, owner: &Owner, root: &Root) -> io::Result<PresenceId> {
        let mut presences = self.0.lock();
        let known = presences.of.get_mut(owner).ok_or(ErrorKind::NotFound)?;
        if known.seen.is_none() {
            if !known.presence.is_at_its_path()? {
                *known = Known::make(root)?;
            }
            known.seen = Some(time::now());
        }
        Ok(known.presence.id())
    }

    /// The directory is another than before, or a file was opened, and it may be: it was made anew at the same path, or
    /// one that was there is back.
    pub(super) fn look_again(&self) {
        let mut presences = self.0.lock();
        let Presences { of, resting } = &mut *presences;
        for known in of.values_mut().chain(resting) {
            known.seen = None;
        }
    }

    pub(super) fn of(&self, owner: &Owner) -> Option<Arc<Presence>> {
        let presences = self.0.lock();
        presences.of.get(owner).map(|known| known.presence.clone())
    }

    /// A copy of an owner's, by which others keep it open. Nobody else gets that presence later.
    pub(super) fn copy(&self, owner: &Owner) -> io::Result<Option<File>> {
        let mut presences = self.0.lock();
        let Some(known) = presences.of.get_mut(owner) else {
            return Ok(None);
        };
        known.is_copied = true;
        known.presence.file().try_clone().map(Some)
    }

    /// Takes it from an owner that stands in no file any more.
    pub(super) fn give_back(&self, owner: &Owner) {
        let mut presences = self.0.lock();
        let Some(known) = presences.of.remove(owner) else {
            return;
        };
        if presences.resting.len() < MOST_RESTING && !known.is_copied {
            presences.resting.push(known);
        }
    }

    /// Closes those that nobody has.
    pub(super) fn close_resting(&self) {
        let resting = std::mem::take(&mut self.0.lock().resting);
        drop(resting);
    }

    /// Closes it, by which all that its owner has in any file is over.
    pub(super) fn close(&self, owner: &Owner) {
        let presence = self.0.lock().of.remove(owner);
        drop(presence);
    }
}

impl Known {
    fn make(root: &Root) -> io::Result<Self> {
        Ok(Known {
            presence: Arc::new(Presence::make(&root.get_or_make()?)?),
            seen: Some(time::now()),
            is_copied: false,
        })
    }
}

fn rested(resting: &mut Vec<Known>) -> Option<Known> {
    while let Some(known) = resting.pop() {
        if known
            .seen
            .is_some_and(|seen| time::since(seen) < LOOK_EVERY)
        {
            return Some(known);
        }
        if stays(&known.presence) {
            let seen = Some(time::now());
            return Some(Known { seen, ..known });
        }
    }
    None
}

/// Whether others find it, and go on finding it.
fn stays(presence: &Presence) -> bool {
    presence.is_at_its_path().unwrap_or(false) && presence.touch().is_ok()
}
