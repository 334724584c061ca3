//! Locks in a directory of this host, whose leases end with their processes.
//!
//! Who holds a name, and who waits for it, stands in its file, by the rules that memory follows. The file is locked only while it is
//! changed. Each owner has a presence, a FIFO, by which it is told, and by which others know that its process lives.
//!
//! It uses `base`, the seam, `engine::rules` and `engine::url`. What always holds here: a name's file is changed only while it is
//! locked, and as a whole; what a file says of an owner counts while its presence is open, and while the file is at its path.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Weak};

use self::dir::is_exhausted;
use self::files::{Files, RIGHTS};
use self::root::{Root, directory_of, private_directory};
use self::wait::FileWait;
use super::rules::Values;
use super::url::invalid_url;
use super::{
    Capabilities, Change, Cursor, Engine, Outcome, Page, Request, Revocations, Wait, denied,
};
use crate::base::clock::Deadline;
use crate::base::diagnosis::Finding;
use crate::base::error::{Error, Result};
use crate::base::inspection::{Holder, Inspection};
use crate::base::name::{Key, Namespace};
use crate::base::options::Options;
use crate::base::owner::Owner;
use crate::base::value::Stored;

mod calls;
mod change;
mod create;
mod diagnosis;
mod dir;
mod files;
mod looking;
mod name;
mod page;
mod presence;
mod presences;
mod root;
mod section;
mod sweep;
#[cfg(test)]
mod tests;
mod text;
mod wait;

/// One file a name, with who holds it and who waits.
#[derive(Debug)]
pub(crate) struct FileEngine {
    files: Arc<Files>,
}

impl FileEngine {
    pub(crate) fn open(url: &str, rest: &str) -> Result<Self> {
        let private = rest.is_empty();
        let directory = if private {
            private_directory()
        } else {
            directory_of(url)?
        };
        let place = format!("file://{}", directory.display());
        let root = Root::new(directory, private);
        let found = match root.find() {
            // Whatever needs it first opens it: a descriptor may be free by then.
            Err(e) if is_exhausted(&e) => Ok(None),
            found => found,
        };
        match found {
            Ok(Some(found)) => {
                if let Err(e) = sweep::sweep(&found) {
                    log::debug!("can't remove what ended processes left in {place}: {e}");
                }
                let files = Files::open(root, place);
                Ok(FileEngine { files })
            }
            Ok(None) => {
                let files = Files::open(root, place);
                files.root.let_make();
                Ok(FileEngine { files })
            }
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                Err(denied(None, &place, RIGHTS, e))
            }
            Err(e) => {
                let reason = format!("{}: {e}: name a directory", root.path().display());
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
            leases_expire: false,
            ..Capabilities::default()
        }
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        Box::new(FileWait::new(self.files.clone()))
    }

    fn change(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        self.files.change_lease(request, change, deadline)
    }

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.files.receivers.add(to);
    }

    fn lock_files(&self, owner: &Owner) -> io::Result<Vec<File>> {
        // Whoever has a copy of its presence keeps it open.
        let copy = self.files.presences.copy(owner)?;
        Ok(copy.into_iter().collect())
    }

    fn diagnose(
        &self,
        _namespace: &Namespace,
        _options: &Options,
        _deadline: &Deadline,
    ) -> Result<Vec<Finding>> {
        let found = self.files.root.get_or_make();
        let found =
            found.and_then(|found| diagnosis::diagnose(&found, self.files.root.is_private()));
        found.map_err(|e| Error::engine(None, &self.files.place, files::DISK, e))
    }

    /// A child has copies of its parent's files, and nothing to do with them.
    fn after_fork(&self) -> Option<Arc<dyn Engine>> {
        let files = &self.files;
        Some(Arc::new(FileEngine {
            files: Files::open(files.root.anew(), files.place.clone()),
        }))
    }

    /// Whoever waits finds that the owner is gone, and the next holder that it never released.
    fn forget(&self, owner: &Owner) {
        self.files.presences.close(owner);
    }

    fn inspect(&self, key: &Key, _deadline: &Deadline) -> Result<Inspection> {
        let (table, now) = self.files.look(key)?;
        Ok(table.inspect(key, now))
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

    fn load(&self, key: &Key, _deadline: &Deadline) -> Result<Stored> {
        (&*self.files).load(key)
    }

    fn remove(&self, key: &Key, _deadline: &Deadline) -> Result<()> {
        self.files.remove_value(key)
    }

    fn value_key(&self, key: &Key) -> String {
        self.files.value_path(key).display().to_string()
    }

    fn free_permits(&self, key: &Key, of: u32, _deadline: &Deadline) -> Result<u32> {
        let (table, now) = self.files.look(key)?;
        Ok(table.free_permits(key, of, now))
    }
}
