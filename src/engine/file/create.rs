//! How files come to be: with the rights that their directory gives, and nothing else in their place.
//!
//! What always holds here: what is given rights was made by this process. A file is open since it was made. What can
//! only be opened when it was made is made where no other user may write.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::{ffi::OsStr, path::Path, sync::Arc};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, linkat, mkdirat, renameat, renameat_with};
use rustix::process::{Resource, getrlimit};

use super::dir::{Dir, is_link, last_of, no_file, parts_before};
use crate::base::sys;

/// What is there must be a file of ours: where others may write, it may be a link to something else.
pub(super) fn open_or_create(root: &Arc<Dir>, below: &Path) -> io::Result<(File, Metadata)> {
    loop {
        let parent = make_parent(root, below)?;
        match open_there(&parent, last_of(below), OFlags::RDWR)? {
            Some(opened) => return Ok(opened),
            None => create_file(root, &parent, last_of(below))?,
        }
    }
}

/// To read; `None` when there is none.
pub(super) fn open_to_read(root: &Arc<Dir>, below: &Path) -> io::Result<Option<File>> {
    let Some(parent) = root.parent_of(below)? else {
        return Ok(None);
    };
    let opened = open_there(&parent, last_of(below), OFlags::RDONLY)?;
    Ok(opened.map(|(file, _)| file))
}

/// What is in a directory; `None` when there is nothing of that name.
pub(super) fn open_there(
    dir: &Dir,
    name: &OsStr,
    flags: OFlags,
) -> io::Result<Option<(File, Metadata)>> {
    let file = match dir.open_file(name, flags, 0) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) if is_link(&e) => return Err(no_file()),
        file => file?,
    };
    let found = file.metadata()?;
    if found.is_file() {
        Ok(Some((file, found)))
    } else {
        Err(no_file())
    }
}

/// It appears under its name when it has its rights: whoever may use the directory may use it, whatever the
/// umask of the first one.
fn create_file(root: &Dir, parent: &Dir, name: &OsStr) -> io::Result<()> {
    let rights = root.metadata()?;
    let draft = draft_name();
    let file = parent.create_file(&draft, 0o600)?;
    let link = || Ok(linkat(parent, &draft, parent, name, AtFlags::empty())?);
    let linked = give(&file, &rights, 0o6).and_then(|()| link());
    parent.remove(&draft)?;
    // Some file systems have neither links nor rights.
    unless_exists(linked).or_else(|_| {
        let made = parent.create_file(name, 0o666);
        unless_exists(made.map(drop))
    })
}

/// Has a file hold this: all of it, or what it held before, also when this process crashes. What a crash has left of it
/// before is replaced: there is one draft for each file. A power cut may bring the old file back, until the directory
/// that is returned is on the disk, too.
pub(super) fn replace_file(root: &Arc<Dir>, below: &Path, content: &[u8]) -> io::Result<Arc<Dir>> {
    let dir = root.parent_of(below)?.ok_or(ErrorKind::NotFound)?;
    let mut draft = below.as_os_str().to_owned();
    draft.push("-draft");
    let draft = Path::new(&draft);
    let draft = last_of(draft);
    unless_missing(dir.remove(draft))?;
    // Others may open it when it has its rights.
    let mut file = dir.create_file(draft, 0o600)?;
    let mut write = || {
        // Some file systems have no rights.
        let _ = give(&file, &root.metadata()?, 0o6);
        file.write_all(content)?;
        file.sync_data()?;
        Ok(renameat(&*dir, draft, &*dir, last_of(below))?)
    };
    let written = write();
    if written.is_err() {
        // What failed before says more.
        let _ = dir.remove(draft);
    }
    written.map(|()| dir)
}

pub(super) fn unless_missing(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// What a file holds; `None` when there is none.
pub(super) fn read_file(root: &Arc<Dir>, below: &Path) -> io::Result<Option<Vec<u8>>> {
    let Some(mut file) = open_to_read(root, below)? else {
        return Ok(None);
    };
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(Some(content))
}

/// The parts of a long name are directories below ours.
fn make_parent(root: &Arc<Dir>, below: &Path) -> io::Result<Arc<Dir>> {
    let mut parent = root.clone();
    for part in parts_before(below) {
        let found = match parent.dir(part)? {
            None => {
                create_part(&parent, part, &root.metadata()?)?;
                parent.dir(part)?.ok_or(ErrorKind::NotFound)?
            }
            Some(found) => found,
        };
        parent = Arc::new(found);
    }
    Ok(parent)
}

/// Like a file, it appears under its name when it has its rights. One that is there is not replaced, also when it
/// is empty: another may be about to make a file in it.
fn create_part(parent: &Dir, part: &OsStr, rights: &Metadata) -> io::Result<()> {
    let made = Workshop::open(parent).and_then(|shop| {
        mkdirat(shop.dir(), &shop.name, Mode::RWXU)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let made = shop.dir().open_file(&shop.name, flags, 0);
        let given = made.and_then(|made| give(&made, rights, 0o7));
        let published = given.and_then(|()| shop.publish(part, RenameFlags::NOREPLACE));
        if published.is_err() {
            shop.dir().remove_dir(&shop.name)?;
        }
        published
    });
    // Some file systems have neither this kind of renaming nor rights.
    unless_exists(made).or_else(|_| {
        let made = mkdirat(parent, part, Mode::RWXU | Mode::RWXG | Mode::RWXO);
        unless_exists(made.map_err(Into::into))
    })
}

/// Where no other user may write, so that nobody can put anything into the place of what is made there. If others may
/// write in a directory, it is one within: they can move that, but do nothing in it.
pub(super) struct Workshop<'a> {
    within: &'a Dir,
    own: Option<Dir>,
    /// That of `own`, and of the one thing that is made.
    pub(super) name: String,
}

impl<'a> Workshop<'a> {
    pub(super) fn open(within: &'a Dir) -> io::Result<Self> {
        let name = draft_name();
        let own = if is_of_one(&within.metadata()?) {
            None
        } else {
            mkdirat(within, &name, Mode::RWXU)?;
            let own = within.dir(name.as_ref()).transpose();
            if !matches!(own, Some(Ok(_))) {
                // No descriptor is left, perhaps: that says more than what fails here.
                let _ = within.remove_dir(&name);
            }
            Some(own.ok_or(ErrorKind::NotFound)??)
        };
        let shop = Workshop { within, own, name };
        if is_of_one(&shop.dir().metadata()?) {
            return Ok(shop);
        }
        let text = "another user has created something else in its place";
        Err(io::Error::new(ErrorKind::PermissionDenied, text))
    }

    pub(super) fn dir(&self) -> &Dir {
        self.own.as_ref().unwrap_or(self.within)
    }

    /// Removes one that a crash has left, with the one thing that may be in it, if it can.
    pub(super) fn remove_left(within: &Dir, name: &str) {
        if let Ok(Some(dir)) = within.dir(name.as_ref()) {
            // It is a directory, or none, or isn't there.
            let _ = dir.remove(name).or_else(|_| dir.remove_dir(name));
        }
        let _ = within.remove_dir(name);
    }

    /// Moves what was made out of it.
    pub(super) fn publish(&self, name: &OsStr, flags: RenameFlags) -> io::Result<()> {
        let (from, to) = (self.dir(), self.within);
        Ok(renameat_with(from, &self.name, to, name, flags)?)
    }
}

impl Drop for Workshop<'_> {
    fn drop(&mut self) {
        let Some(own) = &self.own else { return };
        if let Err(e) = self.within.remove_dir(&self.name) {
            log::debug!("can't remove {}: {e}", own.path().display());
        }
    }
}

/// Whether only this user may write in a directory.
fn is_of_one(rights: &Metadata) -> bool {
    rights.uid() == rustix::process::geteuid().as_raw() && rights.mode() & 0o022 == 0
}

const DRAFT: &str = ".new-";

/// Of what is being made, in whatever directory. Nobody else calls a file so.
pub(super) fn draft_name() -> String {
    format!("{DRAFT}{}", sys::random_uuid().simple())
}

pub(super) fn is_draft(name: &str) -> bool {
    let id = name.strip_prefix(DRAFT);
    id.is_some_and(|id| parse_id(id).is_some())
}

/// The number of a uuid in 32 hexadecimal digits; `None` for any other spelling of it, which is another file's name.
pub(super) fn parse_id(text: &str) -> Option<u128> {
    let is_digit = |digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    let is_id = text.len() == uuid::fmt::Simple::LENGTH && text.bytes().all(is_digit);
    u128::from_str_radix(text, 16).ok().filter(|_| is_id)
}

/// Another was faster.
fn unless_exists(made: io::Result<()>) -> io::Result<()> {
    match made {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Gives the owner, and each class of users that may write by `rights`, the rights `bits` to `file`.
pub(super) fn give(file: &File, rights: &Metadata, bits: u32) -> io::Result<()> {
    let may_write = |class: &u32| rights.mode() >> class & 0o3 == 0o3;
    let classes = [3, 0].into_iter().filter(may_write);
    let mode = classes.fold(bits << 6, |mode, class| mode | bits << class);
    let sticky = if bits == 0o7 {
        rights.mode() & 0o1000
    } else {
        0
    };
    if file.metadata()?.gid() != rights.gid() {
        // Who isn't in the group can't give the file to it.
        let _ = fchown(file, None, Some(rights.gid()));
    }
    file.set_permissions(Permissions::from_mode(mode | sticky))
}

/// An error if this process may not write up to there: nothing of it must be written then. Behind that limit the kernel
/// writes a part of what it was given, and ends the process at the next write.
pub(super) fn check_size(end: usize) -> io::Result<()> {
    match getrlimit(Resource::Fsize).current {
        Some(most) if most < end as u64 => {
            let text =
                format!("the file needs {end} bytes, and this process may write {most} to a file");
            Err(io::Error::new(ErrorKind::QuotaExceeded, text))
        }
        _ => Ok(()),
    }
}
