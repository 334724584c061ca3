//! How files come to be: with the rights that their directory gives, and nothing else in their place.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use uuid::Uuid;

/// What is there must be a file of ours: where others may write, it may be a link to something else.
pub(super) fn open_or_create(directory: &Path, path: &Path) -> io::Result<(File, Metadata)> {
    loop {
        match open_there(path)? {
            Some(opened) => return Ok(opened),
            None => create_file(directory, path)?,
        }
    }
}

/// The file at `path`; `None` when there is none.
pub(super) fn open_there(path: &Path) -> io::Result<Option<(File, Metadata)>> {
    open_if_there(&options(), path)
}

/// The same.
pub(super) fn open_to_read(path: &Path) -> io::Result<Option<(File, Metadata)>> {
    open_if_there(options().write(false), path)
}

fn open_if_there(options: &OpenOptions, path: &Path) -> io::Result<Option<(File, Metadata)>> {
    let file = match options.open(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) if e.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => return Err(no_file()),
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
fn create_file(directory: &Path, path: &Path) -> io::Result<()> {
    let rights = fs::metadata(directory)?;
    create_parents(directory, path, &rights)?;
    let draft = draft_of(path);
    let file = options().create_new(true).open(&draft)?;
    let linked = give(&file, &rights, 0o6).and_then(|()| fs::hard_link(&draft, path));
    fs::remove_file(&draft)?;
    // Some file systems have neither links nor rights.
    unless_exists(linked).or_else(|_| {
        let made = options().create_new(true).open(path);
        unless_exists(made.map(drop))
    })
}

/// A file that is about to take the place of the one at its path, or of none. It is removed if it doesn't.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) file: File,
    draft: PathBuf,
    path: PathBuf,
    is_ours: bool,
}

impl Draft {
    fn at(draft: PathBuf, directory: &Path, path: &Path) -> io::Result<Self> {
        let file = options().create_new(true).open(&draft)?;
        let made = Draft {
            file,
            draft,
            path: path.to_owned(),
            is_ours: true,
        };
        // Some file systems have no rights.
        let _ = give(&made.file, &fs::metadata(directory)?, 0o6);
        Ok(made)
    }

    /// What is at the path then is all of it, or what was there before: also when this process crashes.
    pub(super) fn publish(&mut self) -> io::Result<()> {
        fs::rename(&self.draft, &self.path)?;
        self.is_ours = false;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.is_ours {
            // Whatever failed before says more.
            let _ = fs::remove_file(&self.draft);
        }
    }
}

/// A draft for a value, which replaces one that a crash has left: there is no more than one for each.
pub(super) fn draft_value(directory: &Path, path: &Path) -> io::Result<Draft> {
    let draft = path.with_extension("draft");
    unless_missing(fs::remove_file(&draft))?;
    Draft::at(draft, directory, path)
}

pub(super) fn unless_missing(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// What is at `path`; `None` when there is nothing.
pub(super) fn read_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let Some((mut file, _)) = open_to_read(path)? else {
        return Ok(None);
    };
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(Some(content))
}

/// The parts of a long name are directories below ours.
fn create_parents(directory: &Path, path: &Path, rights: &Metadata) -> io::Result<()> {
    let below = path.strip_prefix(directory).unwrap_or(path);
    let mut parent = directory.to_owned();
    for part in below.parent().into_iter().flatten() {
        parent.push(part);
        match fs::symlink_metadata(&parent) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(no_file()),
            Err(e) if e.kind() == ErrorKind::NotFound => create_part(&parent, rights)?,
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn options() -> OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .custom_flags(flags.bits().cast_signed());
    options
}

/// Like a file, it appears under its name when it has its rights. One that is there is not replaced, also when it
/// is empty: another may be about to make a file in it.
fn create_part(path: &Path, rights: &Metadata) -> io::Result<()> {
    let draft = draft_of(path);
    fs::create_dir(&draft)?;
    let made = give(&File::open(&draft)?, rights, 0o7).and_then(|()| {
        Ok(renameat_with(
            CWD,
            &draft,
            CWD,
            path,
            RenameFlags::NOREPLACE,
        )?)
    });
    if made.is_err() {
        fs::remove_dir(&draft)?;
    }
    // Some file systems have neither this kind of renaming nor rights.
    unless_exists(made).or_else(|_| unless_exists(fs::create_dir(path)))
}

/// Beside `path`, which may be too long for a suffix.
pub(super) fn draft_of(path: &Path) -> PathBuf {
    path.with_file_name(format!(".{}", Uuid::new_v4()))
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

pub(super) fn no_file() -> io::Error {
    io::Error::new(ErrorKind::IsADirectory, "it is no regular file")
}
