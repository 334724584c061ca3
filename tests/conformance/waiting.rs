//! How long a call waits, and what ends it.

use std::error::Error as _;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{Error, Event, Locker, Observer, Result};

use crate::{PATIENCE, Place};
use support::{Stopwatch, Thread, wait_until};

/// Drops `guard` while `wait` is in it, and returns what `wait` gave.
///
/// Without an observer nobody sees that a thread has begun to wait; a pause, at whose end it sleeps, makes it all but
/// certain.
pub(crate) fn release_meanwhile<G, T: Send>(
    guard: G,
    wait: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    const PAUSE: Duration = Duration::from_millis(20);
    thread::scope(|scope| {
        let (begin, begun) = mpsc::channel();
        let waiter = scope.spawn(move || {
            begin.send(Thread::current()).unwrap();
            wait()
        });
        let thread = begun.recv().unwrap();
        thread::sleep(PAUSE);
        wait_until("the call to wait", PATIENCE, || {
            waiter.is_finished() || thread.is_asleep()
        });
        assert!(!waiter.is_finished(), "it got in while the lock was taken");
        drop(guard);
        let released = Instant::now();
        let outcome = waiter.join().unwrap();
        assert!(released.elapsed() < PATIENCE, "{:?}", released.elapsed());
        outcome
    })
}

/// Asserts that `wait` waits for all of `timeout`, in vain.
pub(crate) fn assert_times_out<G>(timeout: Duration, wait: impl FnOnce() -> Result<Option<G>>) {
    let watch = Stopwatch::start();
    let outcome = match wait() {
        // No answer came, for which it waits for 100 ms longer.
        Err(error @ Error::Unavailable { .. }) => {
            let most = timeout + Duration::from_millis(100);
            let found = format!("{error}: {:?}", error.source());
            return watch.assert_late(Duration::from_millis(50), most, found);
        }
        outcome => outcome.unwrap(),
    };
    let elapsed = watch.assert_within(timeout + Duration::from_millis(100));
    assert!(outcome.is_none());
    assert!(
        elapsed >= timeout,
        "{elapsed:?} is shorter than {timeout:?}"
    );
}

pub(crate) fn longest_timeout_waits_for_the_release(place: &Place) {
    assert!(place.try_lock_for("a", Duration::MAX).unwrap().is_some());
    for lock in [place as &Locker, &place.other()] {
        let wait = || lock.try_lock_for("a", Duration::MAX);
        let guard = release_meanwhile(place.lock("a").unwrap(), wait).unwrap();
        guard.expect("it was released").verify().unwrap();
    }
}

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
