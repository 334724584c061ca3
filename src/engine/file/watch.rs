//! How one thread waits until a value changes: its presence is on a list beside the value, until whoever changes that
//! rings it.
//!
//! A list is written only while the name's file is locked. Whoever stores a value reads the list afterwards, removes
//! it, and rings those on it; who waits is put on the list, and looks at the value afterwards. So either sees the
//! other. What was removed without the lock, which a value may be, was on no list that is lost: that list stays.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::{ffi::OsStr, path::Path, slice, sync::Arc};

use rustix::fs::OFlags;

use super::change::try_until;
use super::create::{open_or_create, open_there, open_to_read, replace_file};
use super::dir::{Dir, last_of};
use super::files::Files;
use super::presence::{self, Presence};
use super::section::{LockMode, watches_name};
use crate::base::{Deadline, Key, Owner, Process, Result};
use crate::engine::{Watch, rules::PresenceId};

pub(super) struct FileWatch {
    files: Arc<Files>,
    key: Key,
    /// Under which it has a presence.
    owner: Owner,
    /// Whether it is on the list, as far as it knows.
    is_listed: bool,
}

/// With so many on a list, those are dropped whose process is gone.
const MANY: usize = 64;

/// A longer list isn't one of ours.
const LONGEST: u64 = 1 << 20;

impl FileWatch {
    pub(super) fn new(files: &Arc<Files>, key: &Key) -> Self {
        FileWatch {
            files: files.clone(),
            key: key.clone(),
            owner: Owner::of(Process::current(), None),
            is_listed: false,
        }
    }

    /// Puts it on the list, if it isn't there.
    fn enter_list(&mut self, until: &Deadline) -> Result<()> {
        let (files, key) = (&self.files, &self.key);
        let error = |e| files.error_at(key, watches_name(key), e);
        files.take_presence(&self.owner).map_err(error)?;
        let when = (LockMode::Patient, &try_until(until));
        files.change(slice::from_ref(key), when, |_| {
            let presence = files.presences.found(&self.owner, &files.root);
            let listed =
                presence.and_then(|presence| add_to_list(&files.root.held()?, key, presence));
            listed.map_err(error)
        })?;
        self.is_listed = true;
        Ok(())
    }

    fn sleep(&self, presence: &Arc<Presence>, until: &Deadline) -> io::Result<bool> {
        let own = Arc::downgrade(presence);
        let wake = move || {
            // What fails leaves one that sleeps until its deadline.
            let _ = own.upgrade().map(|own| own.notify_own());
        };
        let _registered = until.cancel().map(|cancel| cancel.on_set(Arc::new(wake)));
        let timeout = (!until.is_never()).then(|| until.remaining());
        Ok(presence::sleep(presence, &[], timeout)?.notified)
    }
}

impl Watch for FileWatch {
    fn changed(&mut self, until: &Deadline) -> Result<bool> {
        let presence = self.files.presences.of(&self.owner);
        let (true, Some(presence)) = (self.is_listed, presence) else {
            self.enter_list(until)?;
            return Ok(false);
        };
        // Whoever rings has removed the list, and somebody may have removed it alone.
        self.is_listed = false;
        let rung = self.sleep(&presence, until);
        rung.map_err(|e| self.files.error(&self.key, e))
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        self.files.presences.give_back(&self.owner);
    }
}

impl Files {
    /// Rings those who wait until a value changes, which it has. Only who has the name's file locked may remove the
    /// list: else somebody may just have come on it.
    pub(super) fn tell_watches(&self, key: &Key, is_locked: bool) {
        let told = self.root.held().and_then(|root| {
            let listed = list(&root, key)?;
            if is_locked && !listed.is_empty() {
                // Where users may not remove each other's files it stays, and those on it are rung once more.
                let _ = remove_list(&root, key);
            }
            Ok(listed)
        });
        match told {
            Ok(listed) => self.notify(listed),
            Err(e) => log::debug!(
                "can't wake the calls that wait for a change of {:?}, which will look by themselves later: {e}",
                key.name()
            ),
        }
    }
}

/// The presences on a list. What else somebody has written there counts for nothing.
fn list(root: &Arc<Dir>, key: &Key) -> io::Result<Vec<PresenceId>> {
    let file = open_to_read(root, &watches_name(key))?;
    file.map_or(Ok(Vec::new()), listed)
}

fn listed(file: File) -> io::Result<Vec<PresenceId>> {
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text)?;
    let lines = String::from_utf8_lossy(&text);
    Ok(lines.lines().filter_map(PresenceId::parse).collect())
}

fn add_to_list(root: &Arc<Dir>, key: &Key, presence: PresenceId) -> io::Result<()> {
    let (below, mut listed) = (watches_name(key), list(root, key)?);
    if listed.contains(&presence) {
        return Ok(());
    }
    let many = listed.len();
    if many >= MANY {
        listed.retain(|one| !matches!(presence::is_gone(root, *one), Ok(true)));
        let all: String = listed.iter().chain([&presence]).map(line).collect();
        // At once: whoever removes a value reads the list without the lock. Where users may not replace each other's
        // files it grows.
        if listed.len() < many && replace_file(root, &below, all.as_bytes()).is_ok() {
            return Ok(());
        }
    }
    let (file, found) = open_or_create(root, &below)?;
    // A line that a crash has cut off counts for nothing: this one begins anew.
    file.write_all_at(line(&presence).as_bytes(), found.len())
}

fn line(presence: &PresenceId) -> String {
    format!("\n{presence}\n")
}

/// Removes a list on which nobody is there any more, as killed processes leave it.
pub(super) fn remove_unused(dir: &Dir, name: &OsStr) -> io::Result<()> {
    let lock = Path::new(name).with_extension("lock");
    let Some((lock, _)) = open_there(dir, lock.as_os_str(), OFlags::RDWR)? else {
        return Ok(());
    };
    // Nobody enters the list meanwhile. A name that is in use isn't this one's to clean.
    if lock.try_lock().is_err() {
        return Ok(());
    }
    let is_gone = |one: &PresenceId| matches!(presence::is_gone(dir, *one), Ok(true));
    if let Some((file, _)) = open_there(dir, name, OFlags::RDONLY)?
        && listed(file)?.iter().all(is_gone)
    {
        // Where users may not remove each other's files, its owner does.
        let _ = dir.remove(name);
    }
    lock.unlock()
}

fn remove_list(root: &Arc<Dir>, key: &Key) -> io::Result<()> {
    let below = watches_name(key);
    let parent = root.parent_of(&below)?.ok_or(ErrorKind::NotFound)?;
    parent.remove(last_of(&below))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{opened, temp_dir};
    use super::*;
    use crate::base::{Claim, sys};

    fn gone() -> PresenceId {
        let id = sys::random_uuid().simple().to_string();
        PresenceId::parse(&id).unwrap()
    }

    #[test]
    fn list_loses_those_that_are_gone_and_is_removed_when_all_are() {
        let dir = temp_dir();
        let root = opened(dir.path());
        let key = Claim::exclusive("test", "a").key;
        open_or_create(&root, &super::super::section::file_name(&key)).unwrap();
        let here = Presence::make(&root).unwrap();
        add_to_list(&root, &key, here.id()).unwrap();
        for number in 1..MANY {
            add_to_list(&root, &key, gone()).unwrap();
            assert_eq!(list(&root, &key).unwrap().len(), number + 1);
        }
        let last = gone();
        add_to_list(&root, &key, last).unwrap();
        assert_eq!(list(&root, &key).unwrap(), [here.id(), last]);
        let below = watches_name(&key);
        remove_unused(&root, below.as_os_str()).unwrap();
        assert_eq!(list(&root, &key).unwrap().len(), 2);
        drop(here);
        remove_unused(&root, below.as_os_str()).unwrap();
        assert!(open_to_read(&root, &below).unwrap().is_none());
    }
}
