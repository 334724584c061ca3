//! What a call tells the log and the observer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::base::sys;
use crate::base::sys::channel::{RecvTimeoutError, Sender, bounded};
use crate::base::{Claim, Deadline, Error, ErrorChain, Event, LockState, Mode, Process};
use crate::guard::held_by_thread::{self, InWait};
use crate::{core::Core, lease::Lease};

/// What one call has told so far.
#[derive(Debug, Default)]
pub(crate) struct WaitLog {
    waits: bool,
    /// Whether a long wait has looked for another number of permits.
    has_looked: bool,
    /// Whether the observer was told that the call has its lock. A locker that is closed meanwhile takes it back.
    has_lock: bool,
    /// Since when, from when it is told until its end is.
    outage: Option<Instant>,
    /// Others find that this thread waits for what they have.
    in_wait: Option<InWait>,
    suspicion: Option<Suspicion>,
}

/// It looks as if this call waited for its own thread. The log says so if it waits for long, or ends without its lock:
/// a guard may have moved to another thread, which no code notices, and then it is released soon.
#[derive(Debug)]
struct Suspicion {
    text: Arc<str>,
    is_told: Arc<AtomicBool>,
    /// Dropped with it, which ends the thread that would tell it.
    _end: Sender<()>,
}

/// A wait that is shorter is nobody's concern.
const LONG: Duration = Duration::from_secs(3);

impl WaitLog {
    /// Tells, once, that the call waits for a lock that another has. Its own thread may have it, or may have what that
    /// other waits for: nobody else would tell that.
    pub(crate) fn wait(&mut self, claim: &Claim, core: &Core, whose: &str) {
        if std::mem::replace(&mut self.waits, true) {
            return;
        }
        let (namespace, name) = (claim.key.namespace(), claim.key.name());
        let observer = &core.options.observer;
        observer.tell(|| Event::Waiting { namespace, name });
        if claim.mode == Mode::Task {
            // Nobody has what isn't due.
            return;
        }
        log::debug!("waiting for lock {name:?}: {whose}");
        self.suspicion = self.suspect(claim, core);
    }

    /// Tells, once, of a call that has waited for permits for long if their holders count another number of them. Of
    /// the programs that don't agree those with fewer wait longest. It costs a look, as `Locker::inspect` does.
    pub(crate) fn still_waits(
        &mut self,
        claim: &Claim,
        core: &Core,
        since: Instant,
        deadline: &Deadline,
    ) {
        let Mode::Permits { of: own, .. } = claim.mode else {
            return;
        };
        if self.has_looked || passed(core, since) < LONG {
            return;
        }
        self.has_looked = true;
        let looked = core.engine.inspect(&claim.key, deadline);
        if let Ok(LockState::Permits { of: Some(of), .. }) = looked.map(|looked| looked.state)
            && of != own
        {
            let name = claim.key.name();
            log::warn!(
                "waiting for a permit of semaphore {name:?}: this program gives it {own} permits, but another program \
                 gives it {of}: use the same number everywhere"
            );
        }
    }

    fn suspect(&mut self, claim: &Claim, core: &Core) -> Option<Suspicion> {
        let (name, endpoint) = (claim.key.name(), core.engine.endpoint());
        let process = Process::current();
        if held_by_thread::has_taken(claim, endpoint, process) {
            let text = format!(
                "waiting for lock {name:?}: this thread took it and hasn't dropped the guard, so it deadlocks unless \
                 the guard was moved to another thread"
            );
            return Some(Suspicion::begin(text));
        }
        self.in_wait = InWait::begin(claim, endpoint, process);
        let own = self.in_wait.as_ref()?.waits_for_itself()?;
        Some(Suspicion::begin(format!(
            "waiting for lock {name:?}: threads of this process wait for each other, up to lock {own:?}, which this \
             thread took, so they deadlock unless a guard was moved to another thread"
        )))
    }

    /// Tells, once, that the call goes on trying in an outage.
    pub(crate) fn outage(&mut self, claim: &Claim, core: &Core, since: Instant, error: &Error) {
        if self.outage.is_none() {
            self.outage = Some(since);
            let observer = &core.options.observer;
            observer.outage_began(&claim.key, core.engine.endpoint(), error);
            log::debug!("{}: retrying", ErrorChain(error));
        }
    }

    /// Tells that the outage is over, if it was told.
    pub(crate) fn answer(&mut self, claim: &Claim, core: &Core) {
        if let Some(since) = self.outage.take() {
            let (name, endpoint) = (claim.key.name(), core.engine.endpoint());
            let observer = &core.options.observer;
            observer.outage_ended(&claim.key, endpoint, || passed(core, since));
            log::debug!("lock {name:?}: {endpoint} answers again");
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
        (self.in_wait, self.suspicion) = (None, None);
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
        if let (Some(suspicion), None | Some(Error::Busy { .. })) = (&self.suspicion, error) {
            suspicion.tell();
        }
        let observer = &core.options.observer;
        if let (Some(error @ Error::Unavailable { .. }), None) = (error, self.outage) {
            observer.outage_began(&claim.key, core.engine.endpoint(), error);
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

impl Suspicion {
    fn begin(text: String) -> Self {
        let (end, ended) = bounded(0);
        let suspicion = Suspicion {
            text: text.into(),
            is_told: Arc::default(),
            _end: end,
        };
        let (text, is_told) = (suspicion.text.clone(), suspicion.is_told.clone());
        let tell_late = move || {
            if ended.recv_timeout(LONG) == Err(RecvTimeoutError::Timeout) {
                tell_once(&text, &is_told);
            }
        };
        if sys::spawn("crosslock-self-wait", tell_late).is_err() {
            suspicion.tell();
        }
        suspicion
    }

    fn tell(&self) {
        tell_once(&self.text, &self.is_told);
    }
}

fn tell_once(text: &str, is_told: &AtomicBool) {
    if !is_told.swap(true, Ordering::Relaxed) {
        log::warn!("{text}");
    }
}

fn passed(core: &Core, since: Instant) -> Duration {
    core.clock.instant().saturating_duration_since(since)
}
