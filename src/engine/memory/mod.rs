//! Locks of this process: for tests, and for programs that may do without the others.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use self::table::Table;
use super::{Acquired, Engine, Failed, IfTaken, Kept, Release, Released, Request};
use crate::base::claim::Mode;
use crate::base::clock::{BootClock, Clock, Deadline};
use crate::base::error::Result;
use crate::base::fork::ForkLocal;
use crate::base::name::Key;
use crate::base::token::Token;
use crate::base::value::Stored;

mod entry;
mod inside;
mod table;
#[cfg(test)]
mod tests;

/// A pause is at most this long by the options' bounds; a longer one would only be cut.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Every `memory:` locker of the process shares this one, as they would share a server.
#[derive(Debug)]
pub(crate) struct MemoryEngine {
    clock: Arc<dyn Clock>,
    /// A child's memory is another.
    table: ForkLocal<Mutex<Table>>,
}

impl MemoryEngine {
    pub(crate) fn shared() -> Arc<Self> {
        static SHARED: LazyLock<Arc<MemoryEngine>> =
            LazyLock::new(|| Arc::new(MemoryEngine::new(Arc::new(BootClock))));
        SHARED.clone()
    }

    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        MemoryEngine {
            clock,
            table: ForkLocal::new(Mutex::default()),
        }
    }

    fn of(&self, request: Request<'_>) -> &Mutex<Table> {
        self.table.get(request.owner.process())
    }

    fn here(&self) -> &Mutex<Table> {
        self.table.get(std::process::id())
    }
}

impl Engine for MemoryEngine {
    fn acquire(
        &self,
        request: Request<'_>,
        if_taken: IfTaken<'_>,
        _deadline: &Deadline,
    ) -> Result<Acquired, Failed> {
        let now = self.clock.now();
        Ok(self.of(request).lock().acquire(request, if_taken, now))
    }

    fn renew(&self, request: Request<'_>, _deadline: &Deadline) -> Result<bool> {
        let now = self.clock.now();
        Ok(self.of(request).lock().renew(request, now))
    }

    fn release(
        &self,
        request: Request<'_>,
        release: Release<'_>,
        _deadline: &Deadline,
    ) -> Result<Released> {
        let now = self.clock.now();
        let mut table = self.of(request).lock();
        if !table.release(request, release, now) {
            return Ok(Released::NotOwner);
        }
        if let Some(value) = release.value {
            table.set_value(request.key(), value);
        }
        Ok(Released::Done)
    }

    fn downgrade(
        &self,
        request: Request<'_>,
        last_used: u64,
        value: Option<&[u8]>,
        _deadline: &Deadline,
    ) -> Result<Option<Token>> {
        let now = self.clock.now();
        let mut table = self.of(request).lock();
        let Some((token, repeated)) = table.downgrade(request, last_used, now) else {
            return Ok(None);
        };
        if let Some(value) = value.filter(|_| !repeated) {
            table.set_value(request.key(), value);
        }
        Ok(Some(token))
    }

    fn store(&self, request: Request<'_>, value: &[u8], _deadline: &Deadline) -> Result<Kept> {
        let now = self.clock.now();
        let mut table = self.of(request).lock();
        let holds = table.holds(request, now);
        if holds {
            table.set_value(request.key(), value);
        }
        Ok(if holds { Kept::Yes } else { Kept::No })
    }

    fn load(&self, key: &Key, _deadline: &Deadline) -> Result<Stored> {
        Ok(self.here().lock().value(key))
    }

    fn remove(&self, key: &Key, _deadline: &Deadline) -> Result<()> {
        self.here().lock().values.remove(key);
        Ok(())
    }

    fn value_key(&self, key: &Key) -> String {
        format!("memory:{}", key.name())
    }

    fn is_owner(&self, request: Request<'_>, _deadline: &Deadline) -> Result<bool> {
        let now = self.clock.now();
        Ok(self.of(request).lock().holds(request, now))
    }

    fn free_permits(&self, key: &Key, of: u32, _deadline: &Deadline) -> Result<u32> {
        let now = self.clock.now();
        Ok(self.here().lock().free_permits(key, of, now))
    }

    fn supports(&self, _mode: Mode) -> bool {
        true
    }

    /// Who isn't in line any more, because it was called in or was gone for too long, is to ask at once.
    fn wait(&self, request: Request<'_>, timeout: Duration) {
        let until = Instant::now() + timeout.min(LONGEST_PAUSE);
        let mut table = self.here().lock();
        while let Some((bell, changes)) = table.waits(request) {
            let left = changes.since(self.clock.now());
            let left = left.min(until.saturating_duration_since(Instant::now()));
            if bell.wait_for(&mut table, left).timed_out() {
                return;
            }
        }
    }

    fn place(&self) -> &str {
        "memory:"
    }
}
