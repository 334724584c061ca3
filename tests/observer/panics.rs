//! An observer that panics changes nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::*;

const LEASE: Duration = Duration::from_millis(200);

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

#[test]
fn guard_that_a_panic_drops_releases() {
    each_url(|url| {
        let (locker, observer) = panicking(url, |builder| builder);
        let panicked = thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let _guard = locker.lock("unwinding").unwrap();
                panic!("a holder panics on purpose");
            });
            holder.join()
        });
        assert!(panicked.is_err());
        assert_eq!(observer.0.load(Ordering::SeqCst), 2, "{url}");
        assert!(locker.lock("unwinding").unwrap().was_abandoned(), "{url}");
    });
}

#[test]
fn leases_are_renewed_and_their_losses_are_noticed() {
    let (locker, observer) = panicking("memory:", |builder| {
        builder.ttl(10 * LEASE).renew_every(SHORT)
    });
    let guard = locker.lock("renewing").unwrap();
    wait_until("renewals", PATIENCE, || {
        observer.0.load(Ordering::SeqCst) >= 10
    });
    assert!(guard.is_held());
    let (locker, _) = panicking("memory:", |builder| builder.ttl(LEASE).renew(false));
    let other = locker.lock("losing").unwrap();
    other.lost().recv().unwrap();
    assert!(locker.lock("losing").is_ok());
}
