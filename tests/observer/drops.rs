//! An observer that ends what it is told of.

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
