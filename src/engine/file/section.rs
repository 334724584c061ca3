//! The state file of a name: where it is, and the sections in which it is read and changed, one at a time, of all
//! threads of all processes.
//!
//! What always holds here: whoever is in a section has the file locked by flock(2), no other thread of this process is
//! in one of the same `NameFile`, and the file was at its path when the section began. A section is unlocked
//! explicitly, because a child that is being spawned has a copy of the descriptor for a moment.
//!
//! A section lasts for some system calls, and is never held while a process is forked by the thread that is in it: the
//! lock belongs to the open file, which both then have, and the child would unlock what its parent locked. If another
//! thread forks meanwhile, then the child never leaves that section, and opens files of its own. The lock ends when the
//! parent leaves it.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{sync::Arc, time::Duration};

use super::create::open_or_create;
use super::dir::{Dir, Identity};
use super::page::{self, BootId, Extent, Found};
use super::text::{Written, written_of};
use crate::base::sys::sync::{Mutex, MutexGuard};
use crate::base::{Backoff, Deadline, Key, Namespace, Token, percent, sys::time};

/// An injective name, also where the file system folds case: `namespace+name.lock`, where all but
/// `a-z 0-9 . _ -` is `%xx`, and where parts longer than a file name may be are directories.
pub(super) fn file_name(key: &Key) -> PathBuf {
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

/// Beside it: what the lock protects.
pub(super) fn value_name(key: &Key) -> PathBuf {
    file_name(key).with_extension("value")
}

/// Beside it: the presences of those who wait until that changes.
pub(super) fn watches_name(key: &Key) -> PathBuf {
    file_name(key).with_extension("watches")
}

/// The journal of a delay queue.
#[cfg(feature = "delay")]
pub(super) fn queue_name(key: &Key) -> PathBuf {
    file_name(key).with_extension("tasks")
}

/// The name whose file this is, if it is one of the namespace.
pub(super) fn key_of(namespace: &Namespace, path: &Path) -> Option<Key> {
    let parts: Option<Vec<_>> = path.iter().map(|part| part.to_str()).collect();
    let parts = parts?;
    let (last, before) = parts.split_last()?;
    let mut text = String::new();
    for part in before {
        text.push_str(part.strip_suffix('~')?);
    }
    text.push_str(last.strip_suffix(".lock")?);
    let (found, name) = text.split_once('+')?;
    if unescaped(found)? != namespace.as_str() {
        return None;
    }
    let key = Key::new(namespace, &unescaped(name)?).ok()?;
    // No other spelling of it is its file.
    (file_name(&key) == path).then_some(key)
}

fn unescaped(text: &str) -> Option<String> {
    String::from_utf8(percent::unescaped(text)?).ok()
}

/// In lower case, as is all that stands in it unescaped.
fn escaped(text: &str) -> String {
    let is_plain = |_, byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
    percent::escaped(text, is_plain).to_ascii_lowercase()
}

/// How long a file that is locked is tried again at once, before its lock is slept for: most sections end within some
/// microseconds. On a busy machine a thread that lets others run once may be away for milliseconds.
const AT_ONCE: Duration = Duration::from_micros(100);
const SHORTEST_SLEEP: Duration = Duration::from_micros(20);

/// How long it is slept for at most between two tries.
#[derive(Clone, Copy, Debug)]
pub(super) enum LockMode {
    /// Others wait for what this caller does.
    Urgent,
    /// Of a thousand that want to wait for one name all get their turn sooner if they don't all try at once.
    Patient,
}

impl LockMode {
    fn sleeps(self) -> Backoff {
        let cap = match self {
            LockMode::Urgent => Duration::from_micros(200),
            LockMode::Patient => Duration::from_millis(20),
        };
        Backoff {
            base: SHORTEST_SLEEP,
            cap,
            jitter: 0.5,
        }
    }
}

/// An open state file.
#[derive(Debug)]
pub(super) struct NameFile {
    file: File,
    root: Arc<Dir>,
    path: PathBuf,
    identity: Identity,
    /// The kernel's lock doesn't keep threads apart that share an open file.
    threads: Mutex<()>,
    pub(super) spin_budget: SpinBudget,
}

/// Nobody else reads or changes the state until this is dropped.
#[derive(Debug)]
pub(super) struct Section<'a> {
    of: &'a NameFile,
    /// Where the text stands that was read last.
    extent: Option<Extent>,
    // Dropped after the file is unlocked: it is a field.
    _threads: MutexGuard<'a, ()>,
}

impl NameFile {
    /// Makes it if it isn't there.
    pub(super) fn open(root: &Arc<Dir>, below: &Path) -> io::Result<Self> {
        let (file, found) = open_or_create(root, below)?;
        Ok(NameFile {
            file,
            root: root.clone(),
            path: root.path().join(below),
            identity: Identity::of(&found),
            threads: Mutex::default(),
            spin_budget: SpinBudget::default(),
        })
    }

    /// `None`: another file is at its path by now, or none, and this one says nothing any more. The error is of the
    /// kind `TimedOut` if others were in it until the time was over.
    pub(super) fn section(
        &self,
        lock_mode: LockMode,
        deadline: &Deadline,
    ) -> io::Result<Option<Section<'_>>> {
        let section = self.enter(lock_mode, deadline)?;
        Ok(self.is_at_its_path()?.then_some(section))
    }

    /// Whether those who open its path now have this file.
    pub(super) fn is_at_its_path(&self) -> io::Result<bool> {
        self.identity.is_at(&self.path)
    }

    /// The directory in which it was opened.
    pub(super) fn root(&self) -> &Arc<Dir> {
        &self.root
    }

    /// For those who look at it without locking it.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Notes that the owner of a lease, which was given to it, has seen it.
    pub(super) fn note_seen(&self, token: Token) -> io::Result<()> {
        page::note_seen(&self.file, token.number)
    }

    /// Tries at least once, also when the deadline is over. One that is over at once is too short if others are in a
    /// section at that moment, which says nothing about the lock.
    fn enter(&self, lock_mode: LockMode, deadline: &Deadline) -> io::Result<Section<'_>> {
        let (begun, mut sleeps) = (time::now(), lock_mode.sleeps().waits());
        loop {
            if let Some(section) = self.try_enter()? {
                return Ok(section);
            }
            if time::since(begun) < AT_ONCE {
                time::yield_now();
            } else if deadline.is_over() {
                return Err(ErrorKind::TimedOut.into());
            } else {
                let sleep = sleeps.next().unwrap_or_default();
                time::sleep(sleep.min(deadline.remaining()));
            }
        }
    }

    fn try_enter(&self) -> io::Result<Option<Section<'_>>> {
        let Some(threads) = self.threads.try_lock() else {
            return Ok(None);
        };
        match self.file.try_lock() {
            Ok(()) => Ok(Some(Section {
                of: self,
                extent: None,
                _threads: threads,
            })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }
}

impl Section<'_> {
    /// `None`: the file holds something else.
    pub(super) fn read(&mut self) -> io::Result<Option<Found>> {
        let found = page::read(&self.of.file, &BootId::current())?;
        self.extent = found.as_ref().map(|(_, extent)| *extent);
        Ok(found.map(|(found, _)| found))
    }

    /// After an error the file has either text, which another `read` tells.
    ///
    /// # Panics
    ///
    /// If nothing was read in this section that it may replace.
    pub(super) fn write(&mut self, text: &str) -> io::Result<()> {
        let now = self.extent.take();
        let now = now.expect("what is replaced was read in this section");
        let written = page::write(&self.of.file, &BootId::current(), text, &now)?;
        self.extent = Some(written);
        Ok(())
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        if let Err(e) = self.of.file.unlock() {
            log::warn!("can't unlock {}: {e}", self.of.path.display());
        }
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
pub(super) fn read_unlocked(file: &File) -> io::Result<Option<Written>> {
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

/// What became of the last waiters of this process that stayed awake for a lock. Where locks are held for long it
/// doesn't pay; then one waiter in some does it, to find out when that has changed.
#[derive(Debug, Default)]
pub(super) struct SpinBudget {
    /// How many times one had to sleep in the end, or at once, since one was served in time.
    in_vain: AtomicU32,
}

/// So many in a row may have been unlucky.
const UNLUCKY: u32 = 2;

/// After that, one in so many stays awake.
const SELDOM: u32 = 16;

impl SpinBudget {
    pub(super) fn pays(&self) -> bool {
        let in_vain = self.in_vain.load(Ordering::Relaxed);
        in_vain < UNLUCKY || in_vain.is_multiple_of(SELDOM)
    }

    /// One was served while it was awake.
    pub(super) fn served(&self) {
        // Most are: what needn't change isn't written.
        if self.in_vain.load(Ordering::Relaxed) > 0 {
            self.in_vain.store(0, Ordering::Relaxed);
        }
    }

    /// One sleeps.
    pub(super) fn sleeps(&self) {
        self.in_vain.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
