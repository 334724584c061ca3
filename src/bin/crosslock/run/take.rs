//! Taking the lock, and what is shown meanwhile.

use std::time::{Duration, Instant};

use crosslock::{LockGuard, Locker, Result};

use super::options::{Mode, Options, Patience};
use super::waiting_line::WaitingLine;
use crate::cancel::CancelToken;

/// Takes what the options ask for. `None` if somebody else has it, for as long as the caller wants to wait.
pub(crate) fn take(
    locker: &Locker,
    options: &Options,
    token: &CancelToken,
    line: &WaitingLine,
) -> Result<Option<LockGuard>> {
    let claim = Claim { locker, options };
    let most = match options.patience {
        Patience::None => return claim.try_once(),
        Patience::For(most) => most,
        Patience::Endless => Duration::MAX,
    };
    if let Some(guard) = claim.try_once()? {
        return Ok(Some(guard));
    }
    let _shown = line.show(locker, options);
    claim.wait(most, token)
}

struct Claim<'a> {
    locker: &'a Locker,
    options: &'a Options,
}

impl Claim<'_> {
    fn try_once(&self) -> Result<Option<LockGuard>> {
        self.attempt(None)
    }

    /// Waits in slices, because nothing else ends a wait.
    fn wait(&self, most: Duration, token: &CancelToken) -> Result<Option<LockGuard>> {
        const SLICE: Duration = Duration::from_millis(100);
        let start = Instant::now();
        while !token.is_cancelled() {
            let left = most.saturating_sub(start.elapsed());
            let guard = self.attempt(Some(left.min(SLICE)))?;
            if guard.is_some() || left.is_zero() {
                return Ok(guard);
            }
        }
        Ok(None)
    }

    fn attempt(&self, most: Option<Duration>) -> Result<Option<LockGuard>> {
        let (locker, names) = (self.locker, &self.options.names);
        let first = names.first().map(String::as_str).unwrap_or_default();
        match (self.options.mode, most) {
            (Mode::Exclusive, None) if names.len() > 1 => locker.try_lock_all(names),
            (Mode::Exclusive, Some(most)) if names.len() > 1 => {
                locker.try_lock_all_for(names, most)
            }
            (Mode::Exclusive, None) => locker.try_lock(first),
            (Mode::Exclusive, Some(most)) => locker.try_lock_for(first, most),
            (Mode::Shared, None) => locker.try_read(first),
            (Mode::Shared, Some(most)) => locker.try_read_for(first, most),
            (Mode::Permits { count, of }, None) => {
                locker.semaphore(first, of)?.try_acquire_many(count)
            }
            (Mode::Permits { count, of }, Some(most)) => locker
                .semaphore(first, of)?
                .try_acquire_many_for(count, most),
        }
    }
}
