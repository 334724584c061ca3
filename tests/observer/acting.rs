//! Observers that do something: end what they are told of, or panic.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crosslock::LockGuard;

use super::*;

/// Has a guard and its locker, and drops them when it is told of a loss.
#[derive(Default)]
struct Ends {
    has: Mutex<Option<(LockGuard, Locker)>>,
    ended: Mutex<bool>,
}

impl Observer for Ends {
    fn event(&self, event: &Event<'_>) {
        if let Event::Lost { .. } = event {
            let had = self.has.lock().unwrap().take();
            if let Some((guard, locker)) = had {
                drop(guard);
                locker.close();
                drop(locker);
                *self.ended.lock().unwrap() = true;
            }
        }
    }
}

#[test]
fn guard_and_locker_may_be_dropped_by_the_observer_of_their_loss() {
    each_url(|url| {
        let ends = Arc::new(Ends::default());
        let builder = Locker::builder(url).namespace(NAMESPACE).renew_every(SHORT);
        let locker = builder.observer(ends.clone()).build().unwrap();
        let guard = locker.lock("ending").unwrap();
        *ends.has.lock().unwrap() = Some((guard, locker));
        let other = Locker::builder(url).namespace(NAMESPACE).build().unwrap();
        other.break_lock("ending").unwrap();
        wait_until("the loss to be told, and all dropped", PATIENCE, || {
            *ends.ended.lock().unwrap()
        });
        drop(other.try_lock_for("ending", PATIENCE).unwrap().unwrap());
        drop(other);
        wait_until("threads to end", PATIENCE, || Arc::strong_count(&ends) == 1);
    });
}

#[derive(Default)]
struct Panicking(AtomicUsize);

impl Observer for Panicking {
    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("an observer panics on purpose");
    }
}

#[test]
fn calls_are_as_without_an_observer_that_panics() {
    let observer = Arc::new(Panicking::default());
    let builder = Locker::builder("memory:").hand_over(PATIENCE);
    let locker = builder.observer(observer.clone()).build().unwrap();
    let guard = locker.lock("calls").unwrap();
    assert!(locker.try_lock_for("calls", SHORT).unwrap().is_none());
    thread::scope(|scope| {
        let waiter = scope.spawn(|| locker.lock("calls").unwrap());
        wait_until("the waiter", PATIENCE, || {
            observer.0.load(Ordering::SeqCst) >= 4
        });
        drop(guard);
        waiter.join().unwrap().unlock().unwrap();
    });
    assert!(locker.try_lock("calls").unwrap().is_some());
}
