//! Presences: FIFOs in the directory, each of which one process has open for reading. Others write to one to wake it,
//! and see by the kernel whether it lives: its end closes with the process, in whatever way that ends.
//!
//! What always holds here: a presence that can be seen at its path is open, or will
//! never be again, because it gets its name when it is open, and no name is used twice. So whoever finds one closed may
//! unlink it. Nothing here waits but `sleep`: no FIFO is opened without `O_NONBLOCK`.
//!
//! A copy of a presence's descriptor keeps it open, also in a child that was forked off.
//!
//! Tested on Linux only.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::{fmt, os::unix::fs::FileTypeExt, path::PathBuf, sync::Arc, time::Duration};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, FileType, OFlags, RenameFlags, Timestamps, UTIME_NOW, futimens, statat};
use rustix::io::Errno;

use super::create::{Workshop, give, parse_id};
use super::dir::{Dir, Identity, is_missing};
use super::platform;
use crate::base::sys::{self, time};
use crate::{base::Process, engine::rules::PresenceId};

const PREFIX: &str = ".door-";
/// Some systems don't sleep for longer at a time.
const LONGEST_POLL: Duration = Duration::from_secs(86_400);

/// A presence of this process, which is open. It is unlinked and closed when this is dropped.
#[derive(Debug)]
pub(super) struct Presence {
    file: File,
    id: PresenceId,
    dir: Arc<Dir>,
    /// By which others find it, as long as the directory is where it was.
    path: PathBuf,
    identity: Identity,
    /// A forked child has a copy of this, and leaves its parent's presence where it is.
    process: Process,
}

/// The other end of somebody's presence, which tells when that closes.
#[derive(Debug)]
pub(super) struct Watched {
    id: PresenceId,
    file: File,
}

/// Why a sleep ended: neither is set when the time was over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Woken {
    /// Somebody has written to the own presence.
    pub(super) notified: bool,
    /// One of those that are watched is gone.
    pub(super) ended: bool,
}

/// It is which presence it is, in all directories and at all times.
impl PresenceId {
    fn new() -> Self {
        PresenceId(sys::random_uuid().as_u128())
    }

    /// `None` for what no presence is called.
    pub(super) fn parse(text: &str) -> Option<Self> {
        parse_id(text).map(PresenceId)
    }

    fn name(self) -> String {
        format!("{PREFIX}{self}")
    }
}

impl fmt::Display for PresenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Presence {
    pub(super) fn make(dir: &Arc<Dir>) -> io::Result<Self> {
        let id = PresenceId::new();
        let shop = Workshop::open(dir)?;
        platform::make_fifo(shop.dir(), shop.dir().path(), &shop.name)?;
        let made = open_draft(dir, &shop).and_then(|opened| {
            shop.publish(id.name().as_ref(), RenameFlags::empty())?;
            Ok(opened)
        });
        if made.is_err() {
            // What failed before says more.
            let _ = shop.dir().remove(&shop.name);
        }
        let (file, identity) = made?;
        Ok(Presence {
            file,
            id,
            dir: dir.clone(),
            path: dir.path().join(id.name()),
            identity,
            process: Process::current(),
        })
    }

    pub(super) fn id(&self) -> PresenceId {
        self.id
    }

    /// A copy of it, in whatever process, keeps the presence open.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// False when somebody has removed it: then others take its process for dead.
    pub(super) fn is_at_its_path(&self) -> io::Result<bool> {
        self.identity.is_at(&self.path)
    }

    /// Has it look new to programs that remove what is old.
    pub(super) fn touch(&self) -> io::Result<()> {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        Ok(futimens(&self.file, &times)?)
    }

    /// Forgets who has written to it until now. What is written from then on is heard.
    pub(super) fn drain(&self) {
        // As much as a FIFO holds, lest somebody who notices without end keeps this here.
        const READS: usize = 16;
        let mut notices = [0; 4096];
        for _ in 0..READS {
            match (&self.file).read(&mut notices) {
                Ok(read) if read == notices.len() => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // Fewer than there was room for, or none.
                _ => return,
            }
        }
    }

    /// Ends the sleep of this process at this presence, or the next one.
    pub(super) fn notify_own(&self) -> io::Result<()> {
        write_notice(&self.file)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let name = self.id.name();
        let is_there = || self.identity.is_in(&*self.dir, name.as_ref());
        if !self.process.is_current() || !matches!(is_there(), Ok(true)) {
            return;
        }
        match self.dir.remove(&name) {
            Err(e) if !is_missing(&e) => log::warn!("can't remove {}: {e}", self.path.display()),
            _ => {}
        }
    }
}

impl Watched {
    /// `None`: it is gone.
    pub(super) fn open(dir: &Dir, id: PresenceId) -> io::Result<Option<Self>> {
        let found = find(dir, &id.name())?;
        Ok(found.map(|file| Watched { id, file }))
    }

    pub(super) fn id(&self) -> PresenceId {
        self.id
    }
}

/// Whether it is the name of a presence.
pub(super) fn is_presence(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .and_then(PresenceId::parse)
        .is_some()
}

/// Whether the process has ended whose presence this is. An error tells nothing about it.
///
/// Whoever writes to a presence has it open for a moment, so one that is gone may seem not to be meanwhile.
pub(super) fn is_gone(dir: &Dir, id: PresenceId) -> io::Result<bool> {
    Ok(Watched::open(dir, id)?.is_none())
}

/// Wakes whoever sleeps at that presence, if it is there.
pub(super) fn notify(dir: &Dir, id: PresenceId) -> io::Result<()> {
    let name = id.name();
    // Open for reading, too, it never raises the signal of a FIFO that nobody reads.
    let opened = match dir.open_file(&name, OFlags::RDWR, 0) {
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            dir.open_file(&name, OFlags::WRONLY, 0)
        }
        opened => opened,
    };
    match opened {
        Ok(presence) if is_fifo(&presence.metadata()?) => write_notice(&presence),
        Ok(_) => Ok(()),
        Err(e) if is_closed(&e) || is_missing(&e) => Ok(()),
        Err(e) if is_fifo_in(dir, &name)? => Err(e),
        Err(_) => Ok(()),
    }
}

/// Sleeps until somebody writes to `own`, one of those that are watched is gone, or the time is over. Who has written
/// until then is forgotten, so the caller looks afterwards at whatever it may have been about.
pub(super) fn sleep(
    own: &Presence,
    watched: &[Watched],
    timeout: Option<Duration>,
) -> io::Result<Woken> {
    // A duration past the end of the clock means for ever.
    let until = timeout.and_then(|timeout| time::now().checked_add(timeout));
    let mut events = Vec::with_capacity(1 + watched.len());
    events.push(PollFd::new(&own.file, PollFlags::IN));
    // What ends is reported also to those who ask for nothing.
    let ends = watched.iter();
    events.extend(ends.map(|end| PollFd::new(&end.file, PollFlags::empty())));
    loop {
        let left = until.map(|until| until.saturating_duration_since(time::now()));
        match poll(&mut events, left.map(timespec).as_ref()) {
            Ok(0) if left.is_none_or(|left| left > LONGEST_POLL) => {}
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    let notified = !events[0].revents().is_empty();
    let ended = events[1..].iter().any(|end| !end.revents().is_empty());
    if notified {
        own.drain();
    }
    Ok(Woken { notified, ended })
}

fn timespec(duration: Duration) -> Timespec {
    let duration = duration.min(LONGEST_POLL);
    Timespec::try_from(duration).expect("a day has fewer seconds than fit")
}

/// Open for both: one that only reads would find its end whenever nobody has it open to write.
fn open_draft(dir: &Dir, shop: &Workshop<'_>) -> io::Result<(File, Identity)> {
    let file = shop.dir().open_file(&shop.name, OFlags::RDWR, 0)?;
    // Some file systems have no rights.
    let _ = give(&file, &dir.metadata()?, 0o6);
    let identity = Identity::of(&file.metadata()?);
    Ok((file, identity))
}

/// A presence that its process has open. One that nobody has open is unlinked. An error tells nothing.
pub(super) fn find(dir: &Dir, name: &str) -> io::Result<Option<File>> {
    match dir.open_file(name, OFlags::WRONLY, 0) {
        Ok(file) => Ok(is_fifo(&file.metadata()?).then_some(file)),
        // So is a socket.
        Err(e) if is_closed(&e) && is_fifo_in(dir, name)? => {
            // Where users may not remove each other's files, its owner does.
            let _ = dir.remove(name);
            Ok(None)
        }
        Err(e) if !is_closed(&e) && is_fifo_in(dir, name)? => Err(e),
        Err(_) => Ok(None),
    }
}

/// A full FIFO wakes its reader as well, and one that nobody reads is gone.
fn write_notice(mut presence: &File) -> io::Result<()> {
    loop {
        match presence.write(b"!") {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if [ErrorKind::WouldBlock, ErrorKind::BrokenPipe].contains(&e.kind()) => {
                return Ok(());
            }
            written => return written.map(drop),
        }
    }
}

fn is_closed(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
}

fn is_fifo(found: &Metadata) -> bool {
    found.file_type().is_fifo()
}

fn is_fifo_in(dir: &Dir, name: &str) -> io::Result<bool> {
    match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(FileType::from_raw_mode(found.st_mode).is_fifo()),
        Err(e) if is_missing(&e.into()) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests;
