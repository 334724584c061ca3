//! Locks in a directory of this host, released by the kernel when a process dies.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{
    DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown,
};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::{Access, CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use url::Url;
use uuid::Uuid;

use super::{Acquired, Engine, Failed, Released, Request, invalid_url};
use crate::clock::Deadline;
use crate::error::{Error, Result};
use crate::fence::{Token, host_micros};
use crate::lease::Owner;
use crate::name::Key;

/// One file a name, locked while its lease lasts, holding the counter of its fencing tokens.
#[derive(Debug)]
pub(crate) struct FileEngine {
    directory: PathBuf,
    /// For errors: `file:///dir`.
    place: String,
    held: Mutex<HashMap<Owner, Held>>,
}

#[derive(Debug)]
struct Held {
    locked: Locked,
    token: Token,
}

/// A locked file. The lock belongs to the open file, so whoever drops this releases.
#[derive(Debug)]
struct Locked {
    file: File,
    path: PathBuf,
}

impl FileEngine {
    pub(crate) fn open(url: &str, rest: &str) -> Result<Self> {
        let private = rest.is_empty();
        let directory = if private {
            private_directory()
        } else {
            directory_of(url, rest)?
        };
        let place = format!("file://{}", directory.display());
        let checked = if private {
            make_private(&directory)
        } else {
            make(&directory)
        };
        match checked {
            Ok(()) => Ok(FileEngine {
                directory,
                place,
                held: Mutex::default(),
            }),
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                Err(Error::denied(None, &place, e))
            }
            Err(e) if e.kind() == ErrorKind::ReadOnlyFilesystem => {
                Err(Error::denied(None, &place, e))
            }
            Err(e) => {
                let reason = format!("{}: {e}: name a directory", directory.display());
                Err(invalid_url(url, &reason))
            }
        }
    }

    fn error(&self, key: &Key, cause: io::Error) -> Error {
        let name = Some(key.name());
        match cause.kind() {
            ErrorKind::PermissionDenied => Error::denied(name, &self.place, cause),
            ErrorKind::IsADirectory => {
                let path = self.directory.join(file_name(key));
                let (name, key) = (key.name().to_owned(), path.display().to_string());
                Error::Conflict {
                    name,
                    key,
                    reason: "it is no regular file".to_owned(),
                }
            }
            _ => Error::engine(name, &self.place, cause),
        }
    }

    /// The locked file of `key`, or `None` when it is taken.
    fn lock(&self, key: &Key) -> io::Result<Option<Locked>> {
        let path = self.directory.join(file_name(key));
        loop {
            let file = self.open_file(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(e)) => return Err(e),
            }
            // Somebody may have removed the file between open and lock: then its lock excludes nobody.
            let locked = Locked {
                file,
                path: path.clone(),
            };
            if locked.is_at_its_path()? {
                return Ok(Some(locked));
            }
        }
    }

    /// What is there must be a file of ours: where others may write, it may be a link to something else.
    fn open_file(&self, path: &Path) -> io::Result<File> {
        loop {
            match options().open(path) {
                Err(e) if e.kind() == ErrorKind::NotFound => self.create_file(path)?,
                Err(e) if e.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                    return Err(no_file());
                }
                Err(e) => return Err(e),
                Ok(file) if file.metadata()?.is_file() => return Ok(file),
                Ok(_) => return Err(no_file()),
            }
        }
    }

    /// It appears under its name when it has its rights: whoever may use the directory may use it, whatever the
    /// umask of the first one.
    fn create_file(&self, path: &Path) -> io::Result<()> {
        let directory = fs::metadata(&self.directory)?;
        self.create_parents(path, &directory)?;
        let draft = draft_of(path);
        let file = options().create_new(true).open(&draft)?;
        let linked = give(&file, &directory, 0o6).and_then(|()| fs::hard_link(&draft, path));
        fs::remove_file(&draft)?;
        // Some file systems have neither links nor rights.
        unless_exists(linked).or_else(|_| {
            let made = options().create_new(true).open(path);
            unless_exists(made.map(drop))
        })
    }

    /// The parts of a long name are directories below ours.
    fn create_parents(&self, path: &Path, directory: &Metadata) -> io::Result<()> {
        let below = path.strip_prefix(&self.directory).unwrap_or(path);
        let mut parent = self.directory.clone();
        for part in below.parent().into_iter().flatten() {
            parent.push(part);
            match fs::symlink_metadata(&parent) {
                Ok(found) if found.is_dir() => {}
                Ok(_) => return Err(no_file()),
                Err(e) if e.kind() == ErrorKind::NotFound => create_part(&parent, directory)?,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Takes the next token of a file that was just locked.
    fn take(&self, key: &Key, locked: Locked) -> Result<Held> {
        let counted = read_counter(&locked.file).map_err(|e| self.error(key, e))?;
        let Some(stored) = counted else {
            let reason = "it doesn't hold a counter".to_owned();
            let (name, key) = (key.name().to_owned(), locked.path.display().to_string());
            return Err(Error::Conflict { name, key, reason });
        };
        let token = Token::next(stored, host_micros());
        write_counter(&locked.file, token.number).map_err(|e| self.error(key, e))?;
        Ok(Held { locked, token })
    }
}

impl Engine for FileEngine {
    fn acquire(&self, request: Request<'_>, _deadline: &Deadline) -> Result<Acquired, Failed> {
        if let Some(held) = self.held.lock().get(request.owner) {
            return Ok(Acquired::Granted(held.token));
        }
        let key = request.key;
        let Some(locked) = self.lock(key).map_err(|e| self.error(key, e))? else {
            return Ok(Acquired::Taken { remaining: None });
        };
        let held = self.take(key, locked)?;
        let token = held.token;
        self.held.lock().insert(request.owner.clone(), held);
        Ok(Acquired::Granted(token))
    }

    /// There is nothing to renew: the kernel keeps the lock for as long as the process lives.
    fn renew(&self, request: Request<'_>, deadline: &Deadline) -> Result<bool> {
        self.is_owner(request, deadline)
    }

    fn release(
        &self,
        request: Request<'_>,
        last_used: Option<u64>,
        _deadline: &Deadline,
    ) -> Result<Released> {
        let Some(held) = self.held.lock().remove(request.owner) else {
            return Ok(Released::NotOwner);
        };
        let counter = last_used.map_or_else(|| held.token.called_back(), Token::released);
        let written = write_counter(&held.locked.file, counter);
        let kept = held.locked.is_kept();
        drop(held);
        written.map_err(|e| self.error(request.key, e))?;
        Ok(if kept {
            Released::Done
        } else {
            Released::NotOwner
        })
    }

    fn is_owner(&self, request: Request<'_>, _deadline: &Deadline) -> Result<bool> {
        Ok(self
            .held
            .lock()
            .get(request.owner)
            .is_some_and(|held| held.locked.is_kept()))
    }

    fn has_ttl(&self) -> bool {
        false
    }

    /// The counter stays odd: the next holder sees that this one never released.
    fn forget(&self, owner: &Owner) {
        self.held.lock().remove(owner);
    }

    fn place(&self) -> &str {
        &self.place
    }
}

impl Locked {
    /// Whether the lock still excludes others: they would lock another file if this one was removed.
    fn is_kept(&self) -> bool {
        self.is_at_its_path().unwrap_or(false)
    }

    fn is_at_its_path(&self) -> io::Result<bool> {
        let ours = self.file.metadata()?;
        match fs::metadata(&self.path) {
            Ok(found) => Ok((found.dev(), found.ino()) == (ours.dev(), ours.ino())),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // A child that is being spawned has a copy of the descriptor for some milliseconds: closing alone
        // would leave the file locked for as long.
        if let Err(e) = self.file.unlock() {
            log::warn!("can't unlock {}: {e}", self.path.display());
        }
    }
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
fn create_part(path: &Path, directory: &Metadata) -> io::Result<()> {
    let draft = draft_of(path);
    fs::create_dir(&draft)?;
    let made = give(&File::open(&draft)?, directory, 0o7).and_then(|()| {
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
fn draft_of(path: &Path) -> PathBuf {
    path.with_file_name(format!(".{}", Uuid::new_v4()))
}

/// Another was faster.
fn unless_exists(made: io::Result<()>) -> io::Result<()> {
    match made {
        Err(e)
            if matches!(
                e.kind(),
                ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty
            ) =>
        {
            Ok(())
        }
        made => made,
    }
}

/// Gives the owner, and each class of users that may write in `directory`, the rights `bits` to `file`.
fn give(file: &File, directory: &Metadata, bits: u32) -> io::Result<()> {
    let may_write = |class: &u32| directory.mode() >> class & 0o3 == 0o3;
    let classes = [3, 0].into_iter().filter(may_write);
    let mode = classes.fold(bits << 6, |mode, class| mode | bits << class);
    let sticky = if bits == 0o7 {
        directory.mode() & 0o1000
    } else {
        0
    };
    if file.metadata()?.gid() != directory.gid() {
        // Who isn't in the group can't give the file to it.
        let _ = fchown(file, None, Some(directory.gid()));
    }
    file.set_permissions(Permissions::from_mode(mode | sticky))
}

fn no_file() -> io::Error {
    io::Error::new(ErrorKind::IsADirectory, "it is no regular file")
}

/// A fixed place, whatever the environment says: a cron job and a shell of one user have to meet.
fn private_directory() -> PathBuf {
    format!("/tmp/crosslock-{}", rustix::process::geteuid()).into()
}

fn directory_of(url: &str, rest: &str) -> Result<PathBuf> {
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

fn make(directory: &Path) -> io::Result<()> {
    match fs::metadata(directory) {
        Ok(found) if !found.is_dir() => return Err(ErrorKind::NotADirectory.into()),
        _ => fs::create_dir_all(directory)?,
    }
    rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK)?;
    Ok(())
}

/// The place is one where others may write, so what is found there may be theirs.
fn make_private(directory: &Path) -> io::Result<()> {
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

/// Digits of a counter in its file, with leading zeros: each write replaces all of the one before.
const DIGITS: usize = 20;

fn write_counter(file: &File, counter: u64) -> io::Result<()> {
    file.write_all_at(format!("{counter:0DIGITS$}\n").as_bytes(), 0)
}

fn read_counter(file: &File) -> io::Result<Option<u64>> {
    let mut text = [0; DIGITS + 2];
    let mut filled = 0;
    loop {
        match file.read_at(&mut text[filled..], filled as u64) {
            Ok(0) => return Ok(parse_counter(&text[..filled])),
            Ok(n) => filled += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// `None` for what isn't a counter. An empty file is one that nobody has used yet.
fn parse_counter(text: &[u8]) -> Option<u64> {
    const LARGEST: u64 = (1 << 53) - (1 << 12);
    if text.is_empty() {
        return Some(0);
    }
    let digits = text
        .strip_suffix(b"\n")
        .filter(|digits| digits.len() == DIGITS)?;
    let digits = str::from_utf8(digits)
        .ok()
        .filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
    digits.parse().ok().filter(|counter| *counter < LARGEST)
}

/// An injective name, also where the file system folds case: `namespace+name.lock`, where all but
/// `a-z 0-9 . _ -` is `%xx`, and where parts longer than a file name may be are directories.
fn file_name(key: &Key) -> PathBuf {
    const PART: usize = 200;
    let text = format!("{}+{}", escaped(key.namespace()), escaped(key.name()));
    let mut rest = text.as_str();
    let mut path = PathBuf::new();
    while rest.len() > PART {
        let (part, after) = rest.split_at(PART);
        path.push(format!("{part}~"));
        rest = after;
    }
    path.push(format!("{rest}.lock"));
    path
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Namespace;
    use proptest::prelude::*;
    use std::path::Component;

    fn key(namespace: &str, name: &str) -> Key {
        Key::new(&Namespace::new(namespace).unwrap(), name).unwrap()
    }

    /// What `file_name` was made of, which can only be told when it is injective.
    fn unescaped(path: &Path) -> String {
        let parts: Vec<_> = path.iter().map(|part| part.to_str().unwrap()).collect();
        let (last, before) = parts.split_last().unwrap();
        let mut text: String = before
            .iter()
            .map(|part| part.strip_suffix('~').unwrap())
            .collect();
        text.push_str(last.strip_suffix(".lock").unwrap());
        let (namespace, name) = text.split_once('+').unwrap();
        let decode = |text: &str| {
            let mut bytes = text.bytes();
            let mut out = Vec::new();
            while let Some(byte) = bytes.next() {
                if byte != b'%' {
                    out.push(byte);
                    continue;
                }
                let hex = [bytes.next().unwrap(), bytes.next().unwrap()];
                out.push(u8::from_str_radix(str::from_utf8(&hex).unwrap(), 16).unwrap());
            }
            String::from_utf8(out).unwrap()
        };
        format!("{}:{}", decode(namespace), decode(name))
    }

    proptest! {
        #[test]
        fn file_names_are_injective_short_and_inside_the_directory(
            namespace in "[A-Za-z0-9._-]{0,64}", name in "\\PC{1,128}",
        ) {
            let path = file_name(&key(&namespace, &name));
            prop_assert_eq!(unescaped(&path), format!("{namespace}:{name}"));
            for part in path.components() {
                prop_assert!(matches!(part, Component::Normal(p) if p.len() <= 255), "{:?}", part);
            }
            let text = path.to_str().unwrap();
            prop_assert_eq!(text.to_lowercase(), text);
        }

        #[test]
        fn any_content_is_a_counter_or_refused(content in proptest::collection::vec(any::<u8>(), 0..30)) {
            if let Some(counter) = parse_counter(&content) {
                let text = format!("{counter:020}\n");
                prop_assert!(content.is_empty() || content == text.as_bytes());
            }
        }

        #[test]
        fn counter_is_read_as_written(counter in 0u64..(1 << 52)) {
            let file = tempfile::tempfile().unwrap();
            write_counter(&file, counter).unwrap();
            prop_assert_eq!(read_counter(&file).unwrap(), Some(counter));
        }
    }

    #[test]
    fn longest_name_has_short_parts() {
        let path = file_name(&key("x", &"\u{ff}".repeat(256)));
        assert!(path.iter().count() > 5 && path.iter().all(|part| part.len() <= 255));
    }

    #[test]
    fn long_file_is_no_counter() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at("00000000000000000001\nmore".as_bytes(), 0)
            .unwrap();
        assert_eq!(read_counter(&file).unwrap(), None);
    }

    #[test]
    fn file_removed_while_held_is_lost() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("file://{}", directory.path().display());
        let engine = FileEngine::open(&url, url.strip_prefix("file:").unwrap()).unwrap();
        let (key, owner) = (key("x", "y"), Owner::new());
        let request = Request {
            key: &key,
            owner: &owner,
            ttl: std::time::Duration::from_secs(1),
        };
        engine.acquire(request, &Deadline::NEVER).unwrap();
        assert!(engine.is_owner(request, &Deadline::NEVER).unwrap());
        fs::remove_file(directory.path().join(file_name(&key))).unwrap();
        assert!(!engine.is_owner(request, &Deadline::NEVER).unwrap());
        let released = engine.release(request, None, &Deadline::NEVER).unwrap();
        assert_eq!(released, Released::NotOwner);
    }
}
