//! The life of one lease, on a clock and an engine that do as they are told.

use super::*;
use crate::base::clock::tests::ManualClock;
use crate::base::error::{Error, Result};
use crate::base::token::Token;
use crate::engine::{Outcome, Wait};

const TTL: Duration = Duration::from_secs(9);
const EVERY: Duration = Duration::from_secs(3);

/// What the next renewals do: how long they take, and what comes of them.
#[derive(Debug)]
struct Scripted {
    clock: Arc<ManualClock>,
    answers: Mutex<Vec<(Duration, Result<bool>)>>,
    forgotten: Mutex<u32>,
}

impl Engine for Scripted {
    fn endpoint(&self) -> &str {
        "a script"
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        unreachable!("a renewal never acquires")
    }

    fn change(&self, request: Request<'_>, change: Change<'_>, _: &Deadline) -> Result<Outcome> {
        assert!(matches!(change, Change::Renew), "{change:?}");
        assert_eq!(request.ttl, TTL);
        let (takes, answer) = self.answers.lock().pop().expect("no renewal was expected");
        self.clock.advance(takes);
        answer.map(Outcome::of)
    }

    fn abandon(&self, _: &Owner) {
        *self.forgotten.lock() += 1;
    }
}

struct Scene {
    clock: Arc<ManualClock>,
    engine: Arc<Scripted>,
    held: LeaseMonitor<()>,
}

/// A lease that was granted just now.
fn scene(every: Option<Duration>, max_hold: Option<Duration>) -> Scene {
    let clock = ManualClock::new();
    let (answers, forgotten) = (Mutex::default(), Mutex::default());
    let engine = Arc::new(Scripted {
        clock: clock.clone(),
        answers,
        forgotten,
    });
    let now = clock.now();
    let plan = Plan {
        ttl: TTL,
        every,
        max_hold,
        clock_skew: Duration::ZERO,
    };
    let mut lease = Lease::new(
        Claim::exclusive("test", "a"),
        Owner::new(),
        Token::next(0, 0),
    );
    (lease.valid_until, lease.due) = (plan.valid_until(now), plan.due(now));
    (lease.granted, lease.held_since) = (now, now);
    let (to, observer) = (engine.clone(), Observers::default());
    let held = LeaseMonitor::new(to, clock.clone(), plan, observer, lease, Some(()));
    Scene {
        clock,
        engine,
        held,
    }
}

impl Scene {
    fn answers(&self, answers: impl IntoIterator<Item = (Duration, Result<bool>)>) {
        let mut expected = self.engine.answers.lock();
        assert!(expected.is_empty(), "a renewal didn't take place");
        expected.extend(answers);
        expected.reverse();
    }

    /// Moves the clock to where the renewer would wake, and lets it.
    fn tend_when_due(&self) -> Option<Duration> {
        let pause = self.held.tend()?;
        self.clock.advance(pause);
        self.held.tend()
    }

    fn lost(&self) -> Option<LostReason> {
        self.held.lost().try_recv().ok().map(|lost| lost.reason)
    }
}

fn unreachable_server() -> Result<bool> {
    Err(Error::unavailable(
        Some("a"),
        "redis://nowhere",
        "no answer",
    ))
}

const AT_ONCE: Duration = Duration::ZERO;

#[test]
fn failed_renewal_keeps_the_old_deadline_and_is_tried_again() {
    let scene = scene(Some(EVERY), None);
    let before = scene.held.remaining();
    let pause = scene.held.tend().unwrap();
    scene.clock.advance(pause);
    scene.answers([(AT_ONCE, unreachable_server()), (AT_ONCE, Ok(true))]);
    scene.held.tend();
    assert_eq!(scene.held.remaining(), before - pause);
    let again = scene.held.tend().unwrap();
    assert!(again < EVERY, "{again:?}");
    scene.clock.advance(again);
    scene.held.tend();
    assert!(scene.held.remaining() > before - pause);
    assert_eq!(scene.lost(), None);
}

#[test]
fn renewals_that_all_fail_are_tried_several_times_and_end_with_the_lease() {
    let scene = scene(Some(EVERY), None);
    let end = scene.clock.now().plus(scene.held.remaining());
    let mut tries = 0;
    while let Some(pause) = scene.held.tend() {
        scene.clock.advance(pause);
        if scene.engine.answers.lock().is_empty() {
            tries += 1;
            scene.answers([(AT_ONCE, unreachable_server())]);
        }
        assert!(scene.clock.now() <= end.plus(Duration::from_millis(10)));
    }
    assert!(tries > 5, "{tries}");
    assert_eq!(scene.lost(), Some(LostReason::Expired));
    assert_eq!(*scene.engine.forgotten.lock(), 1);
}

#[test]
fn lease_that_ran_out_before_its_renewal_was_answered_is_lost_for_good() {
    let scene = scene(Some(EVERY), None);
    let left = scene.held.remaining();
    // The process stands still while the answer waits in its socket, and nobody looks meanwhile.
    scene.answers([(left, Ok(true))]);
    scene.tend_when_due();
    assert_eq!(scene.lost(), Some(LostReason::Expired));
    assert_eq!(scene.held.remaining(), Duration::ZERO);
    assert_eq!(scene.held.tend(), None, "nothing is left to renew");
    assert_eq!(*scene.engine.forgotten.lock(), 1);
}

#[test]
fn renewal_that_failed_is_not_tried_again_after_max_hold() {
    let scene = scene(Some(EVERY), Some(EVERY * 4 / 3));
    scene.answers([(AT_ONCE, unreachable_server())]);
    scene.tend_when_due();
    scene.clock.advance(EVERY);
    let last = scene.held.tend().unwrap();
    scene.clock.advance(last);
    assert_eq!(scene.held.tend(), None);
    assert_eq!(scene.lost(), Some(LostReason::Expired));
}

#[test]
fn renewal_that_was_proven_for_earlier_extends_from_then() {
    let scene = scene(Some(EVERY), None);
    let proven = scene.clock.now();
    scene.clock.advance(TTL / 4);
    scene.held.extend(scene.clock.now(), proven);
    assert!(scene.held.remaining() < TTL * 3 / 4);
    // It is due as if it had been proven for now, or the next one would be sent at once.
    assert!(matches!(scene.held.step(), Step::Wait(_)));
}
