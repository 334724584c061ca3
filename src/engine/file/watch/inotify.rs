//! A watch of a file by the kernel's inotify.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use crate::base::clock::Deadline;

/// Sleeps until something happens to a file, or until it is woken.
#[derive(Debug)]
pub(in super::super) struct Watch {
    inotify: OwnedFd,
    /// Readable once somebody has cancelled the wait.
    wake: Arc<OwnedFd>,
    watched: Option<i32>,
}

/// How many there are in this process.
static WATCHES: AtomicUsize = AtomicUsize::new(0);

/// Of the 128 instances that a user may have by default, other programs need some, too.
const MOST: usize = 32;

impl Watch {
    /// `None` when there is none to be had.
    pub(super) fn new() -> Option<Self> {
        let counted = Counted::new()?;
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
        std::mem::forget(counted);
        Some(Watch {
            inotify,
            wake: Arc::new(wake),
            watched: None,
        })
    }

    /// From now on it is woken by what happens to the file at `path`, and only by that.
    pub(in super::super) fn point_at(&mut self, path: &Path) -> io::Result<()> {
        // The holder unlocks before it closes, and what has taken the place of a file has changed its links.
        let events = WatchFlags::CLOSE_WRITE | WatchFlags::ATTRIB | WatchFlags::MOVE_SELF;
        self.clear();
        let flags = events | WatchFlags::DONT_FOLLOW;
        self.watched = Some(inotify::add_watch(&self.inotify, path, flags)?);
        Ok(())
    }

    /// Sleeps for so long, or until something happens, or until `until` is over.
    pub(in super::super) fn sleep(&self, duration: Duration, until: &Deadline) {
        let wake = self.wake.clone();
        let wake = move || _ = rustix::io::write(&*wake, &1_u64.to_ne_bytes());
        let _registered = until.cancel().map(|cancel| cancel.on_set(Arc::new(wake)));
        let duration = duration.min(until.remaining());
        let timeout = Timespec {
            tv_sec: duration.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: duration.subsec_nanos().into(),
        };
        let mut events = [self.inotify.as_fd(), self.wake.as_fd()]
            .map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN));
        // Whatever it says, the waiter looks again.
        let _ = poll(&mut events, Some(&timeout));
        let [of_file, of_wake] = events.map(|event| !event.revents().is_empty());
        if of_file {
            forget_events(&self.inotify);
        }
        if of_wake {
            forget_events(&self.wake);
        }
    }

    /// Watches nothing any more.
    pub(super) fn clear(&mut self) {
        if let Some(watched) = self.watched.take() {
            // It fails when the file is gone, and the kernel has removed the watch.
            let _ = inotify::remove_watch(&self.inotify, watched);
        }
        // Also a wake that came when the wait was over.
        forget_events(&self.inotify);
        forget_events(&self.wake);
    }
}

/// What is left of more events than these only wakes the waiter once more.
fn forget_events(of: &OwnedFd) {
    let mut events = [MaybeUninit::<u8>::uninit(); 4096];
    let _ = rustix::io::read(of, &mut events);
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(Counted);
    }
}

/// One of those that are allowed.
struct Counted;

impl Counted {
    fn new() -> Option<Self> {
        let more = |count| (count < MOST).then_some(count + 1);
        let counted = WATCHES.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        counted.is_ok().then_some(Counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        WATCHES.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::cancel::Cancel;
    use std::fs::{self, File};
    use std::thread;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(3600);

    /// Whether the watch sleeps until `end` has been called.
    #[track_caller]
    fn wakes_by(watch: &Watch, until: &Deadline, end: impl FnOnce() + Send) {
        let begun = Instant::now();
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| watch.sleep(LONG, until));
            thread::sleep(Duration::from_millis(50));
            assert!(!sleeper.is_finished());
            end();
            sleeper.join().expect("it wakes");
        });
        assert!(begun.elapsed() < LONG / 2);
    }

    #[test]
    fn what_happens_to_the_file_ends_a_sleep() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let file = File::create(&path).unwrap();
        let mut watch = Watch::new().unwrap();
        watch.point_at(&path).unwrap();
        wakes_by(&watch, &Deadline::NEVER, || drop(file));
        let other = directory.path().join("other");
        fs::write(&other, "").unwrap();
        // It is still open somewhere.
        let _open = File::open(&path).unwrap();
        wakes_by(&watch, &Deadline::NEVER, || {
            fs::rename(&other, &path).unwrap();
        });
        watch.point_at(&path).unwrap();
        wakes_by(&watch, &Deadline::NEVER, || {
            fs::rename(&path, &other).unwrap()
        });
        assert!(watch.point_at(&path).is_err());
    }

    #[test]
    fn cancel_and_deadline_end_a_sleep() {
        let directory = tempfile::tempdir().unwrap();
        let mut watch = Watch::new().unwrap();
        watch.point_at(directory.path()).unwrap();
        let cancel = Cancel::default();
        wakes_by(&watch, &Deadline::NEVER.or(&cancel), || cancel.wake());
        wakes_by(&watch, &Deadline::NEVER.or(&cancel), || cancel.set());
        watch.sleep(LONG, &Deadline::after(Duration::from_millis(5)));
    }

    #[test]
    fn events_from_before_are_forgotten_with_their_file() {
        let directory = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| directory.path().join(name));
        for path in [&first, &second] {
            fs::write(path, "").unwrap();
        }
        let mut watch = Watch::new().unwrap();
        watch.point_at(&first).unwrap();
        fs::write(&first, "").unwrap();
        watch.point_at(&second).unwrap();
        wakes_by(&watch, &Deadline::NEVER, || {
            fs::write(&first, "").unwrap();
            fs::write(&second, "").unwrap();
        });
    }
}
