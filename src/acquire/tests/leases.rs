//! Leases that were broken before their call saw them, and leases that lie in the local queue for whoever comes.

use super::*;
use crate::acquire::local_wait::LocalWait;

fn broken() -> Asked {
    Ok(Answer::Broken)
}

/// Makes a call of so many attempts, on an engine that answers like this. Gives its outcome, which of the owners that
/// asked differ from the one before, and how often something was released.
fn call(attempts: Option<u32>, answers: &[fn() -> Asked]) -> (Result<bool>, Vec<bool>, u32) {
    let engine = Scripted::default();
    for answer in answers {
        engine.next(*answer);
    }
    let clock = Arc::new(BootClock);
    let core = Core::new(Arc::new(engine.clone()), Options::default(), clock);
    let core = Arc::new(core);
    let mut budget = RetryBudget::new(
        Deadline::after(SOON),
        attempts,
        &core.options,
        Instant::now(),
    );
    let outcome = acquire(&core, &Claim::exclusive("test", "a"), &mut budget);
    let has_lock = outcome.map(|guard| guard.map(LockGuard::unlock).is_some());
    engine.assert_all_asked();
    let asked = engine.asked.lock();
    let differs = asked.windows(2).map(|two| two[0] != two[1]).collect();
    let released = *engine.released.lock();
    (has_lock, differs, released)
}

#[test]
fn another_owner_asks_at_once_and_goes_on_as_any_other() {
    let (outcome, differs, released) = call(None, &[taken, broken, taken, granted]);
    assert!(outcome.unwrap());
    assert_eq!(differs, [false, true, false]);
    assert_eq!(released, 1, "by the guard");
}

#[test]
fn other_owner_asks_in_the_same_attempt() {
    let (outcome, differs, _) = call(Some(1), &[broken, granted]);
    assert!(outcome.unwrap());
    assert_eq!(differs, [true]);
    let (outcome, differs, _) = call(Some(2), &[taken, broken, broken, taken]);
    assert!(!outcome.unwrap());
    assert_eq!(differs, [false, true, true]);
}

#[test]
fn nothing_is_taken_back_of_an_owner_whose_lease_was_broken() {
    let not_queued = || {
        Ok(Answer::Taken {
            is_queued: false,
            holder: None,
        })
    };
    let (outcome, _, released) = call(Some(2), &[taken, broken, not_queued]);
    assert!(!outcome.unwrap());
    assert_eq!(released, 0);
    let (outcome, _, released) = call(None, &[unanswered, broken, granted]);
    assert!(outcome.unwrap());
    assert_eq!(released, 1, "by the guard");
}

#[test]
fn answer_of_broken_ends_an_outage() {
    let (outcome, differs, _) = call(Some(2), &[unanswered, broken, taken]);
    assert!(!outcome.unwrap(), "the lock is taken");
    assert_eq!(differs, [false, true]);
}

impl Scene {
    fn guard(&self, lease: Lease) -> LockGuard {
        LockGuard::new(self.core.clone(), lease, None, None).expect("it has a renewer")
    }

    /// A lease of this owner, by such a token.
    fn lease(&self, owner: &Owner, number: u64) -> Lease {
        let token = Token::from_number(number);
        let mut lease = Lease::new(self.claim.clone(), owner.clone(), token);
        self.core.restart(&mut lease, BootClock.now());
        lease
    }

    fn revoked(&self, owner: &Owner, below: u64) {
        let guards = &self.core.guards;
        guards.revoked(owner.as_str(), below, LostReason::Broken);
    }
}

#[test]
fn lease_that_was_broken_before_it_had_a_guard_is_lost_however_late_that_is() {
    let scene = scene();
    let owner = Owner::new();
    scene.revoked(&owner, 5);
    thread::sleep(Duration::from_millis(100));
    assert!(!scene.guard(scene.lease(&owner, 1)).is_held());
}

#[test]
fn break_of_an_earlier_lease_of_the_same_owner_ends_no_other() {
    let scene = scene();
    let owner = Owner::new();
    scene.revoked(&owner, 5);
    let guard = scene.guard(scene.lease(&owner, 5));
    assert!(guard.is_held());
    scene.revoked(&owner, 5);
    assert!(guard.is_held());
    scene.revoked(&owner, 13);
    assert!(!guard.is_held());
}

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
