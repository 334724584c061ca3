//! Taking the lock, and what is shown meanwhile.

use std::thread;
use std::time::{Duration, Instant};

use crosslock::{CancelToken, Error, LockGuard, Locker, LockerBuilder, Result};

use super::options::{Mode, Options, Patience};
use super::waiting_line::WaitingLine;

/// Opens a locker, and waits through an outage as a call that takes a lock does.
pub(crate) fn open(
    builder: &LockerBuilder,
    patience: Patience,
    token: &CancelToken,
) -> Result<Locker> {
    const UNAVAILABLE_FOR: Duration = Duration::from_secs(10);
    const PAUSE: Duration = Duration::from_millis(100);
    let most = match patience {
        Patience::None => Duration::ZERO,
        Patience::For(most) => most.min(UNAVAILABLE_FOR),
        Patience::Endless => UNAVAILABLE_FOR,
    };
    let start = Instant::now();
    loop {
        let opened = builder.clone().build();
        let left = most.saturating_sub(start.elapsed());
        match opened {
            Err(Error::Unavailable { .. }) if !left.is_zero() && !token.is_cancelled() => {
                thread::sleep(left.min(PAUSE));
            }
            opened => return opened,
        }
    }
}

/// Takes what the options ask for. `None` if somebody else has it, for as long as the caller wants to wait.
pub(crate) fn take(
    locker: &Locker,
    options: &Options,
    line: WaitingLine,
) -> Result<Option<LockGuard>> {
    let claim = Claim { locker, options };
    match options.patience {
        Patience::None => claim.attempt(Duration::ZERO),
        Patience::For(most) => {
            let _shown = line.show(locker, options);
            claim.attempt(most)
        }
        Patience::Endless => {
            let _shown = line.show(locker, options);
            claim.wait().map(Some)
        }
    }
}

struct Claim<'a> {
    locker: &'a Locker,
    options: &'a Options,
}

impl Claim<'_> {
    fn attempt(&self, most: Duration) -> Result<Option<LockGuard>> {
        let (locker, names) = (self.locker, &self.options.names);
        let is_once = most.is_zero();
        match self.options.mode {
            Mode::Exclusive if names.len() > 1 && is_once => locker.try_lock_all(names),
            Mode::Exclusive if names.len() > 1 => locker.try_lock_all_for(names, most),
            Mode::Exclusive if is_once => locker.try_lock(self.first()),
            Mode::Exclusive => locker.try_lock_for(self.first(), most),
            Mode::Shared if is_once => locker.try_read(self.first()),
            Mode::Shared => locker.try_read_for(self.first(), most),
            Mode::Permits { count, of } => {
                let permits = locker.semaphore(self.first(), of)?;
                if is_once {
                    permits.try_acquire_many(count)
                } else {
                    permits.try_acquire_many_for(count, most)
                }
            }
        }
    }

    fn wait(&self) -> Result<LockGuard> {
        let (locker, names) = (self.locker, &self.options.names);
        match self.options.mode {
            Mode::Exclusive if names.len() > 1 => locker.lock_all(names),
            Mode::Exclusive => locker.lock(self.first()),
            Mode::Shared => locker.read(self.first()),
            Mode::Permits { count, of } => locker.semaphore(self.first(), of)?.acquire_many(count),
        }
    }

    fn first(&self) -> &str {
        self.options.names.first().map_or("", String::as_str)
    }
}
