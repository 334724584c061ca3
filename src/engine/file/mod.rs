//! Locks in a directory of this host, released by the kernel when a process dies.
//!
//! A lease doesn't end by itself, but somebody may break it, so each is looked at now and then. A waiter sleeps until
//! something happens to the file, which promises no order.
//!
//! It uses `base`, the seam and `engine::url`. What always holds here: a lock's file is changed only while it is locked, but
//! for the mark that a break leaves; a lock counts only if its file is still at its path.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::sync::{Arc, Weak};

use self::create::unless_missing;
use self::directory::{directory_of, make, make_private, private_directory};
use self::files::{Files, RIGHTS};
use self::name::value_name;
use self::wait::FileWait;
use super::url::invalid_url;
use super::{
    Capabilities, Cursor, Engine, Grant, Operations, Page, Release, Released, Renewed, Request,
    Revocations, StoreAnswer, Values, Wait, denied,
};
use crate::base::clock::{Clock, Deadline};
use crate::base::diagnosis::Finding;
use crate::base::error::{Error, Result};
use crate::base::inspection::{Holder, Inspection};
use crate::base::name::{Key, Namespace};
use crate::base::options::Options;
use crate::base::owner::Owner;
use crate::base::token::HAND_OVERS;
use crate::base::value::Stored;

mod adopting;
mod aside;
mod breaking;
mod content;
mod create;
mod diagnosis;
mod directory;
mod files;
mod kernel_locks;
mod moment;
mod name;
mod opened;
mod standing;
mod wait;
mod watch;

/// One file a name, locked while its lease lasts, holding the counter of its fencing tokens.
#[derive(Debug)]
pub(crate) struct FileEngine {
    files: Arc<Files>,
    clock: Arc<dyn Clock>,
}

impl FileEngine {
    pub(crate) fn open(url: &str, rest: &str, clock: Arc<dyn Clock>) -> Result<Self> {
        let private = rest.is_empty();
        let directory = if private {
            private_directory()
        } else {
            directory_of(url)?
        };
        let place = format!("file://{}", directory.display());
        let checked = if private {
            make_private(&directory)
        } else {
            make(&directory)
        };
        match checked {
            Ok(()) => Ok(FileEngine {
                files: Files::open(directory, place),
                clock,
            }),
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                Err(denied(None, &place, RIGHTS, e))
            }
            Err(e) if e.kind() == ErrorKind::ReadOnlyFilesystem => {
                Err(denied(None, &place, RIGHTS, e))
            }
            Err(e) => {
                let reason = format!("{}: {e}: name a directory", directory.display());
                Err(invalid_url(url, &reason))
            }
        }
    }
}

impl Engine for FileEngine {
    fn place(&self) -> &str {
        &self.files.place
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            several_names: true,
            leases_expire: false,
            hand_overs: HAND_OVERS,
            ..Capabilities::default()
        }
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        Box::new(FileWait::new(self.files.clone(), self.clock.clone()))
    }

    /// The kernel keeps the lock for as long as the process lives, unless somebody breaks it.
    fn renew(&self, request: Request<'_>, deadline: &Deadline) -> Result<Renewed> {
        self.is_owner(request, deadline)
    }

    fn release(
        &self,
        request: Request<'_>,
        release: Release<'_>,
        deadline: &Deadline,
    ) -> Result<Released> {
        let held = self.files.held.lock().remove(request.owner);
        let Some(held) = held else {
            return Ok(Released::NotOwner);
        };
        let key = request.key();
        let stored = match release.value {
            Some(value) => self
                .files
                .replace(key, value, deadline, || held.are_kept())
                .map(drop),
            None => Ok(()),
        };
        let written = held.write_end(release.ending, release.keep);
        // Whoever breaks it from now on finds in its file that it was released.
        let standing = written.and_then(|()| held.standing());
        drop(held);
        stored?;
        let standing = standing.map_err(|e| self.files.error(key, e))?;
        Ok(match standing {
            Renewed::Done | Renewed::DoneSince(_) => Released::Done,
            Renewed::NotOwner => Released::NotOwner,
            Renewed::Broken => Released::Broken,
        })
    }

    fn is_owner(&self, request: Request<'_>, _deadline: &Deadline) -> Result<Renewed> {
        let ours = self.files.held.lock();
        let standing = ours.get(request.owner).map(|held| held.standing());
        let standing = standing.unwrap_or(Ok(Renewed::NotOwner));
        standing.map_err(|e| self.files.error(request.key(), e))
    }

    fn adopt(
        &self,
        request: Request<'_>,
        from: &Owner,
        last_used: u64,
        _deadline: &Deadline,
    ) -> Result<Option<Grant>> {
        let Some(token) = self.files.adopt(request, from, last_used)? else {
            return Ok(None);
        };
        Ok(Some(Grant {
            token,
            value: self.files.value(request)?,
            since: self.clock.now(),
        }))
    }

    fn operations(&self) -> Result<&dyn Operations> {
        Ok(self)
    }

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.files.tell_revocations(to);
    }

    fn lock_files(&self, owner: &Owner) -> io::Result<Vec<File>> {
        let ours = self.files.held.lock();
        let files = ours.get(owner).map_or(&[][..], |held| &held.files);
        files.iter().map(|locked| locked.file.try_clone()).collect()
    }

    fn values(&self) -> Result<&dyn Values> {
        Ok(self)
    }

    fn diagnose(
        &self,
        _namespace: &Namespace,
        _options: &Options,
        _deadline: &Deadline,
    ) -> Result<Vec<Finding>> {
        let directory = &self.files.directory;
        diagnosis::diagnose(directory)
            .map_err(|e| Error::engine(None, &self.files.place, files::DISK, e))
    }

    /// A child has copies of its parent's files, and nothing to do with them.
    fn after_fork(&self) -> Option<Arc<dyn Engine>> {
        let files = &self.files;
        Some(Arc::new(FileEngine {
            files: Files::open(files.directory.clone(), files.place.clone()),
            clock: self.clock.clone(),
        }))
    }

    /// The counter stays odd: the next holder sees that this one never released.
    fn forget(&self, owner: &Owner) {
        let mut ours = self.files.held.lock();
        if ours.get_mut(owner).is_some_and(|held| !held.lose()) {
            ours.remove(owner);
        }
    }
}

impl Operations for FileEngine {
    fn inspect(&self, key: &Key, _deadline: &Deadline) -> Result<Inspection> {
        self.files.inspect(key)
    }

    /// All on one page.
    fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        _cursor: Cursor,
        _deadline: &Deadline,
    ) -> Result<Page> {
        let names = self.files.list(namespace, prefix)?;
        Ok(Page { names, next: None })
    }

    fn break_lock(&self, key: &Key, deadline: &Deadline) -> Result<Vec<Holder>> {
        self.files.break_lock(key, deadline)
    }
}

impl Values for FileEngine {
    fn store(
        &self,
        request: Request<'_>,
        value: &[u8],
        deadline: &Deadline,
    ) -> Result<StoreAnswer> {
        let is_owner = || {
            let ours = self.files.held.lock();
            let kept = ours.get(request.owner).map(|held| held.are_kept());
            kept.unwrap_or(Ok(false))
        };
        let stored = self
            .files
            .replace(request.key(), value, deadline, is_owner)?;
        Ok(if stored {
            StoreAnswer::Done
        } else {
            StoreAnswer::NotOwner
        })
    }

    fn load(&self, key: &Key, _deadline: &Deadline) -> Result<Stored> {
        self.files.load(key)
    }

    fn remove(&self, key: &Key, _deadline: &Deadline) -> Result<()> {
        let removed = fs::remove_file(self.files.directory.join(value_name(key)));
        unless_missing(removed).map_err(|e| self.files.value_error(key, e))
    }

    fn value_key(&self, key: &Key) -> String {
        let path = self.files.directory.join(value_name(key));
        path.display().to_string()
    }
}

#[cfg(test)]
mod tests;
