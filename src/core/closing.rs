//! Whether a locker is closed, and the calls that it still makes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::base::cancel::Cancel;
use crate::base::sys::sync::{Condvar, Mutex};
use crate::base::sys::sync::{TimedGuard, TimedMutex};
use crate::base::sys::time;

/// Whether a locker is closed, and what it still does.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    closed: Cancel,
    calls: AtomicUsize,
    /// Notified when a call or a guard is gone that may be waited for.
    gone: Condvar,
    waits: Mutex<()>,
    /// Locked by a `close`.
    closer: TimedMutex<()>,
}

/// A call in progress.
#[derive(Debug)]
pub(crate) struct Call<'a>(&'a Closing);

impl Closing {
    /// Set when the locker is closed.
    pub(crate) fn closed(&self) -> &Cancel {
        &self.closed
    }

    /// Begins a call.
    pub(super) fn begin(&self) -> Call<'_> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Call(self)
    }

    /// How many calls are in progress.
    #[cfg(feature = "testing")]
    pub(super) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    pub(super) fn has_calls(&self) -> bool {
        self.calls.load(Ordering::SeqCst) > 0
    }

    /// Has the caller close alone, unless another takes until then.
    pub(super) fn close_alone(&self, by: Instant) -> Option<TimedGuard<'_, ()>> {
        self.closer.try_lock_until(by)
    }

    /// A call or a guard is gone.
    pub(super) fn one_is_gone(&self) {
        if self.closed.is_set() {
            // Whoever waits has looked before it was gone, and sleeps, or looks after it.
            drop(self.waits.lock());
            self.gone.notify_all();
        }
    }

    pub(super) fn await_until(&self, by: Instant, is_done: impl Fn() -> bool) {
        let mut waits = self.waits.lock();
        while !is_done() && time::now() < by {
            waits = self.gone.wait_until(waits, by);
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if self.0.calls.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.one_is_gone();
        }
    }
}
