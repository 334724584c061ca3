//! Calls that wait, seen by an observer: some engines show them to nobody else.

use std::sync::{Arc, Mutex};

use crosslock::{Event, Locker, Observer};
use support::{Thread, wait_until};

use crate::{PATIENCE, Place};

/// The threads whose calls have begun to wait for a lock.
#[derive(Clone, Default)]
pub(crate) struct Waiters(Arc<Mutex<Vec<Thread>>>);

impl Observer for Waiters {
    fn event(&self, event: &Event<'_>) {
        if let Event::Waiting { .. } = event {
            self.0.lock().unwrap().push(Thread::current());
        }
    }
}

impl Waiters {
    /// Opens another locker of a place, and watches its calls.
    pub(crate) fn of(place: &Place) -> (Locker, Self) {
        let waiters = Waiters::default();
        let builder = place.builder().observer(waiters.observer());
        (builder.build().unwrap(), waiters)
    }

    /// What a locker is given, to watch its calls.
    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        Arc::new(self.clone())
    }

    /// Waits until so many calls wait, and sleep.
    #[track_caller]
    pub(crate) fn wait_for(&self, count: usize) {
        wait_until("calls to wait", PATIENCE, || {
            let threads = self.0.lock().unwrap();
            threads.len() == count && threads.iter().all(Thread::is_asleep)
        });
    }
}
