//! How names stand, found out without a lock, and without a change.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::create::open_to_read;
use super::dir::Dir;
use super::files::{DISK, Files};
use super::name::{file_name, key_of};
use super::page::{self, BootId, Found};
use super::presence;
use super::text::{Written, written_of};
use crate::base::clock::{BootClock, BootInstant, Clock};
use crate::base::error::{Error, Result};
use crate::base::name::{Key, Namespace};
use crate::base::sys::time;
use crate::engine::rules::Table;

impl Files {
    /// The names that are taken, and begin with `prefix`.
    pub(super) fn list(&self, namespace: &Namespace, prefix: &str) -> Result<Vec<String>> {
        let paths = self.root.find().and_then(|root| match root {
            Some(root) => files_below(&root),
            None => Ok(Vec::new()),
        });
        let paths = paths.map_err(|e| Error::engine(None, &self.place, DISK, e))?;
        let mut names = Vec::new();
        for path in paths {
            let key = key_of(namespace, &path);
            let Some(key) = key.filter(|key| key.name().starts_with(prefix)) else {
                continue;
            };
            match self.look(&key) {
                Ok((table, now)) => names.extend(table.list(namespace, prefix, now)),
                // What is no lock of ours isn't taken.
                Err(Error::Conflict { .. }) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(names)
    }

    /// The directory as it is now, and the file of a name in it.
    pub(super) fn find(&self, key: &Key) -> io::Result<Option<(Arc<Dir>, File)>> {
        let Some(root) = self.root.find()? else {
            return Ok(None);
        };
        let file = open_to_read(&root, &file_name(key))?;
        Ok(file.map(|file| (root, file)))
    }

    /// A name as its file says, without those that are gone.
    pub(super) fn look(&self, key: &Key) -> Result<(Table, BootInstant)> {
        let (now, error) = (BootClock.now(), |e| self.error(key, e));
        let Some((root, file)) = self.find(key).map_err(error)? else {
            return Ok((Table::default(), now));
        };
        let written = read_unlocked(&file).map_err(error)?;
        let written = written.ok_or_else(|| self.no_state(key))?;
        let presences = written.name.entries.iter();
        let presences: Vec<_> = presences.filter_map(|one| one.presence).collect();
        let mut table = written.table(key);
        let mut gone = BTreeSet::new();
        for presence in presences {
            let is_gone = match presence::is_gone(&root, presence) {
                // Of one that only others may open nothing is known.
                Err(e) if e.kind() == ErrorKind::PermissionDenied => Ok(false),
                looked => looked,
            };
            if is_gone.map_err(error)? {
                gone.insert(presence);
            }
        }
        table.at(now).end(&gone);
        Ok((table, now))
    }
}

/// A name as its file says, without a look at any presence. `None` while another writes it, or if it says nothing.
pub(super) fn read_whole(file: &File) -> io::Result<Option<Written>> {
    let found = page::read(file, &BootId::current())?;
    let found = found.map(|(found, _)| found);
    Ok(found
        .filter(|found| *found != Found::Cut)
        .and_then(written_of))
}

/// Another may write it at this moment.
fn read_unlocked(file: &File) -> io::Result<Option<Written>> {
    const LOOKS: u32 = 25;
    const PAUSE: Duration = Duration::from_micros(100);
    for look in 1..LOOKS {
        if let Some(written) = read_whole(file)? {
            return Ok(Some(written));
        }
        time::sleep(PAUSE * look);
    }
    let found = page::read(file, &BootId::current())?;
    Ok(found.and_then(|(found, _)| written_of(found)))
}

/// All regular files of a directory, and of the directories in it that are parts of a long name, as paths below it.
fn files_below(root: &Arc<Dir>) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(below) = directories.pop() {
        // Another may have put something else into its place.
        let Ok(Some(directory)) = root.parent_of(&below.join("any")) else {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::claim::{Claim, Mode};
    use crate::base::clock::Deadline;
    use crate::base::inspection::{Inspection, LockState};
    use crate::base::owner::Owner;
    use crate::engine::Answer;
    use crate::engine::Request;
    use crate::engine::file::calls::Manner;
    use crate::engine::file::root::Root;
    use crate::engine::file::section::LockMode;
    use std::fs;

    fn place() -> (tempfile::TempDir, Files) {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::new(directory.path().to_owned(), false);
        let files = Files::of(root, "file:".into());
        (directory, files)
    }

    fn take(files: &Files, claim: &Claim) -> Owner {
        let owner = Owner::new();
        let request = Request {
            claim,
            owner: &owner,
            ttl: Duration::MAX,
            granted: None,
        };
        let manner = Manner {
            waits: true,
            looks: true,
            lock_mode: LockMode::Patient,
        };
        let deadline = Deadline::after(Duration::from_secs(10));
        let (answer, _) = files.acquire(request, manner, &deadline).unwrap();
        assert!(answer != Answer::Broken);
        owner
    }

    fn inspect(files: &Files, key: &Key) -> Inspection {
        let (table, now) = files.look(key).unwrap();
        table.inspect(key, now)
    }

    fn free_permits(files: &Files, key: &Key) -> u32 {
        let (table, now) = files.look(key).unwrap();
        table.free_permits(key, 3, now)
    }

    #[test]
    fn look_makes_and_changes_nothing() {
        let (directory, files) = place();
        let claim = Claim::exclusive("x", "a");
        assert_eq!(inspect(&files, &claim.key).state, LockState::Free);
        assert_eq!(free_permits(&files, &claim.key), 3);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        let [holder, waiter] = [(); 2].map(|()| take(&files, &claim));
        let read = || fs::read(files.path(&claim.key)).unwrap();
        let before = read();
        let count = |seen: &Inspection| (seen.holders.len(), seen.waiters.len());
        assert_eq!(count(&inspect(&files, &claim.key)), (1, 1));
        files.presences.close(&waiter);
        assert_eq!(count(&inspect(&files, &claim.key)), (1, 0));
        files.presences.close(&holder);
        let seen = inspect(&files, &claim.key);
        assert_eq!((count(&seen), seen.state), ((0, 0), LockState::Free));
        assert!(seen.last_token.is_some());
        assert_eq!(read(), before);
    }

    #[test]
    fn permits_of_those_who_are_gone_are_free() {
        let (_directory, files) = place();
        let claim = Claim {
            mode: Mode::Permits { count: 2, of: 3 },
            ..Claim::exclusive("x", "a")
        };
        let holder = take(&files, &claim);
        assert_eq!(free_permits(&files, &claim.key), 1);
        files.presences.close(&holder);
        assert_eq!(free_permits(&files, &claim.key), 3);
    }

    #[test]
    fn names_that_are_held_are_listed() {
        let (directory, files) = place();
        let long = format!("ab{}", "x".repeat(300));
        let names = ["ab", "ac", "b", &long].map(|name| Claim::exclusive("x", name));
        let owners = names.each_ref().map(|claim| take(&files, claim));
        take(&files, &Claim::exclusive("y", "ab"));
        fs::write(directory.path().join("x+ad.lock"), "something else").unwrap();
        let list = |prefix| {
            let mut listed = files.list(&Namespace::new("x").unwrap(), prefix).unwrap();
            listed.sort();
            listed
        };
        assert_eq!(list("a"), ["ab", &long, "ac"]);
        files.presences.close(&owners[0]);
        assert_eq!(list(""), [&long, "ac", "b"]);
    }
}
