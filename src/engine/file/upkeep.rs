//! What is done for a directory as a whole: what ended processes have left is removed whenever somebody opens it,
//! together with some files of names that nobody has used for long; and a diagnosis says which promise doesn't hold
//! there.
//!
//! What always holds here: the file of a name is removed while it is locked. Whoever has it open finds at the next
//! change that it isn't at its path any more, and opens another. Its counter is a day behind the host's clock, from
//! which the next token comes.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, TryLockError};
use std::io::{self, ErrorKind};
use std::{os::unix::fs::MetadataExt, path::Path, sync::Arc, time::Duration};

use rustix::fs::{AtFlags, FileType, OFlags, StatVfs, fstatvfs, statat};

use super::create::{Workshop, draft_name, is_draft, open_there, unless_missing};
use super::dir::{Dir, Identity};
use super::page::{self, BootId};
use super::platform;
use super::presence::{Presence, find, is_gone, is_presence};
use super::text::written_of;
use super::watch;
use crate::base::sys::{self, time};
use crate::base::{Finding, token::host_micros};
use crate::engine::rules::NameState;

/// So many are looked at each time.
const LOOKS: usize = 64;

/// A name is idle when it wasn't taken for so long. A clock that is set back by less gives no token again.
const IDLE_MICROS: u64 = 86_400 * 1_000_000;

/// Removes what ended processes have left, and some of what nobody has used for long.
pub(super) fn sweep(dir: &Dir) -> io::Result<()> {
    let entries = dir.entries()?;
    remove_presences(dir, &entries)?;
    let is_list = |name: &OsStr| name.as_encoded_bytes().ends_with(b".watches");
    for (name, _) in entries.iter().filter(|(name, _)| is_list(name)) {
        // What can't be opened isn't this one's to remove.
        let _ = watch::remove_unused(dir, name);
    }
    remove_some(dir, &entries)
}

/// A draft that is older was left by a crash.
pub(super) const DRAFT_AGE: Duration = Duration::from_secs(60);

/// Unlinks the presences whose processes are gone, and what crashes have left of what was about to be made.
fn remove_presences(dir: &Dir, entries: &[(OsString, FileType)]) -> io::Result<()> {
    for (name, kind) in entries {
        let Some(name) = name.to_str() else { continue };
        let is_presence = *kind == FileType::Fifo && is_presence(name);
        if is_presence || (is_draft(name) && is_old(dir, name)) {
            remove_left(dir, name, *kind)?;
        }
    }
    Ok(())
}

/// Removes what nobody uses, if it can.
fn remove_left(dir: &Dir, name: &str, kind: FileType) -> io::Result<()> {
    match kind {
        FileType::Fifo => match find(dir, name) {
            // Of one that only others may open nothing is known.
            Err(e) if e.kind() != ErrorKind::PermissionDenied => return Err(e),
            _ => {}
        },
        // That of a name's file.
        FileType::RegularFile => unless_missing(dir.remove(name))?,
        FileType::Directory => Workshop::remove_left(dir, name),
        _ => {}
    }
    Ok(())
}

fn is_old(dir: &Dir, name: &str) -> bool {
    let Ok(found) = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return false;
    };
    let modified = u64::try_from(found.st_mtime).unwrap_or(0);
    time::wall() > Duration::from_secs(modified) + DRAFT_AGE
}

/// Begins anywhere, so that those who open the directory one after the other get to see them all.
fn remove_some(dir: &Dir, entries: &[(OsString, FileType)]) -> io::Result<()> {
    let is_name = |name: &OsStr| name.as_encoded_bytes().ends_with(b".lock") || is_queue(name);
    let names = entries
        .iter()
        .filter(|(name, kind)| kind.is_file() && is_name(name));
    let names: Vec<_> = names.map(|(name, _)| name).collect();
    if names.is_empty() {
        return Ok(());
    }
    let first = sys::random_below(names.len());
    for name in names
        .iter()
        .cycle()
        .skip(first)
        .take(LOOKS.min(names.len()))
    {
        remove_idle(dir, name)?;
    }
    Ok(())
}

fn remove_idle(dir: &Dir, name: &OsStr) -> io::Result<()> {
    // What can't be opened or locked at once isn't this one's to remove.
    let Ok(Some((file, found))) = open_there(dir, name, OFlags::RDWR) else {
        return Ok(());
    };
    if file.try_lock().is_err() {
        return Ok(());
    }
    let is_idle = match is_queue(name) {
        #[cfg(feature = "delay")]
        true => is_idle_queue(&file, &found)?,
        _ => is_idle(&file)?,
    };
    if Identity::of(&found).is_in(dir, name.as_ref())? && is_idle {
        // Where users may not remove each other's files, its owner does.
        let _ = dir.remove(name);
    }
    // A child that is being spawned has a copy of the descriptor for a moment.
    file.unlock()
}

/// Whether it is the name of a delay queue's journal.
fn is_queue(name: &OsStr) -> bool {
    cfg!(feature = "delay") && name.as_encoded_bytes().ends_with(b".tasks")
}

/// Its tokens come from the host's clock, too.
#[cfg(feature = "delay")]
fn is_idle_queue(file: &File, found: &Metadata) -> io::Result<bool> {
    let modified = u64::try_from(found.mtime())
        .unwrap_or(0)
        .saturating_mul(1_000_000);
    if modified >= host_micros().saturating_sub(IDLE_MICROS) {
        return Ok(false);
    }
    let mut journal = super::journal::Journal::default();
    Ok(journal.read(file).is_ok() && journal.tasks.is_unused())
}

fn is_idle(file: &File) -> io::Result<bool> {
    let found = page::read(file, &BootId::current())?;
    let written = found.and_then(|(found, _)| written_of(found));
    let before = host_micros().saturating_sub(IDLE_MICROS);
    Ok(written.is_some_and(|written| {
        // One that was never used has no counter: another process may be about to use it.
        written.name == NameState::default() && (1..before).contains(&written.counter)
    }))
}

pub(super) fn diagnose(directory: &Arc<Dir>, is_private: bool) -> io::Result<Vec<Finding>> {
    Ok(vec![
        rights(directory.path(), is_private, &directory.metadata()?),
        file_system(directory)?,
        locking(directory)?,
        room(&fstatvfs(directory)?),
        reboots(),
        presences(directory),
    ])
}

fn rights(directory: &Path, is_private: bool, found: &Metadata) -> Finding {
    const CHECK: &str = "directory";
    let (mode, owner) = (found.mode() & 0o7777, found.uid());
    let text = format!("{}, of user {owner}, mode {mode:04o}", directory.display());
    let may_write = |class: u32| mode >> class & 0o3 == 0o3;
    if is_private {
        let others = "each user has another `file:` directory: to share locks with other users, use \
                      file:///var/lock/<directory>";
        return Finding::fine(CHECK, format!("{text}: for this user alone; {others}"));
    }
    if !may_write(0) {
        let who = if may_write(3) {
            "shared with its group"
        } else {
            "for one user alone"
        };
        return Finding::fine(CHECK, format!("{text}: {who}"));
    }
    Finding::weak(
        CHECK,
        format!("{text}: every user of this host can write to it"),
        "every user of this host can take, free and forge every lock",
        "use a directory of a group, with mode 2770; or keep this one, if you trust all users",
    )
}

const FILE_SYSTEM: &str = "file system";

/// On which kind of file system a directory lies: whether other hosts have a say there.
fn file_system(directory: &Dir) -> io::Result<Finding> {
    let kind = platform::file_system(directory)?.and_then(kind_of);
    Ok(kind.map_or_else(unknown, judged))
}

fn unknown() -> Finding {
    Finding::unknown(
        FILE_SYSTEM,
        "unknown file system",
        "check that it is on a local disk: on a network file system two processes may hold a lock",
    )
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Local(&'static str),
    /// It is gone after a reboot.
    InMemory(&'static str),
    /// Of a container, which shares it with no other.
    Layer(&'static str),
    /// Other hosts, or a program, have a say.
    Network(&'static str),
}

fn kind_of(number: i128) -> Option<Kind> {
    Some(match number {
        0xef53 => Kind::Local("ext4"),
        0x5846_5342 => Kind::Local("xfs"),
        0x9123_683e => Kind::Local("btrfs"),
        0x2fc1_2fc1 => Kind::Local("zfs"),
        0xf2f5_2010 => Kind::Local("f2fs"),
        0xca45_1a4e => Kind::Local("bcachefs"),
        0x0102_1994 => Kind::InMemory("tmpfs"),
        0x8584_58f6 => Kind::InMemory("ramfs"),
        0x794c_7630 => Kind::Layer("overlayfs"),
        0x6969 => Kind::Network("nfs"),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => Kind::Network("smb"),
        0x6573_5546 => Kind::Network("fuse"),
        0x0102_1997 => Kind::Network("9p"),
        0x00c3_6400 => Kind::Network("ceph"),
        0x5346_414f | 0x6b41_4653 => Kind::Network("afs"),
        0x7375_7245 => Kind::Network("coda"),
        0x0bd0_0bd0 => Kind::Network("lustre"),
        0x0116_1970 => Kind::Network("gfs2"),
        0x7461_636f => Kind::Network("ocfs2"),
        0x786f_4256 => Kind::Network("vboxsf"),
        _ => return None,
    })
}

fn judged(kind: Kind) -> Finding {
    match kind {
        Kind::Local(name) => Finding::fine(FILE_SYSTEM, format!("{name}, on this host")),
        Kind::InMemory(name) => Finding::fine(
            FILE_SYSTEM,
            format!(
                "{name}: a reboot loses the counters, and fencing tokens continue from the clock"
            ),
        ),
        Kind::Layer(name) => Finding::fine(
            FILE_SYSTEM,
            format!(
                "{name}: the file system of a container, which isn't shared with other containers"
            ),
        ),
        Kind::Network(name) => Finding::weak(
            FILE_SYSTEM,
            format!("{name}, which other hosts or programs can change"),
            "two processes may hold a lock",
            "use a directory on a local disk, or redis:// for several hosts",
        ),
    }
}

/// Whether a directory has room for locks. A lock takes a file of one block.
fn room(found: &StatVfs) -> Finding {
    const CHECK: &str = "space";
    const LEAST: u64 = 1 << 20;
    const FEWEST: u64 = 100;
    let bytes = found.f_bavail.saturating_mul(found.f_frsize);
    // Some file systems have no number of files.
    let files = Some(found.f_favail).filter(|_| found.f_files > 0);
    let mut text = format!("{} MiB free", bytes >> 20);
    if let Some(files) = files {
        text += &format!(" and room for {files} files");
    }
    if bytes >= LEAST && files.is_none_or(|files| files >= FEWEST) {
        return Finding::fine(CHECK, text);
    }
    Finding::weak(
        CHECK,
        text,
        "a new lock needs a file and fails without room",
        "make room, or use another disk",
    )
}

/// Locks a file of its own twice.
fn locking(directory: &Dir) -> io::Result<Finding> {
    const CHECK: &str = "locking";
    let name = draft_name();
    let first = directory.create_file(&name, 0o600)?;
    let second = directory.open_file(&name, OFlags::RDONLY, 0);
    let tried = second.map(|second| (first.try_lock(), second.try_lock()));
    directory.remove(&name)?;
    Ok(match tried? {
        (Ok(()), Err(TryLockError::WouldBlock)) => {
            Finding::fine(CHECK, "a second process can't lock a locked file")
        }
        (Ok(()), Ok(())) => Finding::weak(
            CHECK,
            "two processes locked the same file",
            "locks don't exclude each other here",
            "use a directory on a local disk",
        ),
        (Err(e), _) | (_, Err(e)) => Finding::weak(
            CHECK,
            format!("a file can't be locked: {e}"),
            "no lock can be taken here",
            "use a directory on a local disk",
        ),
    })
}

/// A kept lock is kept by the clock of one boot.
fn reboots() -> Finding {
    const CHECK: &str = "reboots";
    if BootId::current().is_known() {
        return Finding::fine(CHECK, "the host's boot id is readable");
    }
    Finding::weak(
        CHECK,
        "the host's boot id isn't readable",
        "after a reboot, a lock that `at_least_for` keeps may stay taken too long, by up to the host's uptime before \
         the reboot",
        "mount /proc",
    )
}

/// Makes a presence, and sees that others find it open, and then gone.
fn presences(directory: &Arc<Dir>) -> Finding {
    const CHECK: &str = "holders";
    let tried = Presence::make(directory).and_then(|presence| {
        let id = presence.id();
        let is_open = !is_gone(directory, id)?;
        drop(presence);
        Ok(is_open && is_gone(directory, id)?)
    });
    match tried {
        Ok(true) => Finding::fine(CHECK, "a FIFO shows whether a holder's process is alive"),
        Ok(false) => Finding::weak(
            CHECK,
            "a FIFO doesn't show whether a holder's process is alive",
            "a lock may be taken from a live holder, or stay taken after its holder died",
            "use a directory on a local disk",
        ),
        Err(e) => Finding::weak(
            CHECK,
            format!("a FIFO can't be made: {e}"),
            "no lock can be taken here",
            "use a directory on a local disk that has room and that this user can write to",
        ),
    }
}

#[cfg(test)]
mod tests;
