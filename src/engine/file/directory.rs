//! Which directory a URL names, and whether it will do.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use url::Url;

use crate::base::error::Result;
use crate::engine::url::invalid_url;

/// A fixed place, whatever the environment says: a cron job and a shell of one user have to meet.
pub(super) fn private_directory() -> PathBuf {
    format!("/tmp/crosslock-{}", rustix::process::geteuid()).into()
}

pub(super) fn directory_of(url: &str, rest: &str) -> Result<PathBuf> {
    let wrong = |reason: &str| invalid_url(url, reason);
    if !rest.starts_with('/') {
        return Err(wrong("a directory is named by its whole path: file:///dir"));
    }
    let parsed = Url::parse(url).map_err(|e| wrong(&format!("{e}: use file:///dir")))?;
    if parsed.host_str().is_some() {
        return Err(wrong(
            "locks live on this host: use file:///dir, with three slashes",
        ));
    }
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return Err(wrong("a directory has neither ? nor #: write %3F and %23"));
    }
    match parsed.to_file_path() {
        Ok(path) if path.parent().is_some() => Ok(path),
        _ => Err(wrong(
            "it names no directory: use file:///dir, or file: for a private one",
        )),
    }
}

pub(super) fn make(directory: &Path) -> io::Result<()> {
    match fs::metadata(directory) {
        Ok(found) if !found.is_dir() => return Err(ErrorKind::NotADirectory.into()),
        _ => fs::create_dir_all(directory)?,
    }
    rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK)?;
    Ok(())
}

/// The place is one where others may write, so what is found there may be theirs.
pub(super) fn make_private(directory: &Path) -> io::Result<()> {
    const PRIVATE: u32 = 0o700;
    match DirBuilder::new().mode(PRIVATE).create(directory) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    let found = fs::symlink_metadata(directory)?;
    if !found.is_dir() {
        return Err(ErrorKind::NotADirectory.into());
    }
    if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o077 != 0 {
        let text =
            "it isn't this user's with mode 0700: remove it, or name a directory by file:///dir";
        return Err(io::Error::new(ErrorKind::PermissionDenied, text));
    }
    Ok(())
}
