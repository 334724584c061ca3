//! How one owner comes to a lock of a directory: it asks, and sleeps in the kernel until it is told, or one ahead of it is gone.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::calls::{Ahead, Asked, Manner};
use super::files::Files;
use super::store::door::{Door, Watched, sleep};
use super::store::section::Haste;
use crate::base::clock::{Clock, Deadline};
use crate::engine::{Answer, Grant, Pace, Request, Unanswered, Wait};

/// How one owner comes to a lock of a directory.
pub(super) struct FileWait {
    files: Arc<Files>,
    clock: Arc<dyn Clock>,
    /// What it waits for since it last asked.
    ahead: Ahead,
    watched: Vec<Watched>,
    /// Whether one of those ahead may be gone.
    looks: bool,
    /// Whether it was told to look again, most likely because the lock is its own.
    is_told: bool,
    /// When the door was made to look new.
    touched: Instant,
}

/// So often a waiter looks although nothing woke it: one process may have made a change and died before it told of it, and
/// not be one that the waiter watches.
const LOOK: Duration = Duration::from_secs(1);

/// So much more seldom for each that waits ahead of it, so that they keep none from changing the file.
const LOOK_OF_EACH: Duration = Duration::from_millis(100);

/// So long a waiter stays awake before it sleeps, if few are ahead of it: most locks are held for less time than it takes to be
/// woken. It lets others run meanwhile.
const AWAKE: Duration = Duration::from_micros(100);
const FEW: u32 = 4;

/// What removes old files from a directory for temporary ones leaves those that are younger than days.
const TOUCH_EVERY: Duration = Duration::from_secs(3600);

/// So many of those that hold a lock together are watched. Of others the end is found by a look.
const MOST_WATCHED: usize = 64;

impl FileWait {
    pub(super) fn new(files: Arc<Files>, clock: Arc<dyn Clock>) -> Self {
        FileWait {
            files,
            clock,
            ahead: Ahead::default(),
            watched: Vec::new(),
            looks: false,
            is_told: false,
            touched: Instant::now(),
        }
    }

    /// Opens the doors of those ahead. False when one is gone, or can't be looked at.
    fn watch(&mut self) -> io::Result<bool> {
        let ahead = &self.ahead.doors;
        self.watched.retain(|one| ahead.contains(&one.id()));
        for door in ahead.iter().take(MOST_WATCHED) {
            if self.watched.iter().any(|one| one.id() == *door) {
                continue;
            }
            match Watched::open(&self.files.directory, *door)? {
                Some(watched) => self.watched.push(watched),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn sleep(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> io::Result<()> {
        let Some(door) = self.files.doors.of(request.owner) else {
            return Ok(());
        };
        // Whatever keeps it from being told.
        self.looks = true;
        if self.ahead.place < FEW && is_told_soon(&door)? {
            (self.looks, self.is_told) = (false, true);
            return Ok(());
        }
        if !self.watch()? {
            return Ok(());
        }
        let own = door.clone();
        let wake = Arc::new(move || _ = own.ring_own());
        let _registered = pace.until.cancel().map(|cancel| cancel.on_set(wake));
        let look = if pace.counted {
            pace.next_pause()
        } else {
            LOOK + LOOK_OF_EACH * self.ahead.place
        };
        let changes = self.ahead.changes.map(|at| at.since(self.clock.now()));
        let most = look
            .min(changes.unwrap_or(Duration::MAX))
            .min(pace.until.remaining());
        let woken = sleep(&door, &self.watched, Some(most))?;
        self.looks = woken.ended || !woken.rung;
        self.is_told = woken.rung;
        if woken.ended {
            self.watched.clear();
        }
        if self.touched.elapsed() > TOUCH_EVERY {
            self.touched = Instant::now();
            door.touch()?;
        }
        Ok(())
    }
}

/// Whether somebody rings at a door while its owner stays awake.
fn is_told_soon(door: &Door) -> io::Result<bool> {
    let begun = Instant::now();
    while begun.elapsed() < AWAKE {
        if sleep(door, &[], Some(Duration::ZERO))?.rung {
            return Ok(true);
        }
        thread::yield_now();
    }
    Ok(false)
}

impl Wait for FileWait {
    fn ask(
        &mut self,
        request: Request<'_>,
        pace: Option<&mut Pace<'_>>,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered> {
        let since = self.clock.now();
        let waits = pace.is_some();
        // An owner that was in the queue may still be there.
        let manner = Manner {
            waits,
            looks: !waits || self.looks,
            haste: if self.is_told {
                Haste::Urgent
            } else {
                Haste::Patient
            },
        };
        self.is_told = false;
        let asked = self.files.acquire(request, manner, deadline);
        Ok(match asked.map_err(Unanswered::sent)? {
            Asked::Granted { token, value } => Answer::Granted(Grant {
                token,
                value,
                since,
            }),
            Asked::Taken(mut ahead) => {
                self.looks = false;
                let holder = ahead.holder.take();
                self.ahead = ahead;
                Answer::Taken {
                    is_queued: waits,
                    holder,
                }
            }
            Asked::Broken => Answer::Broken,
        })
    }

    fn wait(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> Option<Grant> {
        if let Err(e) = self.sleep(request, pace) {
            log::debug!(
                "can't wait for {:?} in the kernel: {e}",
                request.key().name()
            );
            let pause = pace.next_pause();
            pace.until.sleep(pause);
        }
        None
    }
}
