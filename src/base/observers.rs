//! The observer of a locker, and how it is told.
//!
//! Whoever tells it holds no lock of this crate meanwhile. Without an observer an event costs one look: it isn't made, and
//! no clock is read for it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{Error, LostReason};
use crate::base::name::Key;
use crate::base::observer::{Event, Observer};
use crate::base::token::Token;

/// The observer of a locker, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Observers(Option<Arc<dyn Observer>>);

impl Observers {
    pub(crate) fn of(observer: Arc<dyn Observer>) -> Self {
        Observers(Some(observer))
    }

    /// Whether there is one: then what costs something may be found out for it.
    pub(crate) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// Tells what has happened.
    pub(crate) fn tell<'a>(&self, event: impl FnOnce() -> Event<'a>) {
        if let Some(observer) = &self.0 {
            tell(&**observer, &event());
        }
    }

    /// A lock was taken by what isn't a call for it, and doesn't wait: by a downgrade.
    pub(crate) fn acquired_at_once(&self, key: &Key, token: Token) {
        self.tell(|| Event::Acquired {
            namespace: key.namespace(),
            name: key.name(),
            token: token.number,
            waited: Duration::ZERO,
            was_waiting: false,
            handed_over: false,
            abandoned: token.abandoned,
        });
    }

    pub(crate) fn released(&self, key: &Key, token: u64, held: Duration) {
        self.tell(|| Event::Released {
            namespace: key.namespace(),
            name: key.name(),
            token,
            held,
        });
    }

    pub(crate) fn lost(
        &self,
        key: &Key,
        token: u64,
        held: impl FnOnce() -> Duration,
        reason: LostReason,
    ) {
        self.tell(|| Event::Lost {
            namespace: key.namespace(),
            name: key.name(),
            token,
            held: held(),
            reason,
        });
    }

    pub(crate) fn renewed(&self, key: &Key, token: u64) {
        self.tell(|| Event::Renewed {
            namespace: key.namespace(),
            name: key.name(),
            token,
        });
    }

    pub(crate) fn renewal_failed(&self, key: &Key, token: u64, remaining: Duration, error: &Error) {
        self.tell(|| Event::RenewalFailed {
            namespace: key.namespace(),
            name: key.name(),
            token,
            remaining,
            error,
        });
    }

    pub(crate) fn outage_began(&self, key: &Key, engine: &str, error: &Error) {
        self.tell(|| Event::OutageBegan {
            namespace: key.namespace(),
            name: key.name(),
            engine,
            error,
        });
    }

    pub(crate) fn outage_ended(&self, key: &Key, engine: &str, lasted: impl FnOnce() -> Duration) {
        self.tell(|| Event::OutageEnded {
            namespace: key.namespace(),
            name: key.name(),
            engine,
            lasted: lasted(),
        });
    }
}

#[cold]
#[inline(never)]
fn tell(observer: &dyn Observer, event: &Event<'_>) {
    // An observer that panics must not break a call, end a renewer, or abort a thread that unwinds already.
    let _ = catch_unwind(AssertUnwindSafe(|| observer.event(event)));
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Some(..)" } else { "None" })
    }
}
