//! How a lock is taken from its holder, which the kernel doesn't do while the holder's process lives: a new file takes the
//! place of the locked one, and whoever locks the old one finds that it isn't at its path any more.
//!
//! One process breaks at a time in a directory. It
//!
//! 1. makes the new file beside the old one, says in it that it is unfinished, and locks it;
//! 2. marks the old file, so that its holder knows later why it lost the lock;
//! 3. sets the old file aside, under a second name;
//! 4. renames the new file to the name of the lock: now the lock is broken;
//! 5. copies the counter from the old file to the new one, which is then finished;
//! 6. removes the old file, and unlocks the new one, which wakes those who wait.
//!
//! *Tokens increase.* A token counts only if its file was at its path after the token had been written to it (`Files::take`).
//! So after step 4 no token comes from the old file any more, and step 5 finds the last one there. What the broken holder
//! may hand over within its process is what an odd counter leaves room for. A holder that releases meanwhile leaves an
//! even counter, and has used nothing above it.
//!
//! *A crash* before step 4 leaves the lock as it was, and after step 5 it is broken. In between, the new file is unlocked by
//! the kernel, and says that it is unfinished: whoever locks it next takes the counter from the file that was set aside,
//! in which nothing changes any more. What is left over is removed by the next break of the name.

use std::fs::{File, TryLockError};
use std::io;
use std::time::Duration;

use super::aside::{counter_after, remove_aside, set_aside};
use super::content::{Content, Record, mark_broken, read_content, unmark_broken, write_content};
use super::create::{Draft, check_replaceable, open_file, open_to_read, open_to_write};
use super::files::Files;
use super::opened::{Locked, Opened};
use super::standing::{holder, named_holder};
use crate::base::clock::Deadline;
use crate::base::error::{Error, LostReason, Result};
use crate::base::inspection::Holder;
use crate::base::name::Key;

/// Locked by whoever breaks a lock of the directory, and shared by those who store values.
const TURN: &str = ".breaking";

/// Neither takes any time, unless a process is stopped meanwhile.
const LONGEST_TURN: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(1);

impl Files {
    /// Takes the lock from whoever has it, and says who that was.
    pub(super) fn break_lock(&self, key: &Key, deadline: &Deadline) -> Result<Vec<Holder>> {
        let path = self.path(key);
        let error = |e| self.error(key, e);
        if open_to_read(&path).map_err(error)?.is_none() {
            return Ok(Vec::new());
        }
        let _turn = self.turn(key, deadline, File::try_lock)?;
        let Some(opened) = open_to_write(&path).map_err(error)? else {
            return Ok(Vec::new());
        };
        let before = read_content(&opened.file).map_err(error)?;
        let before = before.ok_or_else(|| self.no_counter(key))?;
        match opened.try_lock().map_err(error)? {
            Ok(free) => {
                end_keeping(&free).map_err(error)?;
                Ok(Vec::new())
            }
            Err(old) => {
                let holder = self.replace_locked(&old, &before).map_err(error)?;
                self.tell(&old);
                Ok(holder.into_iter().collect())
            }
        }
    }

    /// Puts a new file in the place of one that is locked. Says who had it.
    fn replace_locked(&self, old: &Opened, before: &Content) -> io::Result<Option<Holder>> {
        check_replaceable(&old.path, &old.file.metadata()?)?;
        let mut new = Draft::new(&self.directory, &old.path)?;
        write_content(&new.file, before.counter | 1, &Record::Unfinished)?;
        new.file.lock()?;
        mark_broken(&old.file)?;
        // Of a file that is unfinished itself, the one that was set aside before still has the counter.
        let keeps = before.record == Record::Unfinished;
        let set_aside = if keeps { Ok(()) } else { set_aside(&old.path) };
        if let Err(e) = set_aside.and_then(|()| new.publish()) {
            unmark_broken(&old.file)?;
            if !keeps {
                remove_aside(&old.path)?;
            }
            return Err(e);
        }
        let last = read_content(&old.file)?.unwrap_or_else(|| before.clone());
        let counter = counter_after(&old.path, &last);
        let holder = match old.file.try_lock() {
            // Its holder has noticed already; or there is none, because the lock was released just before.
            Ok(()) => named_holder(&last),
            Err(TryLockError::WouldBlock) => Some(holder(&old.file.metadata()?, &last)),
            Err(TryLockError::Error(e)) => return Err(e),
        };
        write_content(&new.file, counter, &Record::None)?;
        remove_aside(&old.path)?;
        new.file.unlock()?;
        Ok(holder)
    }

    /// Tells the holders of this process that have the file.
    fn tell(&self, old: &Opened) {
        let owners: Vec<_> = {
            let held = self.held.lock();
            let lost = held.iter().filter(|(_, held)| held.have(old));
            lost.map(|(owner, _)| owner.clone()).collect()
        };
        let listeners = self.revocations.lock().clone();
        for listener in listeners.iter().filter_map(std::sync::Weak::upgrade) {
            for owner in &owners {
                listener.revoked(owner.as_str(), u64::MAX, LostReason::Broken);
            }
        }
    }

    /// While what this gives lives, no lock of the directory is broken.
    pub(super) fn keep_from_breaking(
        &self,
        key: &Key,
        deadline: &Deadline,
    ) -> Result<impl Drop + use<>> {
        self.turn(key, deadline, File::try_lock_shared)
    }

    fn turn(
        &self,
        key: &Key,
        deadline: &Deadline,
        try_lock: fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Opened> {
        const OTHERS: &str = "processes that are stopped";
        let path = self.directory.join(TURN);
        let turn = open_file(&self.directory, &path).map_err(|e| self.error(key, e))?;
        let deadline = deadline.within(LONGEST_TURN);
        loop {
            match try_lock(&turn.file) {
                Ok(()) => return Ok(turn),
                Err(TryLockError::WouldBlock) if deadline.is_over() => {
                    let cause = "another process breaks a lock, and doesn't get on";
                    return Err(Error::engine(Some(key.name()), &self.place, OTHERS, cause));
                }
                Err(TryLockError::WouldBlock) => deadline.sleep(PAUSE),
                Err(TryLockError::Error(e)) => return Err(self.error(key, e)),
            }
        }
    }
}

/// Frees a lock that nobody has, and that is kept.
fn end_keeping(free: &Locked) -> io::Result<()> {
    match read_content(&free.file)? {
        Some(Content {
            counter,
            record: Record::Kept(_),
        }) => write_content(&free.file, counter, &Record::None),
        _ => Ok(()),
    }
}
