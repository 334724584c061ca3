//! How one owner waits: it looks, and sleeps until something happens to the file that was taken.
//!
//! That file stays open, and is used for the next look: closing it would wake the others who wait.

use std::sync::Arc;
use std::time::Duration;

use super::files::{Files, Locking};
use super::opened::Opened;
use super::watch::Watch;
use crate::base::clock::Clock;
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::base::token::Token;
use crate::base::value::Stored;
use crate::engine::{Answer, Grant, Pace, Request, Unanswered, Wait};

/// How one owner waits.
pub(super) struct FileWait {
    files: Arc<Files>,
    clock: Arc<dyn Clock>,
    /// The file that was taken.
    taken: Option<Opened>,
    /// For how much longer it is kept, if nobody has it.
    kept: Option<Duration>,
    watch: Option<Watch>,
}

/// So often a waiter looks although it wasn't woken: a forked child may have a copy of an open file, and close it later than
/// the holder; and a network file system tells of nothing.
const LOOK: Duration = Duration::from_secs(1);

/// The file holds whole milliseconds.
const ROUNDING: Duration = Duration::from_millis(1);

impl FileWait {
    pub(super) fn new(files: Arc<Files>, clock: Arc<dyn Clock>) -> Self {
        FileWait {
            files,
            clock,
            taken: None,
            kept: None,
            watch: None,
        }
    }

    /// What an owner has that asks again.
    fn token(&self, request: Request<'_>) -> Option<Token> {
        let ours = self.files.held.lock();
        ours.get(request.owner).map(|held| held.token)
    }

    fn acquire(&mut self, request: Request<'_>, is_queued: bool) -> Result<Answer> {
        if let Some(token) = self.token(request) {
            return Ok(self.grant(token, self.files.value(request)?));
        }
        loop {
            let (files, contents) = match self.files.lock_free(request.claim, &mut self.taken)? {
                Locking::Free(files, contents) => (files, contents),
                Locking::Taken(kept) => {
                    self.kept = kept;
                    return Ok(Answer::Taken {
                        is_queued,
                        holder: None,
                    });
                }
            };
            // Read first: what fails leaves the lock as it was.
            let value = self.files.value(request)?;
            let taken = self.files.take(request, files, &contents)?;
            if let Some(held) = taken {
                let token = held.token;
                let mut ours = self.files.held.lock();
                ours.insert(request.owner.clone(), held);
                return Ok(self.grant(token, value));
            }
        }
    }

    /// A lease that doesn't end has no beginning that matters, unless the caller's options end it.
    fn grant(&self, token: Token, value: Option<Stored>) -> Answer {
        Answer::Granted(Grant {
            token,
            value,
            since: self.clock.now(),
        })
    }

    /// Sleeps until something happens to the file that was taken. False when nothing would tell of that.
    fn sleep(&mut self, pace: &Pace<'_>) -> bool {
        let Some(taken) = &mut self.taken else {
            return false;
        };
        let watches = &self.files.watches;
        let Some(watch) = self.watch.take().or_else(|| watches.take()) else {
            return false;
        };
        let watch = self.watch.insert(watch);
        if taken.is_watched {
            let kept = self.kept.map_or(Duration::MAX, |kept| kept + ROUNDING);
            watch.sleep(kept.min(LOOK), pace.until);
            return true;
        }
        // What happened before the file was watched is found by the next look, at once.
        taken.is_watched = watch.point_at(&taken.path).is_ok();
        taken.is_watched
    }
}

impl Wait for FileWait {
    /// What fails has taken nothing: the files are unlocked again.
    fn ask(
        &mut self,
        request: Request<'_>,
        pace: Option<&mut Pace<'_>>,
        _deadline: &Deadline,
    ) -> Result<Answer, Unanswered> {
        let answer = self.acquire(request, pace.is_some());
        answer.map_err(Unanswered::unsent)
    }

    fn wait(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> Option<Grant> {
        if pace.counted || !self.sleep(pace) {
            let kept = self.kept.map_or(Duration::MAX, |kept| kept + ROUNDING);
            let pause = pace.next_pause().min(request.ttl / 3);
            pace.until.sleep(pause.min(kept));
        }
        None
    }
}

impl Drop for FileWait {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.take() {
            self.files.watches.give_back(watch);
        }
    }
}
