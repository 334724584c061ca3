//! The directory of a URL, held open.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, accessat};

use super::dir::Dir;
use crate::base::sync::Mutex;

/// The directory of a URL. It is opened once, and anew when another one is at its path.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    /// Whether it is for one user alone, in a place where others may write.
    is_private: bool,
    held: Mutex<Option<Arc<Dir>>>,
}

const PRIVATE: u32 = 0o700;

impl Root {
    pub(super) fn new(path: PathBuf, is_private: bool) -> Self {
        Root {
            path,
            is_private,
            held: Mutex::default(),
        }
    }

    /// The same, of which nothing is open: for a child that was forked off.
    pub(super) fn anew(&self) -> Self {
        Root::new(self.path.clone(), self.is_private)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The one that is at its path.
    pub(super) fn get(&self) -> io::Result<Arc<Dir>> {
        let mut held = self.held.lock();
        if let Some(dir) = &*held
            && dir.is_at_its_path()?
        {
            return Ok(dir.clone());
        }
        let dir = Arc::new(self.open()?);
        *held = Some(dir.clone());
        Ok(dir)
    }

    /// The same; `None` when there is none.
    pub(super) fn find(&self) -> io::Result<Option<Arc<Dir>>> {
        match self.get() {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            got => got.map(Some),
        }
    }

    /// The one that was at its path when somebody looked last: for whoever has just seen a name's file at its own.
    pub(super) fn held(&self) -> io::Result<Arc<Dir>> {
        let held = self.held.lock().clone();
        held.map_or_else(|| self.get(), Ok)
    }

    /// The same as `get`, made if it isn't there.
    pub(super) fn make(&self) -> io::Result<Arc<Dir>> {
        let dir = match self.get() {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                self.create()?;
                self.get()?
            }
            got => got?,
        };
        accessat(
            &*dir,
            ".",
            Access::WRITE_OK | Access::EXEC_OK,
            AtFlags::empty(),
        )?;
        Ok(dir)
    }

    fn create(&self) -> io::Result<()> {
        if !self.is_private {
            return fs::create_dir_all(&self.path);
        }
        match DirBuilder::new().mode(PRIVATE).create(&self.path) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(e),
            _ => Ok(()),
        }
    }

    fn open(&self) -> io::Result<Dir> {
        if !self.is_private {
            return Dir::at(&self.path);
        }
        let dir = Dir::itself_at(&self.path)?;
        let found = dir.metadata()?;
        if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o077 != 0 {
            let text = "it isn't this user's with mode 0700: remove it, or name a directory by file:///dir";
            return Err(io::Error::new(ErrorKind::PermissionDenied, text));
        }
        Ok(dir)
    }
}
