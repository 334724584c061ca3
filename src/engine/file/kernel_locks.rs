//! Which files are locked, as the kernel tells it to those who ask without locking: `/proc/locks`.
//!
//! The kernel leaves out the locks of processes that the reader can't see: those outside of its container.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;

use rustix::process::{Pid, test_kill_process};

/// A line of `/proc/locks` about a lock on a whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelLock {
    /// As this process sees it.
    pub(super) pid: u32,
    /// That of the file system: some, such as btrfs, show another for their files.
    device: (u32, u32),
    inode: u64,
    /// Whether the process waits for it.
    pub(super) is_waiting: bool,
}

impl KernelLock {
    pub(super) fn is_of(&self, device: u64, inode: u64) -> bool {
        (self.device, self.inode) == (parts_of(device), inode)
    }

    /// Such a line is `1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF`, with `->` before the kind if it waits.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace().skip(1).peekable();
        let is_waiting = words.next_if_eq(&"->").is_some();
        if words.next()? != "FLOCK" {
            return None;
        }
        let (pid, file) = (words.nth(2)?, words.next()?);
        let mut file = file.split(':');
        let mut device = || u32::from_str_radix(file.next()?, 16).ok();
        Some(KernelLock {
            device: (device()?, device()?),
            inode: file.next()?.parse().ok()?,
            pid: pid.parse().ok()?,
            is_waiting,
        })
    }
}

/// As `/proc/locks` shows a device.
#[cfg(target_os = "linux")]
fn parts_of(device: u64) -> (u32, u32) {
    (rustix::fs::major(device), rustix::fs::minor(device))
}

/// There is no such file.
#[cfg(not(target_os = "linux"))]
fn parts_of(_device: u64) -> (u32, u32) {
    (0, 0)
}

/// The locks that this process may see.
#[derive(Debug)]
pub(super) struct KernelLocks {
    of_inodes: HashMap<u64, Vec<KernelLock>>,
    /// Whether nothing can have hidden a lock that was there all the time. The kernel tells a page at a time, and forgets
    /// where it was when a lock on a page before is released.
    pub(super) is_complete: bool,
}

impl KernelLocks {
    /// `None` where the kernel doesn't tell.
    pub(super) fn read() -> Option<Self> {
        /// Less than a page holds, whose last line may not have fit.
        const PAGE: usize = 4096 - 256;
        // With room at once: into an empty vector a few bytes are read first, and what changes between two reads is missed.
        let mut text = Vec::with_capacity(16 * PAGE);
        let mut file = File::open("/proc/locks").ok()?;
        file.read_to_end(&mut text).ok()?;
        let is_complete = text.len() < PAGE;
        let text = String::from_utf8_lossy(&text);
        let mut of_inodes: HashMap<_, Vec<_>> = HashMap::new();
        for lock in text.lines().filter_map(KernelLock::parse) {
            of_inodes.entry(lock.inode).or_default().push(lock);
        }
        Some(KernelLocks {
            of_inodes,
            is_complete,
        })
    }

    /// Those of files with this number, on any device.
    pub(super) fn of_inode(&self, inode: u64) -> &[KernelLock] {
        self.of_inodes.get(&inode).map_or(&[], Vec::as_slice)
    }
}

/// Whether there is such a process, as this one sees it.
pub(super) fn is_alive(pid: u32) -> bool {
    let pid = pid.try_into().ok().and_then(Pid::from_raw);
    // Without the right to signal it there is one.
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Whether the process that is `outer` for this one calls itself `pid`: it may be in a container.
pub(super) fn is_known_as(outer: u32, pid: u32) -> bool {
    if outer == pid {
        return true;
    }
    let status = fs::read_to_string(format!("/proc/{outer}/status")).unwrap_or_default();
    let names = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let mut names = names.unwrap_or_default().split_ascii_whitespace();
    names.any(|name| name.parse() == Ok(pid))
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_os = "linux")]
    use std::os::unix::fs::MetadataExt;

    #[cfg(target_os = "linux")]
    #[test]
    fn lines_about_whole_files_are_understood() {
        let lock = KernelLock::parse("1: FLOCK  ADVISORY  WRITE 4711 fe:0a:1234 0 EOF");
        let mut lock = lock.expect("it is one");
        assert_eq!((lock.pid, lock.is_waiting), (4711, false));
        assert!(lock.is_of(rustix::fs::makedev(0xfe, 0x0a), 1234));
        lock.is_waiting = true;
        let waiting = KernelLock::parse("1: -> FLOCK  ADVISORY  WRITE 4711 fe:0a:1234 0 EOF");
        assert_eq!(waiting, Some(lock));
        for other in [
            "",
            "1:",
            "1: FLOCK ADVISORY WRITE",
            "2: POSIX  ADVISORY  READ 4711 fe:00:1234 0 EOF",
            "3: OFDLCK ADVISORY  WRITE -1 fe:00:1234 0 EOF",
            "4: FLOCK  ADVISORY  WRITE 4711 <none>:0 0 EOF",
        ] {
            assert_eq!(KernelLock::parse(other), None, "{other:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn locked_file_is_listed_with_its_process() {
        let file = tempfile::tempfile().unwrap();
        let found = file.metadata().unwrap();
        let holders = || {
            let locks = KernelLocks::read().unwrap();
            let locks = locks.of_inode(found.ino()).iter();
            let mut locks = locks.filter(|lock| lock.is_of(found.dev(), found.ino()));
            (
                locks.next().map(|lock| lock.pid),
                locks.next().map(|lock| lock.pid),
            )
        };
        assert_eq!(holders(), (None, None));
        file.lock().unwrap();
        assert_eq!(holders(), (Some(std::process::id()), None));
    }

    #[test]
    fn processes_that_live_are_known() {
        let me = std::process::id();
        assert!(is_alive(me) && is_known_as(me, me));
        assert!(!is_alive(0) && !is_alive(u32::MAX) && !is_alive(i32::MAX as u32));
        assert!(!is_known_as(me, u32::MAX));
    }
}
