//! A directory of locks, on a small disk of its own where this process may mount one.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crosslock::Locker;

use crate::names::NAMES;
use crate::own_mounts;

/// What the disk has room for. A run needs a part of it.
const SIZE: &str = "size=512k,nr_inodes=1k";

/// A directory of locks.
#[derive(Debug)]
pub(crate) struct Directory {
    locks: PathBuf,
    /// Where the disk is mounted; `None` if there is no disk that may be full.
    disk: Option<PathBuf>,
}

impl Directory {
    /// In another directory, which may be another user's.
    pub(super) fn start(dir: &Path) -> io::Result<Self> {
        let disk = dir.join("disk");
        fs::create_dir(&disk)?;
        let is_mounted = own_mounts::are_own() && mount(&disk);
        let locks = disk.join("locks");
        fs::create_dir(&locks)?;
        // For the user of the workers, and for the one who runs this.
        fs::set_permissions(&locks, Permissions::from_mode(0o777))?;
        Ok(Directory {
            locks,
            disk: is_mounted.then_some(disk),
        })
    }

    pub(super) fn url(&self) -> String {
        format!("file://{}", self.locks.display())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.locks
    }

    /// Whether there is a disk that can be filled.
    pub(crate) fn has_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// Leaves no room on the disk, nor for a file without contents, until what is given is dropped.
    pub(crate) fn fill(&self) -> io::Result<Full> {
        let disk = self.disk.as_ref().ok_or(ErrorKind::Unsupported)?;
        let full = Full(disk.join("full"));
        fs::create_dir(&full.0)?;
        let mut room = File::create(full.0.join("room"))?;
        until_full(|_| room.write_all(&[1; 1024]))?;
        until_full(|number| File::create(full.0.join(number.to_string())).map(drop))?;
        Ok(full)
    }

    /// What is there that should not be, when all processes have ended.
    pub(super) fn left(&self) -> Option<String> {
        // It removes what the dead have left.
        let locker = match Locker::open(&self.url()) {
            Ok(locker) => locker,
            Err(error) => return Some(error.to_string()),
        };
        let had = NAMES.into_iter().filter(|name| match locker.inspect(name) {
            Ok(seen) => !seen.holders.is_empty() || !seen.waiters.is_empty(),
            Err(_) => true,
        });
        let had: Vec<_> = had.collect();
        drop(locker);
        let files = fs::read_dir(&self.locks).into_iter().flatten().flatten();
        let files = files.map(|file| file.path());
        let may_stay = |path: &PathBuf| {
            let kind = path.extension().and_then(OsStr::to_str);
            matches!(kind, Some("lock" | "value"))
        };
        let others: Vec<_> = files.filter(|path| !may_stay(path)).collect();
        let is_clean = had.is_empty() && others.is_empty();
        (!is_clean).then(|| format!("files {others:?}, and somebody who has or wants {had:?}"))
    }

    /// The number that is stored for a name.
    pub(super) fn stored(&self, name: &str) -> u64 {
        let locker = Locker::open(&self.url()).expect("open the directory");
        let number = locker.mutex(name, 0u64).expect("a name");
        *number.lock().expect("nobody has it")
    }
}

/// So that the directory can be removed, in which it is.
impl Drop for Directory {
    fn drop(&mut self) {
        if let Some(disk) = &self.disk {
            let status = Command::new("umount").arg("--lazy").arg(disk).status();
            if !status.is_ok_and(|status| status.success()) {
                eprintln!("torture: {} stays mounted", disk.display());
            }
        }
    }
}

/// A disk that is full.
#[derive(Debug)]
pub(crate) struct Full(PathBuf);

impl Drop for Full {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("torture: the disk stays full: {error}");
        }
    }
}

fn until_full(fill: impl FnMut(u32) -> io::Result<()>) -> io::Result<()> {
    match (0..).try_for_each(fill) {
        Err(error) if error.kind() == ErrorKind::StorageFull => Ok(()),
        other => other,
    }
}

fn mount(disk: &Path) -> bool {
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", SIZE, "none"]).arg(disk);
    command.status().is_ok_and(|status| status.success())
}
