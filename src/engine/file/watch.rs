//! How a waiter sleeps until something happens to a file: the holder of its lock closes it, or dies, or another file takes
//! its place.
//!
//! The kernel tells of that by inotify. A user may have few of its instances, so a process uses a bounded number, and keeps
//! some for the waits that follow. Where there is none, as on systems without inotify, a waiter pauses and looks again.

use crate::base::sync::Mutex;

#[cfg(target_os = "linux")]
pub(super) use self::inotify::Watch;
#[cfg(not(target_os = "linux"))]
pub(super) use self::none::Watch;

#[cfg(target_os = "linux")]
mod inotify;
#[cfg(not(target_os = "linux"))]
mod none;

/// The watches that no waiter of a directory uses at the moment.
#[derive(Debug, Default)]
pub(super) struct Watches {
    idle: Mutex<Vec<Watch>>,
}

impl Watches {
    /// One that watches nothing yet; `None` when there is none to be had.
    pub(super) fn take(&self) -> Option<Watch> {
        let idle = self.idle.lock().pop();
        idle.or_else(Watch::new)
    }

    pub(super) fn give_back(&self, mut watch: Watch) {
        /// To close one takes the kernel milliseconds, which a loop of waits would feel.
        const MOST: usize = 2;
        watch.clear();
        let mut idle = self.idle.lock();
        if idle.len() < MOST {
            idle.push(watch);
        }
    }
}
