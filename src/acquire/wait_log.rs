//! What a call that waits tells the log.

use std::sync::Arc;

use crate::base::claim::Claim;
use crate::base::error::Error;
use crate::base::fork::Process;
use crate::engine::Engine;
use crate::guard::held_by_thread;

/// What one call has told so far.
#[derive(Debug, Default)]
pub(crate) struct WaitLog {
    waits: bool,
    outage: bool,
}

impl WaitLog {
    /// Tells, once, that the call waits for a lock that another has; or that its own thread has it, which nobody else
    /// would.
    pub(crate) fn wait(&mut self, claim: &Claim, engine: &Arc<dyn Engine>, whose: &str) {
        if std::mem::replace(&mut self.waits, true) {
            return;
        }
        let name = claim.key.name();
        log::debug!("waiting for lock {name:?}, which {whose}");
        if held_by_thread::has_taken(claim, engine.place(), Process::current()) {
            log::warn!(
                "waiting for lock {name:?}: this thread already holds it, by a guard that it took and that wasn't dropped yet"
            );
        }
    }

    /// Tells, once, that the call goes on trying in an outage.
    pub(crate) fn outage(&mut self, error: &Error) {
        if !std::mem::replace(&mut self.outage, true) {
            log::debug!("{error}: trying again");
        }
    }

    /// Tells that the outage is over, if it was told.
    pub(crate) fn answer(&mut self, claim: &Claim, engine: &Arc<dyn Engine>) {
        if std::mem::take(&mut self.outage) {
            let (name, place) = (claim.key.name(), engine.place());
            log::debug!("lock {name:?}: {place} answers again");
        }
    }
}
