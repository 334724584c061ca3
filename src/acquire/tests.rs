//! Calls that panic in the local queue with a lease that they take along.

use std::time::Duration;

use super::*;
use crate::acquire::local_wait::LocalWait;
use crate::base::clock::{BootClock, Clock, Deadline};
use crate::base::options::Options;
use crate::base::owner::Owner;
use crate::base::sys::sync::Mutex;
use crate::base::token::Token;
use crate::engine::{Change, Engine, Outcome, Request, Wait};
use crate::lease::Lease;
use crate::queue::local::Entered;
use crate::queue::{Turn, Waiter};

/// More than a release takes.
const SOON: Duration = Duration::from_secs(1);

/// Counts releases.
#[derive(Debug, Default)]
struct Counter(Mutex<u32>);

impl Engine for Counter {
    fn endpoint(&self) -> &str {
        "a counter"
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        unreachable!("nobody asks")
    }

    fn change(&self, _: Request<'_>, change: Change<'_>, _: &Deadline) -> Result<Outcome> {
        assert!(matches!(change, Change::Release(_)), "{change:?}");
        *self.0.lock() += 1;
        Ok(Outcome::DONE)
    }
}

/// The threads of one process that want one name.
struct Scene {
    engine: Arc<Counter>,
    core: Arc<Core>,
    claim: Claim,
}

fn scene() -> Scene {
    let (engine, clock) = (Arc::new(Counter::default()), Arc::new(BootClock));
    let core = Core::new(engine.clone(), Options::default(), clock);
    Scene {
        engine,
        core: Arc::new(core),
        claim: Claim::exclusive("test", "a"),
    }
}

impl Scene {
    fn first(&self) -> Turn {
        match self.core.queues.enter(&self.claim.key) {
            Entered::First(turn) => turn,
            Entered::Offered(..) | Entered::Behind(_) => panic!("somebody has the turn"),
        }
    }

    fn behind(&self) -> Waiter {
        match self.core.queues.enter(&self.claim.key) {
            Entered::First(_) | Entered::Offered(..) => panic!("nobody has the turn"),
            Entered::Behind(waiter) => waiter,
        }
    }

    /// A lease that was granted a moment ago, on its way to the next thread.
    fn offer(&self) -> TurnState {
        let (claim, token) = (self.claim.clone(), Token::next(0, 0));
        let mut lease = Lease::new(claim, Owner::new(), token);
        self.core.restart(&mut lease, BootClock.now());
        TurnState::Lease(Box::new(lease), None)
    }

    fn local_wait(&self) -> LocalWait<'_> {
        LocalWait {
            core: &self.core,
            claim: &self.claim,
            waiter: Some(self.behind()),
        }
    }
}

#[test]
fn call_that_panics_in_the_queue_passes_on_what_it_takes_along() {
    let scene = scene();
    let (turn, panics, next) = (scene.first(), scene.local_wait(), scene.behind());
    assert!(turn.offer(scene.offer()).is_ok());
    drop(panics);
    let given = next.wait(Some(Instant::now() + SOON));
    assert!(matches!(given, Ok((_, TurnState::Lease(..)))));
    assert_eq!(*scene.engine.0.lock(), 0);
}

#[test]
fn last_call_that_panics_in_the_queue_releases_what_it_takes_along() {
    let scene = scene();
    let (turn, panics) = (scene.first(), scene.local_wait());
    assert!(turn.offer(scene.offer()).is_ok());
    drop(panics);
    scene.core.deferred.await_all(Instant::now() + SOON);
    assert_eq!(*scene.engine.0.lock(), 1);
    assert_eq!(scene.core.queues.len(), 0);
}
