//! How a lock stands, found out without taking it, not for a moment: by what its file holds, and by what the kernel tells
//! of its locks. Where the kernel doesn't tell, by whether the process lives that the file names.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::content::{Content, Held, read_content};
use super::create::open_to_read;
use super::files::{DISK, Files};
use super::kernel_locks::{KernelLock, KernelLocks, is_alive, is_known_as};
use super::name::key_of;
use crate::base::error::{Error, Result};
use crate::base::inspection::{Holder, Inspection, LockState, Party, Waiter, Wants};
use crate::base::name::{Key, Namespace};

/// How a lock stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    Free,
    Kept(Duration),
    Held(Holder),
    /// The file doesn't say by whom: the lock is being taken or released at this moment, or another program has it.
    Locked,
    /// The file says by whom, but the kernel didn't tell of all locks.
    MaybeHeld(Holder),
}

/// What one look at a file has found.
struct Look {
    content: Content,
    standing: Standing,
    waiters: Vec<Waiter>,
}

impl Files {
    pub(super) fn inspect(&self, key: &Key) -> Result<Inspection> {
        // To take or release a lock takes microseconds, unless its thread has to wait for a processor.
        const LOOKS: u32 = 25;
        const PAUSE: Duration = Duration::from_micros(100);
        let path = self.path(key);
        let mut looks = 0;
        loop {
            let look = look(&path, KernelLocks::read().as_ref());
            let look = look.map_err(|e| self.error(key, e))?;
            let look = look.ok_or_else(|| self.no_counter(key))?;
            looks += 1;
            if look.standing.is_clear() || looks == LOOKS {
                return Ok(look.told(key));
            }
            thread::sleep(PAUSE * looks);
        }
    }

    /// The names that are taken, and begin with `prefix`.
    pub(super) fn list(&self, namespace: &Namespace, prefix: &str) -> Result<Vec<String>> {
        let paths = files_below(&self.directory);
        let paths = paths.map_err(|e| Error::engine(None, &self.place, DISK, e))?;
        let locks = KernelLocks::read();
        let mut names = Vec::new();
        for path in paths {
            let key = key_of(
                namespace,
                path.strip_prefix(&self.directory).unwrap_or(&path),
            );
            let Some(key) = key.filter(|key| key.name().starts_with(prefix)) else {
                continue;
            };
            let look = look(&path, locks.as_ref()).map_err(|e| self.error(&key, e));
            let is_taken = match look {
                // What is no lock of ours isn't taken.
                Err(Error::Conflict { .. }) | Ok(None) => false,
                Err(e) => return Err(e),
                Ok(Some(look)) => match look.standing {
                    Standing::Free => false,
                    Standing::MaybeHeld(_) => self.inspect(&key)?.state != LockState::Free,
                    Standing::Kept(_) | Standing::Held(_) | Standing::Locked => true,
                },
            };
            if is_taken {
                names.push(key.name().to_owned());
            }
        }
        Ok(names)
    }
}

/// `None` when the file holds something else. A lock without a file is free.
fn look(path: &Path, locks: Option<&KernelLocks>) -> io::Result<Option<Look>> {
    let Some((file, found)) = open_to_read(path)? else {
        return Ok(Some(Look {
            content: Content::default(),
            standing: Standing::Free,
            waiters: Vec::new(),
        }));
    };
    let look = read_content(&file)?.map(|content| Look {
        standing: standing(&found, &content, locks),
        waiters: waiters(&found, locks),
        content,
    });
    Ok(look)
}

/// How the lock stands whose file holds that.
fn standing(found: &Metadata, content: &Content, locks: Option<&KernelLocks>) -> Standing {
    let held = content.held();
    let by = |held: &Held| held.told(content.counter);
    let Some(locks) = locks else {
        let running = held.filter(|held| held.is_running());
        return running.map_or_else(|| unlocked(content), |held| Standing::Held(by(held)));
    };
    let (ours, others) = locks_of(found, locks);
    let is_by_holder = |held: &&Held| {
        let by_others = others
            .iter()
            .any(|lock| held.is_process_of(lock) == Some(true));
        // A device that isn't the file system's, as on btrfs.
        by_others
            || ours
                .iter()
                .any(|lock| held.is_process_of(lock) != Some(false))
    };
    match held.filter(is_by_holder) {
        Some(held) => Standing::Held(by(held)),
        None if !ours.is_empty() => Standing::Locked,
        None => match held.filter(|held| !locks.is_complete && held.is_running()) {
            Some(held) => Standing::MaybeHeld(by(held)),
            None => unlocked(content),
        },
    }
}

/// Who has the lock of a file that is known to be locked.
pub(super) fn holder(found: &Metadata, content: &Content) -> Holder {
    match standing(found, content, KernelLocks::read().as_ref()) {
        Standing::Held(holder) | Standing::MaybeHeld(holder) => holder,
        Standing::Locked => unknown_holder(),
        // The kernel doesn't tell, or not of a process outside of this one's container.
        Standing::Free | Standing::Kept(_) => named_holder(content).unwrap_or_else(unknown_holder),
    }
}

/// Who has the lock, as the file tells it.
pub(super) fn named_holder(content: &Content) -> Option<Holder> {
    Some(content.held()?.told(content.counter))
}

/// The locks of a file that are held, and those of files with the same number on other devices.
fn locks_of<'a>(
    found: &Metadata,
    locks: &'a KernelLocks,
) -> (Vec<&'a KernelLock>, Vec<&'a KernelLock>) {
    let lines = locks.of_inode(found.ino()).iter();
    let held = lines.filter(|lock| !lock.is_waiting);
    held.partition(|lock| lock.is_of(found.dev(), found.ino()))
}

/// Those who wait in the kernel. Ours don't: they are programs that lock such a file otherwise, or an earlier version.
fn waiters(found: &Metadata, locks: Option<&KernelLocks>) -> Vec<Waiter> {
    let Some(locks) = locks else {
        return Vec::new();
    };
    let lines = locks.of_inode(found.ino()).iter();
    let waiting = lines.filter(|lock| lock.is_waiting && lock.is_of(found.dev(), found.ino()));
    let waiter = |_| Waiter {
        party: None,
        wants: Wants::Exclusive,
        waited_for: None,
    };
    waiting.map(waiter).collect()
}

fn unlocked(content: &Content) -> Standing {
    match content.kept() {
        Duration::ZERO => Standing::Free,
        remaining => Standing::Kept(remaining),
    }
}

/// All files of locks, and some that are none.
fn files_below(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            // A part of a long name.
            if kind.is_dir() && entry.file_name().as_encoded_bytes().ends_with(b"~") {
                directories.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}

impl Standing {
    fn is_clear(&self) -> bool {
        !matches!(self, Standing::Locked | Standing::MaybeHeld(_))
    }
}

impl Look {
    fn told(self, key: &Key) -> Inspection {
        let (state, holders) = match self.standing {
            Standing::Free | Standing::MaybeHeld(_) => (LockState::Free, Vec::new()),
            Standing::Kept(remaining) => {
                // The file holds milliseconds, rounded up: no more than the holder asked for.
                let millis = remaining.as_millis().try_into().unwrap_or(u64::MAX);
                let remaining = Some(Duration::from_millis(millis));
                (LockState::Kept { remaining }, Vec::new())
            }
            Standing::Held(holder) => (LockState::Exclusive, vec![holder]),
            Standing::Locked => (LockState::Exclusive, vec![unknown_holder()]),
        };
        // An even counter is one above the last.
        let last = self
            .content
            .counter
            .saturating_sub(1 - self.content.counter % 2);
        Inspection {
            name: key.name().to_owned(),
            state,
            holders,
            waiters: self.waiters,
            last_token: Some(last).filter(|last| *last > 0),
        }
    }
}

/// A program that isn't ours.
fn unknown_holder() -> Holder {
    Holder {
        party: None,
        permits: 1,
        held_for: None,
        remaining: None,
        token: None,
    }
}

impl Held {
    fn told(&self, token: u64) -> Holder {
        Holder {
            party: Party::of(&self.holder),
            held_for: self.since.elapsed(),
            token: Some(token),
            ..unknown_holder()
        }
    }

    /// The process id, if it is one of this host, or of a container that has its name.
    fn pid_here(&self) -> Option<u32> {
        let party = Party::of(&self.holder)?;
        let system = rustix::system::uname();
        (party.host == system.nodename().to_string_lossy()).then_some(party.pid)
    }

    /// Whether the lock is that of the process; `None` when the process has a host of its own.
    fn is_process_of(&self, lock: &KernelLock) -> Option<bool> {
        Some(is_known_as(lock.pid, self.pid_here()?))
    }

    /// Whether its process lives, as far as this one can know.
    fn is_running(&self) -> bool {
        self.since.elapsed().is_some() && self.pid_here().is_some_and(is_alive)
    }
}

#[cfg(test)]
mod tests;
