//! The session of a locker: one, and another after its end.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::client::{Failure, Session};
use crate::base::clock::Deadline;
use crate::base::timed_mutex::TimedMutex;

/// The session of a locker.
pub(super) struct Sessions {
    /// The first, of which no lock is taken to open others: in a child that was forked off it is the parent's.
    opener: Arc<Session>,
    current: TimedMutex<Option<Arc<Session>>>,
}

/// How often a call that waits for another to open a session looks whether it is over itself.
const LOOK: Duration = Duration::from_millis(20);

impl Sessions {
    pub(super) fn new(session: Arc<Session>) -> Self {
        Sessions {
            current: TimedMutex::from(Some(session.clone())),
            opener: session,
        }
    }

    /// Those of a child that was forked off: it opens its own session when it needs one.
    pub(super) fn after_fork(&self) -> Self {
        Sessions {
            opener: self.opener.clone(),
            current: TimedMutex::from(None),
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
        let deadline = &self.opener.opens_by(deadline);
        let mut current = loop {
            if let Some(current) = self.current.try_lock_until(Instant::now() + LOOK) {
                break current;
            }
            if deadline.is_over() {
                return Err(Failure::TimedOut);
            }
        };
        if let Some(session) = current.as_ref().filter(|one| !one.has_ended()) {
            return Ok(session.clone());
        }
        let session = self.opener.open_another(deadline)?;
        begin(&session);
        *current = Some(session.clone());
        Ok(session)
    }

    /// Ends the session at the servers.
    pub(super) fn close(&self, deadline: &Deadline) {
        let current = self.current.try_lock_until(Instant::now() + LOOK);
        if let Some(session) = current.as_ref().and_then(|current| current.as_ref()) {
            session.close(deadline);
        }
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}
