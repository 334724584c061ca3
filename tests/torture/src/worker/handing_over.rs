//! Which leases a thread was handed by another thread of its process, as the library tells an observer.

use std::cell::Cell;
use std::sync::Arc;

use crosslock::{Event, Observer};

thread_local! {
    /// The token of the last lock that this thread was handed over.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

/// Whether this thread was handed over the lock that it got with this token.
pub(super) fn was_handed_over(token: u64) -> bool {
    LAST.get() == token
}

/// What a locker is to tell.
pub(super) fn observer() -> Arc<dyn Observer> {
    Arc::new(Watch)
}

struct Watch;

impl Observer for Watch {
    /// It is called by the thread that gets the lock, before its call is over.
    fn event(&self, event: &Event<'_>) {
        if let Event::Acquired {
            token,
            handed_over: true,
            ..
        } = event
        {
            LAST.set(*token);
        }
    }
}
