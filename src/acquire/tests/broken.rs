//! A call whose lease was broken before it saw that it had it.

use super::*;

/// The engine, and which owners have asked.
#[derive(Clone, Debug, Default)]
struct Watched {
    engine: Scripted,
    asked: Arc<Mutex<Vec<Owner>>>,
}

impl Engine for Watched {
    fn endpoint(&self) -> &str {
        self.engine.endpoint()
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        Box::new(self.clone())
    }

    fn change(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        self.engine.change(request, change, deadline)
    }
}

impl Wait for Watched {
    fn ask(
        &mut self,
        request: Request<'_>,
        pace: Option<&mut Pace<'_>>,
        deadline: &Deadline,
    ) -> Asked {
        self.asked.lock().push(request.owner.clone());
        self.engine.ask(request, pace, deadline)
    }
}

fn broken() -> Asked {
    Ok(Answer::Broken)
}

/// Makes a call of so many attempts, on an engine that answers like this. Gives its outcome, which of the owners that
/// asked differ from the one before, and how often something was released.
fn call(attempts: Option<u32>, answers: &[fn() -> Asked]) -> (Result<bool>, Vec<bool>, u32) {
    let engine = Watched::default();
    for answer in answers {
        engine.engine.next(*answer);
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
    engine.engine.assert_all_asked();
    let asked = engine.asked.lock();
    let differs = asked.windows(2).map(|two| two[0] != two[1]).collect();
    let released = *engine.engine.released.lock();
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
fn guard_is_told_by_its_owner_that_somebody_broke_its_lock() {
    let scene = scene();
    let owners = [(); 3].map(|()| Owner::new());
    let guards = owners
        .each_ref()
        .map(|one| scene.guard(scene.lease(one, 1)));
    scene.revoked(&Owner::new(), 5);
    scene.revoked(&owners[1], 5);
    let held = guards.each_ref().map(LockGuard::is_held);
    assert_eq!(held, [true, false, true]);
    let lost = guards[1].lost().recv().expect("one message");
    assert_eq!(lost.reason, LostReason::Broken);
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
