//! Observers that do something: break the lock that they are told of, end what they are told of, or panic.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crosslock::LockGuard;

use super::*;

/// Breaks the lock that was granted, once.
#[derive(Default)]
struct Breaker {
    operator: OnceLock<Locker>,
    has_broken: AtomicBool,
}

impl Observer for Breaker {
    fn event(&self, event: &Event<'_>) {
        if let (Event::Acquired { name, .. }, Some(operator)) = (event, self.operator.get())
            && !self.has_broken.swap(true, Ordering::SeqCst)
        {
            assert_eq!(operator.break_lock(name).expect("a break").len(), 1);
        }
    }
}

#[test]
fn break_before_the_guard_is_made_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("file://{}", directory.path().display());
    for url in ["memory:broken-between", &url] {
        if url.starts_with("file") && !cfg!(feature = "file") {
            continue;
        }
        let breaker = Arc::new(Breaker::default());
        let operator = Locker::open(url).expect("a locker");
        assert!(breaker.operator.set(operator).is_ok());
        // Its renewals would tell it much later.
        let lock = Locker::builder(url).ttl(Duration::from_secs(3600));
        let lock = lock.observer(breaker).build().expect("a locker");
        let guard = lock.lock("broken between").expect("it is granted");
        let lost = guard.lost().recv_timeout(PATIENCE).expect("it is told");
        assert_eq!(lost.reason, LostReason::Broken);
        assert!(!guard.is_held());
    }
}

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
        for by_time in [false, true] {
            let ends = Arc::new(Ends::default());
            let builder = Locker::builder(url).namespace(NAMESPACE);
            let builder = builder.observer(ends.clone());
            let builder = match by_time && !url.starts_with("file") {
                true => builder.renew(false).ttl(Duration::from_millis(300)),
                false => builder.renew_every(SHORT),
            };
            let locker = builder.build().unwrap();
            let guard = locker.lock("ending").unwrap();
            *ends.has.lock().unwrap() = Some((guard, locker));
            let other = Locker::builder(url).namespace(NAMESPACE).build().unwrap();
            if !by_time || url.starts_with("file") {
                other.break_lock("ending").unwrap();
            }
            wait_until("the loss to be told, and all dropped", PATIENCE, || {
                *ends.ended.lock().unwrap()
            });
            drop(other.try_lock_for("ending", PATIENCE).unwrap().unwrap());
            drop(other);
            wait_until("threads to end", PATIENCE, || Arc::strong_count(&ends) == 1);
        }
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

fn panicking(
    url: &str,
    set: impl FnOnce(LockerBuilder) -> LockerBuilder,
) -> (Locker, Arc<Panicking>) {
    let panicking = Arc::new(Panicking::default());
    let builder = Locker::builder(url).namespace(NAMESPACE);
    let locker = set(builder.observer(panicking.clone())).build().unwrap();
    (locker, panicking)
}

#[test]
fn calls_are_as_without_it() {
    each_url(|url| {
        let (locker, observer) = panicking(url, |builder| builder.hand_over(PATIENCE));
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
        assert!(locker.try_lock("calls").unwrap().is_some(), "{url}");
    });
}
