//! How one owner comes to a lock of a directory: it asks, and sleeps in the kernel until it is told, or one ahead of it
//! is gone.

use std::time::{Duration, Instant};
use std::{io, sync::Arc};

use super::change::{Ahead, Manner};
use super::presence::{Watched, sleep};
use super::section::{LockMode, NameFile, read_whole};
use super::text::{Written, parse};
use super::{files::Files, page::Peek};
use crate::base::{BootClock, Clock, Deadline, Mode, Token, sys::time};
use crate::engine::rules::{EntryState, Values};
use crate::engine::{Answer, Failed, Grant, Pace, Request, Wait};

/// How one owner comes to a lock of a directory.
pub(super) struct FileWait {
    files: Arc<Files>,
    /// What it waits for since it last asked.
    ahead: Ahead,
    watched: Vec<Watched>,
    /// Whether one of those ahead may be gone.
    looks: bool,
    /// Whether it was told to look again, most likely because the lock is its own.
    is_told: bool,
    /// Whether its last question has no answer: what it is told, and when it looks, comes from one before that.
    is_unanswered: bool,
    /// When the presence was made to look new.
    touched: Instant,
}

/// So often a waiter looks although nothing woke it: one process may have made a change and died before it told of it,
/// and not be one that the waiter watches.
const LOOK: Duration = Duration::from_secs(1);

/// A waiter looks this much later for each that waits ahead of it. A look locks the file and reads the whole line, and
/// a line of a thousand must not keep a release from the file.
const LOOK_OF_EACH: Duration = LOOK;

/// How long a waiter sleeps at most before it looks.
fn look_every(place: u32) -> Duration {
    LOOK + LOOK_OF_EACH * place
}

/// So long a waiter stays awake before it sleeps, if few are ahead of it and this paid for others: many locks are held
/// for less time than it takes to be woken. It lets others run meanwhile.
const AWAKE: Duration = Duration::from_micros(400);
const FEW: u32 = 4;

/// What removes old files from a directory for temporary ones leaves those that are younger than days.
const TOUCH_EVERY: Duration = Duration::from_secs(3600);

/// So many of those that hold a lock together are watched. Of others the end is found by a look.
const MOST_WATCHED: usize = 64;

impl FileWait {
    pub(super) fn new(files: Arc<Files>) -> Self {
        FileWait {
            files,
            ahead: Ahead::default(),
            watched: Vec::new(),
            looks: false,
            is_told: false,
            is_unanswered: false,
            touched: time::now(),
        }
    }

    /// Opens the presences of those ahead. False when one is gone, or can't be looked at.
    fn watch(&mut self) -> io::Result<bool> {
        let ahead = &self.ahead.presences;
        self.watched.retain(|one| ahead.contains(&one.id()));
        let root = self.files.root.held()?;
        for presence in ahead {
            if self.watched.len() >= MOST_WATCHED {
                break;
            }
            if self.watched.iter().any(|one| one.id() == *presence) {
                continue;
            }
            match Watched::open(&root, *presence)? {
                Some(watched) => self.watched.push(watched),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Waits until the lock is granted, or it is time to ask.
    fn await_grant(
        &mut self,
        request: Request<'_>,
        pace: &mut Pace<'_>,
    ) -> io::Result<Option<Grant>> {
        let look = self.next_look(pace);
        if request.claim.is_multi() || request.claim.mode == Mode::Task {
            // It is granted one name after the other, and has to ask for all; or it is told to ask.
            self.sleep(request, pace, &look)?;
            return Ok(None);
        }
        let Ok(file) = self.files.name(request.key()) else {
            // The next question says what is wrong with it.
            return Ok(None);
        };
        let mut has_slept = false;
        loop {
            let seen = match self.stay_awake(&file, request, pace)? {
                Seen::Waits => {
                    has_slept = true;
                    self.sleep(request, pace, &look)?;
                    if self.looks || pace.until.is_over() {
                        return Ok(None);
                    }
                    self.look(&file, request)?
                }
                given_or_else => given_or_else,
            };
            match seen {
                // Until it slept, it had asked just now.
                Seen::Given(_) if has_slept && !self.is_in_sight(&file, request)? => {
                    return Ok(None);
                }
                Seen::Given(token) => return self.take(&file, request, token),
                Seen::Waits => {}
                Seen::Else => {
                    self.is_told = true;
                    return Ok(None);
                }
            }
        }
    }

    /// Looks at the file, again and again, for as long as it pays.
    fn stay_awake(
        &self,
        file: &NameFile,
        request: Request<'_>,
        pace: &Pace<'_>,
    ) -> io::Result<Seen> {
        if self.ahead.place >= FEW || !file.spin_budget.pays() {
            file.spin_budget.sleeps();
            return Ok(Seen::Waits);
        }
        let (begun, most) = (time::now(), AWAKE.min(pace.until.remaining()));
        let mut page = Peek::new();
        while time::since(begun) < most {
            if let Some(text) = page.changed(file.file())? {
                match parse(&text).map_or(Seen::Else, |written| Seen::by(&written, request)) {
                    Seen::Waits => {}
                    seen => {
                        if let Seen::Given(_) = seen {
                            file.spin_budget.served();
                        }
                        return Ok(seen);
                    }
                }
            }
            time::yield_now();
        }
        file.spin_budget.sleeps();
        Ok(Seen::Waits)
    }

    /// Looks once, also for those ahead: they may be others by now.
    fn look(&mut self, file: &NameFile, request: Request<'_>) -> io::Result<Seen> {
        let Some(written) = read_whole(file.file())? else {
            return Ok(Seen::Else);
        };
        let seen = Seen::by(&written, request);
        if let Seen::Waits = seen {
            self.ahead = Ahead::of(request, &written.table(request.key()));
        }
        Ok(seen)
    }

    /// Whether others see that it has the lock: the file and its presence may have been removed meanwhile. If not, it
    /// asks.
    fn is_in_sight(&self, file: &NameFile, request: Request<'_>) -> io::Result<bool> {
        let Some(presence) = self.files.presences.of(request.owner) else {
            return Ok(false);
        };
        Ok(file.is_at_its_path()? && presence.is_at_its_path()?)
    }

    /// Takes the lease that was given to it. `None`: it has to ask.
    fn take(
        &self,
        file: &NameFile,
        request: Request<'_>,
        token: Token,
    ) -> io::Result<Option<Grant>> {
        if request.claim.mode == Mode::Exclusive {
            // The end of others abandons nothing.
            file.note_seen(token)?;
        }
        let since = BootClock.now();
        let value = (&*self.files).wanted(request);
        // Another question may have more luck with the value.
        Ok(value.ok().map(|value| Grant {
            token,
            value,
            since,
        }))
    }

    /// When it asks at the latest, however often it is told meanwhile.
    fn next_look(&self, pace: &mut Pace<'_>) -> Deadline {
        Deadline::after(if pace.counted {
            pace.next_pause()
        } else {
            look_every(self.ahead.place)
        })
    }

    fn sleep(&mut self, request: Request<'_>, pace: &Pace<'_>, look: &Deadline) -> io::Result<()> {
        // Whatever keeps it from being told.
        self.looks = true;
        let Some(presence) = self.files.presences.of(request.owner) else {
            return Ok(());
        };
        if !self.watch()? {
            return Ok(());
        }
        let own = presence.clone();
        let wake = Arc::new(move || _ = own.notify_own());
        let _registered = pace.until.cancel().map(|cancel| cancel.on_set(wake));
        let changes = self.ahead.changes.map(|at| at.since(BootClock.now()));
        let most = look
            .remaining()
            .min(changes.unwrap_or(Duration::MAX))
            .min(pace.until.remaining());
        let woken = sleep(&presence, &self.watched, Some(most))?;
        self.looks = woken.ended || !woken.notified || look.is_over();
        self.is_told = woken.notified;
        if woken.ended {
            self.watched.clear();
        }
        if time::since(self.touched) > TOUCH_EVERY {
            self.touched = time::now();
            presence.touch()?;
        }
        Ok(())
    }
}

/// What a waiter finds in the file without locking it.
enum Seen {
    /// It has the lock.
    Given(Token),
    Waits,
    /// It has to ask.
    Else,
}

impl Seen {
    /// What is written of an owner that waited.
    fn by(written: &Written, request: Request<'_>) -> Self {
        let mut entries = written.name.entries.iter();
        let own = entries.find(|one| one.is_of(request.owner));
        match own.map(|one| one.state) {
            Some(EntryState::Given(token)) => Seen::Given(token),
            Some(EntryState::Waits { .. }) => Seen::Waits,
            _ => Seen::Else,
        }
    }
}

impl Wait for FileWait {
    fn ask(
        &mut self,
        request: Request<'_>,
        pace: Option<&mut Pace<'_>>,
        deadline: &Deadline,
    ) -> Result<Answer, Failed> {
        let waits = pace.is_some();
        // An owner that was in the queue may still be there.
        let manner = Manner {
            waits,
            looks: !waits || self.looks,
            lock_mode: if self.is_told {
                LockMode::Urgent
            } else {
                LockMode::Patient
            },
        };
        self.is_told = false;
        let asked = match request.claim.mode {
            #[cfg(feature = "delay")]
            Mode::Task => self.files.ask_for_task(request, waits, deadline),
            _ => self.files.acquire(request, manner, deadline),
        };
        self.is_unanswered = asked.is_err();
        let (answer, ahead) = asked.map_err(Failed::sent)?;
        if let Answer::Taken { .. } = answer {
            self.looks = false;
            self.ahead = ahead;
        }
        Ok(answer)
    }

    fn wait(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> Option<Grant> {
        if !self.is_unanswered {
            match self.await_grant(request, pace) {
                Ok(grant) => return grant,
                Err(e) => log::debug!(
                    "can't wait for {:?} in the kernel: {e}",
                    request.key().name()
                ),
            }
        }
        let pause = pace.next_pause();
        pace.until.sleep(pause);
        None
    }
}

#[cfg(test)]
mod tests;
