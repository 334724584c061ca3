//! The directory of a URL, held open, and made when something is to be written there.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::dir::Dir;
use crate::base::error::Result;
use crate::base::sys::sync::Mutex;
use crate::engine::url::invalid_url;
use crate::engine::url::parts::{Parts, decoded_bytes};

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

    /// The one that was at its path when somebody looked last: for whoever has just seen a name's file at its own, and has
    /// told `hold`.
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
            let text = "it isn't this user's with mode 0700: remove it, or name a directory by file:///dir";
            return Err(io::Error::new(ErrorKind::PermissionDenied, text));
        }
        Ok(dir)
    }
}

/// A fixed place, whatever the environment says: a cron job and a shell of one user have to meet.
pub(super) fn private_directory() -> PathBuf {
    format!("/tmp/crosslock-{}", rustix::process::geteuid()).into()
}

pub(super) fn directory_of(url: &str) -> Result<PathBuf> {
    understand(url).map_err(|reason| invalid_url(url, &reason))
}

fn understand(url: &str) -> Result<PathBuf, String> {
    let parts = Parts::of(url)?;
    if !parts.path.starts_with('/') && parts.authority.is_none() {
        return Err("a directory is named by its whole path: file:///dir".into());
    }
    if !parts.authority.is_none_or(is_this_host) {
        return Err("locks live on this host: use file:///dir, with three slashes".into());
    }
    if parts.query.is_some() {
        return Err("a directory's ? is written %3F".into());
    }
    let directory = PathBuf::from(OsString::from_vec(decoded_bytes(parts.path)?));
    if directory.file_name().is_none() {
        return Err("it names no directory: use file:///dir, or file: for a private one".into());
    }
    Ok(directory)
}

/// RFC 8089 has both.
fn is_this_host(authority: &str) -> bool {
    authority.is_empty() || authority.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::Error;
    use std::path::Path;

    #[test]
    fn directory_is_the_path_of_the_url() {
        for (url, directory) in [
            ("file:///a/b", "/a/b"),
            ("file:/a/b/", "/a/b/"),
            ("FILE://LocalHost/a", "/a"),
            ("file:////a", "//a"),
            ("file:///a%20b%3F/ü", "/a b?/ü"),
        ] {
            assert_eq!(directory_of(url).unwrap(), Path::new(directory), "{url}");
        }
        let raw = directory_of("file:///%ff").unwrap();
        assert_eq!(raw.into_os_string().into_vec(), b"/\xff");
    }

    #[test]
    fn url_that_names_no_directory_is_told_what_would() {
        for (url, advice) in [
            ("file:a", "file:///dir"),
            ("file://host/a", "three slashes"),
            ("file://a", "three slashes"),
            ("file:///", "file: for a private one"),
            ("file://", "file: for a private one"),
            ("file:///..", "file: for a private one"),
            ("file:///a?b", "%3F"),
            ("file:///a#b", "%23"),
            ("file:///a%b", "%25"),
            ("file:///a\nb", "%xx"),
            ("file:///a ", "space"),
        ] {
            match directory_of(url) {
                Err(Error::InvalidUrl { reason, .. }) => {
                    assert!(reason.contains(advice), "{url}: {reason}");
                }
                other => panic!("{url}: {other:?}"),
            }
        }
    }
}
