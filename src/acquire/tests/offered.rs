//! Leases that lie in the local queue for whoever comes.

use super::*;
use crate::acquire::local_wait::LocalWait;

impl Scene {
    /// A lease that was granted a moment ago.
    fn valid(&self) -> Lease {
        let mut lease = self.expired();
        self.core.restart(&mut lease, BootClock.now());
        lease
    }

    fn local_wait(&self) -> LocalWait<'_> {
        LocalWait {
            core: &self.core,
            claim: &self.claim,
            waiter: Some(self.behind()),
        }
    }

    #[track_caller]
    fn assert_released(&self, times: u32) {
        let soon = Instant::now() + SOON;
        self.core.deferred.await_all(soon);
        assert_eq!(*self.engine.released.lock(), times);
    }
}

fn word(lease: Lease) -> TurnState {
    TurnState::Lease(Box::new(lease), None)
}

#[test]
fn call_that_panics_in_the_queue_passes_on_what_it_takes_along() {
    let scene = scene();
    let (turn, panics, next) = (scene.first(), scene.local_wait(), scene.behind());
    assert!(turn.offer(word(scene.valid())).is_ok());
    drop(panics);
    let given = next.wait(Some(Instant::now() + SOON));
    assert!(matches!(given, Ok((_, TurnState::Lease(..)))));
    assert_eq!(*scene.engine.released.lock(), 0);
}

#[test]
fn last_call_that_panics_in_the_queue_releases_what_it_takes_along() {
    let scene = scene();
    let (turn, panics) = (scene.first(), scene.local_wait());
    assert!(turn.offer(word(scene.valid())).is_ok());
    drop(panics);
    scene.assert_released(1);
    assert_eq!(scene.queues().len(), 0);
}

#[test]
fn offered_lease_that_is_over_is_released_and_the_engine_asked() {
    let scene = scene();
    let (turn, waits) = (scene.first(), scene.behind());
    assert!(turn.offer(word(scene.expired())).is_ok());
    scene.engine.next(granted);
    let guard = scene.acquire().expect("no error").expect("the lock");
    assert!(guard.is_held());
    scene.assert_released(1);
    drop((waits, guard));
}

#[test]
fn offered_lease_that_was_broken_is_lost_when_it_is_taken() {
    let scene = scene();
    let (turn, waits, lease) = (scene.first(), scene.behind(), scene.valid());
    let (owner, below) = (lease.owner.clone(), u64::MAX);
    assert!(turn.offer(word(lease)).is_ok());
    let told: &dyn Revocations = &*scene.core.guards;
    told.revoked(owner.as_str(), below, LostReason::Broken);
    let guard = scene.acquire().expect("no error").expect("a guard");
    assert!(!guard.is_held());
    drop((waits, guard));
    assert_eq!(scene.queues().len(), 0);
}

#[test]
fn call_that_is_over_takes_what_is_offered() {
    let scene = scene();
    let (turn, waits) = (scene.first(), scene.behind());
    assert!(turn.offer(word(scene.valid())).is_ok());
    assert!(matches!(
        waits.leave(),
        Left::Given(_, TurnState::Lease(..))
    ));
    assert_eq!(scene.queues().len(), 0);
}
