//! What a call tells the log and the observer.

use std::time::{Duration, Instant};

use crate::base::claim::Claim;
use crate::base::error::{Error, Whole};
use crate::base::fork::Process;
use crate::base::observer::Event;
use crate::core::Core;
use crate::guard::held_by_thread;
use crate::lease::Lease;

/// What one call has told so far.
#[derive(Debug, Default)]
pub(crate) struct WaitLog {
    waits: bool,
    /// Whether the observer was told that the call has its lock. A locker that is closed meanwhile takes it back.
    has_lock: bool,
    /// Since when, from when it is told until its end is.
    outage: Option<Instant>,
}

impl WaitLog {
    /// Tells, once, that the call waits for a lock that another has; or that its own thread has it, which nobody else
    /// would.
    pub(crate) fn wait(&mut self, claim: &Claim, core: &Core, whose: &str) {
        if std::mem::replace(&mut self.waits, true) {
            return;
        }
        let (namespace, name) = (claim.key.namespace(), claim.key.name());
        let observer = &core.options.observer;
        observer.tell(|| Event::Waiting { namespace, name });
        log::debug!("waiting for lock {name:?}, which {whose}");
        if held_by_thread::has_taken(claim, core.engine.place(), Process::current()) {
            log::warn!(
                "waiting for lock {name:?}: this thread already holds it, by a guard that it took and that wasn't dropped yet"
            );
        }
    }

    /// Tells, once, that the call goes on trying in an outage.
    pub(crate) fn outage(&mut self, claim: &Claim, core: &Core, since: Instant, error: &Error) {
        if self.outage.is_none() {
            self.outage = Some(since);
            let observer = &core.options.observer;
            observer.outage_began(&claim.key, core.engine.place(), error);
            log::debug!("{}: trying again", Whole(error));
        }
    }

    /// Tells that the outage is over, if it was told.
    pub(crate) fn answer(&mut self, claim: &Claim, core: &Core) {
        if let Some(since) = self.outage.take() {
            let (name, place) = (claim.key.name(), core.engine.place());
            let observer = &core.options.observer;
            observer.outage_ended(&claim.key, place, || passed(core, since));
            log::debug!("lock {name:?}: {place} answers again");
        }
    }

    /// Tells the observer, before there is a guard, that the call has its lock: whatever becomes of it is told later.
    pub(crate) fn acquired(
        &mut self,
        core: &Core,
        lease: &Lease,
        since: Instant,
        handed_over: bool,
    ) {
        self.has_lock = true;
        core.options.observer.tell(|| Event::Acquired {
            namespace: lease.claim.key.namespace(),
            name: lease.claim.key.name(),
            token: lease.token.number,
            waited: passed(core, since),
            was_waiting: self.waits,
            handed_over,
            abandoned: lease.token.abandoned,
        });
    }

    /// Tells the observer that the call ends without its lock.
    pub(crate) fn gave_up(
        &self,
        claim: &Claim,
        core: &Core,
        since: Instant,
        error: Option<&Error>,
    ) {
        let observer = &core.options.observer;
        if let (Some(error @ Error::Unavailable { .. }), None) = (error, self.outage) {
            observer.outage_began(&claim.key, core.engine.place(), error);
        }
        if self.waits && !self.has_lock {
            observer.tell(|| Event::GaveUp {
                namespace: claim.key.namespace(),
                name: claim.key.name(),
                waited: passed(core, since),
                error,
            });
        }
    }
}

fn passed(core: &Core, since: Instant) -> Duration {
    core.clock.instant().saturating_duration_since(since)
}
