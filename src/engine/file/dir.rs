//! Open directories: what is in one is found there, whatever becomes of the path that led to it. And the one that a URL
//! names, which is made when something is to be written there.
//!
//! What always holds here: a name that is looked up has one part, and is not followed if it is a link. So
//! nobody who may write in the directory can lead its user out of it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::{os::unix::ffi::OsStrExt, sync::Arc};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;

use super::platform;
use crate::base::sys::sync::Mutex;

#[derive(Debug)]
pub(super) struct Dir {
    file: File,
    /// Where it was found: for texts, and to see whether it is still there.
    path: PathBuf,
    identity: Identity,
}

impl Dir {
    /// The one at a path that its user has named, which may lead through links.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        Dir::open(CWD, path, path.to_owned(), OFlags::empty())
    }

    /// The one at a path where others may put a link.
    pub(super) fn itself_at(path: &Path) -> io::Result<Self> {
        Dir::open(CWD, path, path.to_owned(), OFlags::NOFOLLOW)
    }

    /// One that is in this; `None` when there is nothing of that name.
    pub(super) fn dir(&self, name: &OsStr) -> io::Result<Option<Self>> {
        match Dir::open(self, name.as_ref(), self.path.join(name), OFlags::NOFOLLOW) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            // A link counts as such, too.
            Err(e) if e.kind() == ErrorKind::NotADirectory || is_link(&e) => Err(no_file()),
            opened => opened.map(Some),
        }
    }

    fn open(within: impl AsFd, name: &Path, path: PathBuf, more: OFlags) -> io::Result<Self> {
        let flags = platform::TO_FIND | OFlags::DIRECTORY | OFlags::CLOEXEC | more;
        let file = File::from(openat(within, name, flags, Mode::empty())?);
        let identity = Identity::of(&file.metadata()?);
        Ok(Dir {
            file,
            path,
            identity,
        })
    }

    /// The one that has the last part of a path below this; `None` when one of them isn't there.
    pub(super) fn parent_of(self: &Arc<Self>, below: &Path) -> io::Result<Option<Arc<Self>>> {
        let mut parent = self.clone();
        for part in parts_before(below) {
            match parent.dir(part)? {
                Some(found) => parent = Arc::new(found),
                None => return Ok(None),
            }
        }
        Ok(Some(parent))
    }

    /// All regular files in it, and in the directories in it that are parts of a long name, as paths below it.
    pub(super) fn files_below(self: &Arc<Self>) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let mut directories = vec![PathBuf::new()];
        while let Some(below) = directories.pop() {
            // Another may have put something else into its place.
            let Ok(Some(directory)) = self.parent_of(&below.join("any")) else {
                continue;
            };
            for (name, kind) in directory.entries()? {
                if kind.is_dir() && name.as_encoded_bytes().ends_with(b"~") {
                    directories.push(below.join(name));
                } else if kind.is_file() {
                    found.push(below.join(name));
                }
            }
        }
        Ok(found)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// Whether both are one directory.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Whether its path leads to it now.
    pub(super) fn is_at_its_path(&self) -> io::Result<bool> {
        self.identity.is_reached_by(&self.path)
    }

    /// Opens what is in it, and waits for nothing. A link is an error.
    pub(super) fn open_file(
        &self,
        name: impl AsRef<OsStr>,
        flags: OFlags,
        mode: u32,
    ) -> io::Result<File> {
        let more = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        #[allow(
            clippy::cast_possible_truncation,
            reason = "a mode has 12 bits, its type 16 on macOS"
        )]
        let mode = Mode::from_bits_truncate(mode as _);
        let opened = openat(self, name.as_ref(), flags | more, mode)?;
        Ok(File::from(opened))
    }

    /// Makes a file, which nobody else has made.
    pub(super) fn create_file(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        self.open_file(name, flags, mode)
    }

    /// Removes what is no directory.
    pub(super) fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(unlinkat(self, name.as_ref(), AtFlags::empty())?)
    }

    /// Removes an empty directory.
    pub(super) fn remove_dir(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(unlinkat(self, name.as_ref(), AtFlags::REMOVEDIR)?)
    }

    /// Has the disk note which files it has under which names. A user who may not list it can't, nor can some file
    /// systems.
    pub(super) fn sync(&self) -> io::Result<()> {
        let synced = self.open_file(".", OFlags::RDONLY | OFlags::DIRECTORY, 0);
        match synced.and_then(|dir| dir.sync_all()) {
            Err(e) if is_any(&e, [Errno::ACCESS, Errno::INVAL]) => Ok(()),
            synced => synced,
        }
    }

    /// What is in it.
    pub(super) fn entries(&self) -> io::Result<Vec<(OsString, FileType)>> {
        let mut found = Vec::new();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = openat(self, ".", flags, Mode::empty())?;
        for entry in rustix::fs::Dir::new(readable)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems don't tell it with the name.
                FileType::Unknown => match statat(self, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(found) => FileType::from_raw_mode(found.st_mode),
                    Err(Errno::NOENT) => continue,
                    Err(e) => return Err(e.into()),
                },
                kind => kind,
            };
            found.push((name.to_owned(), kind));
        }
        Ok(found)
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// All parts of a path but the last.
pub(super) fn parts_before(below: &Path) -> impl Iterator<Item = &OsStr> {
    below.parent().into_iter().flatten()
}

/// The last part of the path of a name's file.
pub(super) fn last_of(below: &Path) -> &OsStr {
    below.file_name().unwrap_or_default()
}

/// Whether a link was found where none is followed.
pub(super) fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// Whether no descriptor is left.
pub(super) fn is_exhausted(error: &io::Error) -> bool {
    is_any(error, [Errno::MFILE, Errno::NFILE])
}

fn is_any(error: &io::Error, of: [Errno; 2]) -> bool {
    let of = of.map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|e| of.contains(&e))
}

pub(super) fn no_file() -> io::Error {
    io::Error::new(ErrorKind::IsADirectory, "it isn't a regular file")
}

/// The device and the number of a file, by which it is another one than those that are open elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity(u64, u64);

impl Identity {
    pub(super) fn of(found: &Metadata) -> Self {
        Identity(found.dev(), found.ino())
    }

    /// Whether those who open `path` now have this file: it may have been removed, or replaced by another.
    pub(super) fn is_at(self, path: &Path) -> io::Result<bool> {
        self.is_found(identity_at(CWD, path, AtFlags::SYMLINK_NOFOLLOW))
    }

    /// The same, where the last part of `path` may be a link.
    pub(super) fn is_reached_by(self, path: &Path) -> io::Result<bool> {
        self.is_found(identity_at(CWD, path, AtFlags::empty()))
    }

    /// Whether a directory has this file under that name.
    pub(super) fn is_in(self, dir: impl AsFd, name: &Path) -> io::Result<bool> {
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

fn identity_at(dir: impl AsFd, path: &Path, flags: AtFlags) -> io::Result<Identity> {
    let (device, number) = platform::id_at(dir, path, flags)?;
    Ok(Identity(device, number))
}

/// The directory of a URL. It is opened once, and anew when another one is at its path.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    /// Whether it is for one user alone, in a place where others may write.
    is_private: bool,
    held: Mutex<Option<Arc<Dir>>>,
    /// Whether the first change makes it: it wasn't there when it was asked for, and nobody has removed it since.
    may_make: AtomicBool,
}

const PRIVATE: u32 = 0o700;

impl Root {
    pub(super) fn new(path: PathBuf, is_private: bool) -> Self {
        Root {
            path,
            is_private,
            held: Mutex::default(),
            may_make: AtomicBool::new(false),
        }
    }

    /// The same, of which nothing is open: for a child that was forked off.
    pub(super) fn anew(&self) -> Self {
        let root = Root::new(self.path.clone(), self.is_private);
        root.may_make.store(self.may_make.load(Relaxed), Relaxed);
        root
    }

    pub(super) fn is_private(&self) -> bool {
        self.is_private
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
        self.may_make.store(false, Relaxed);
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

    /// The one that was at its path when somebody looked last: for whoever has just seen a name's file at its own, and
    /// has told `hold`.
    pub(super) fn held(&self) -> io::Result<Arc<Dir>> {
        let held = self.held.lock().clone();
        held.map_or_else(|| self.get(), Ok)
    }

    /// A name's file was just seen at its path, so its directory is at its own. Says whether another was there before.
    pub(super) fn hold(&self, dir: &Arc<Dir>) -> bool {
        let mut held = self.held.lock();
        if held.as_ref().is_some_and(|held| held.is_same(dir)) {
            return false;
        }
        *held = Some(dir.clone());
        true
    }

    /// Lets the next change make it. A look needs none.
    pub(super) fn let_make(&self) {
        self.may_make.store(true, Relaxed);
    }

    /// The same as `get`, made if it was never there.
    pub(super) fn get_or_make(&self) -> io::Result<Arc<Dir>> {
        match self.get() {
            Err(e) if e.kind() == ErrorKind::NotFound && self.may_make.load(Relaxed) => {
                self.create()?;
                self.get()
            }
            got => got,
        }
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
            let text = "it doesn't belong to this user or its mode isn't 0700: remove it, or use file:///dir";
            return Err(io::Error::new(ErrorKind::PermissionDenied, text));
        }
        Ok(dir)
    }
}
