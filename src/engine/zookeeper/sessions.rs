//! The session of a locker.

use std::time::{Duration, Instant};
use std::{fmt, sync::Arc};

use super::client::{Failure, Hosts, Session};
use crate::base::timed_mutex::{TimedGuard, TimedMutex};
use crate::base::{Deadline, Result, Waits, sys::time};
use crate::engine::net::RECONNECT;

/// The session of a locker: one, and another after its end.
///
/// While no session can be opened, callers don't connect in turns: whoever waited for an attempt that failed has its
/// failure, and before the next attempt there is a pause.
pub(super) struct Sessions {
    /// The first, of which no lock is taken to open others: in a child that was forked off it is the parent's.
    opener: Arc<Session>,
    hosts: Arc<Hosts>,
    current: TimedMutex<Current>,
}

struct Current {
    session: Option<Arc<Session>>,
    /// The last attempt to open one, if it failed.
    failed: Option<LastFailure>,
    pauses: Waits,
}

struct LastFailure {
    at: Instant,
    /// When there may be another attempt.
    again_at: Instant,
    failure: Failure,
}

/// How often a call that waits for another to open a session looks whether it is over itself.
const LOOK: Duration = Duration::from_millis(20);

impl Sessions {
    pub(super) fn new(session: Arc<Session>) -> Self {
        Sessions {
            hosts: session.hosts().clone(),
            current: Current::of(Some(session.clone())).into(),
            opener: session,
        }
    }

    /// Those of a child that was forked off: it opens its own session when it needs one.
    pub(super) fn after_fork(&self) -> Self {
        Sessions {
            opener: self.opener.clone(),
            hosts: self.hosts.after_fork(),
            current: Current::of(None).into(),
        }
    }

    /// What is the same of all its sessions.
    pub(super) fn any(&self) -> &Session {
        &self.opener
    }

    /// The session, or another if that has ended, which `begin` sees first.
    pub(super) fn get(
        &self,
        deadline: &Deadline,
        begin: impl FnOnce(&Arc<Session>),
    ) -> Result<Arc<Session>, Failure> {
        // Also for a call that has time without end: then it is known that the servers can't be reached.
        let (began, deadline) = (time::now(), &self.opener.opens_by(deadline));
        let mut current = self.lock(deadline)?;
        if let Some(session) = current.session.as_ref().filter(|one| !one.has_ended()) {
            return Ok(session.clone());
        }
        current.may_try(began, deadline)?;
        match self.opener.open_another(&self.hosts, deadline) {
            Ok(session) => {
                begin(&session);
                *current = Current::of(Some(session.clone()));
                Ok(session)
            }
            Err(failure) => {
                current.failed(failure.again());
                Err(failure)
            }
        }
    }

    fn lock(&self, deadline: &Deadline) -> Result<TimedGuard<'_, Current>, Failure> {
        loop {
            if let Some(current) = self.current.try_lock_until(time::now() + LOOK) {
                return Ok(current);
            }
            if deadline.is_over() {
                return Err(Failure::TimedOut);
            }
        }
    }

    /// Ends the session at the servers.
    pub(super) fn close(&self, deadline: &Deadline) {
        let current = self.current.try_lock_until(time::now() + LOOK);
        let session = current.and_then(|current| current.session.clone());
        if let Some(session) = session {
            session.close(deadline);
        }
    }
}

impl Current {
    fn of(session: Option<Arc<Session>>) -> Self {
        Current {
            session,
            failed: None,
            pauses: RECONNECT.waits(),
        }
    }

    /// Waits until a caller that began then may try to open a session, or gives the failure that it has waited for.
    fn may_try(&self, began: Instant, deadline: &Deadline) -> Result<(), Failure> {
        let Some(failed) = &self.failed else {
            return Ok(());
        };
        // The time of that attempt may have been shorter than that of this caller.
        let was_short = matches!(failed.failure, Failure::TimedOut | Failure::Silent(_));
        let is_shared = failed.at >= began && !was_short;
        if !is_shared {
            deadline.sleep(failed.again_at.saturating_duration_since(time::now()));
        }
        if is_shared || deadline.is_over() {
            return Err(failed.failure.again());
        }
        Ok(())
    }

    fn failed(&mut self, failure: Failure) {
        let (at, pause) = (time::now(), self.pauses.next().unwrap_or(RECONNECT.cap));
        self.failed = Some(LastFailure {
            at,
            again_at: at + pause,
            failure,
        });
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}
